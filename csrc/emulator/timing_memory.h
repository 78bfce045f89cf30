// The memory side of the timing model: LDS, L1 and the way to L2 of one unit.
#ifndef JAX_FA_EMULATOR_TIMING_MEMORY_H_
#define JAX_FA_EMULATOR_TIMING_MEMORY_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/timing_constants.h"
#include "emulator/timing_instruction.h"
#include "emulator/trace.h"

namespace jax_fa::emulator {

// Which lines a cache of `bytes` holds: four ways, least recently used goes.
class LineCache {
 public:
  explicit LineCache(double bytes)
      : sets_(std::max<size_t>(static_cast<size_t>(bytes) / kLineBytes / kWays, 1)) {}
  // True when it was there; it is afterwards.
  bool Touch(uint32_t line) {
    auto& set = sets_[line % sets_.size()];
    const auto found = std::find(set.begin(), set.end(), line + uint64_t{1});
    const bool hit = found != set.end();
    std::rotate(set.begin(), hit ? found : set.end() - 1, hit ? found + 1 : set.end());
    set[0] = line + uint64_t{1};
    return hit;
  }

 private:
  static constexpr size_t kWays = 4;
  std::vector<std::array<uint64_t, kWays>> sets_;  // line + 1, latest first; 0: empty
};

class UnitMemory {
 public:
  // gfx1201 has an L1 (there called L0) for every two SIMDs.
  UnitMemory(Isa isa, uint32_t simds, const TimingConstants& constants)
      : constants_(constants),
        simds_per_l1_(isa == Isa::kGfx950 ? simds : 2),
        lds_return_free_(simds, 0.0) {
    ports_.assign(std::max(simds / simds_per_l1_, 1u),
                  Port{LineCache(constants[Constant::kL1Bytes])});
  }

  // When the results of an LDS instruction issued at `now` are there.
  double Lds(const TimedInstruction& timed, uint32_t extra_passes, uint32_t simd, double now) {
    const double passes = timed.lds_passes + extra_passes;
    double& back = lds_return_free_[simd];
    const double start = std::max({now, lds_free_, back});
    lds_free_ = start + passes * constants_[Constant::kLdsPass];
    back = start + timed.transfer_bytes / constants_[Constant::kLdsReturn];
    return std::max(start + constants_[Constant::kLdsLatency], std::max(lds_free_, back));
  }

  // When the results of a memory instruction issued at `now` are there.
  double Access(const TimedInstruction& timed, std::span<const uint32_t> lines, uint32_t simd,
                double now) {
    Port& port = ports_[std::min<size_t>(simd / simds_per_l1_, ports_.size() - 1)];
    const double bytes = timed.transfer_bytes;
    const double start = std::max(now, port.free);
    port.free = start + std::max(bytes / constants_[Constant::kL1Rate],
                                 static_cast<double>(lines.size()) / constants_[Constant::kL1Tags]);
    double done = start + constants_[Constant::kL1Latency];
    size_t missed = 0;
    for (const uint32_t line : lines) missed += !port.lines.Touch(line) || timed.is_store ? 1 : 0;
    if (missed != 0) {
      const double missed_bytes = static_cast<double>(missed) * kLineBytes;
      missed_bytes_ += missed_bytes;
      port.l2_free = std::max(port.l2_free, start) + missed_bytes / constants_[Constant::kL2Rate];
      done = std::max(port.l2_free, start) + constants_[Constant::kL2Latency];
    }
    if (timed.is_dma) {
      const double passes = bytes / kLdsRowBytes;
      lds_free_ = std::max(lds_free_, start) + passes * constants_[Constant::kLdsPass];
    }
    return done;
  }

  double missed_bytes() const { return missed_bytes_; }

 private:
  static constexpr double kLdsRowBytes = 256;
  struct Port {
    LineCache lines;
    double free = 0, l2_free = 0;
  };
  const TimingConstants& constants_;
  const uint32_t simds_per_l1_;
  double lds_free_ = 0;
  std::vector<double> lds_return_free_;
  std::vector<Port> ports_;
  double missed_bytes_ = 0;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TIMING_MEMORY_H_
