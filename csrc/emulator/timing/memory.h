// The memory side of the timing model: LDS, L1 and the way to L2 of one unit.
#ifndef JAX_FA_EMULATOR_TIMING_MEMORY_H_
#define JAX_FA_EMULATOR_TIMING_MEMORY_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/timing/constants.h"
#include "emulator/timing/instruction.h"
#include "emulator/timing/trace.h"

namespace jax_fa::emulator {

// Which lines a cache of `bytes` holds, the least recently used going first. Sets are not modelled:
// how lines choose them is not documented.
class LineCache {
 public:
  LineCache(double bytes, uint32_t line_count)
      : capacity_(std::max<size_t>(static_cast<size_t>(bytes) / kLineBytes, 1)),
        links_(line_count + size_t{1}) {
    links_[line_count].before = links_[line_count].after = line_count;  // the ring's head
    head_ = line_count;
  }
  // When a line that is there arrives.
  double& arrives(uint32_t line) { return links_[line].arrives; }
  // True when it was there; it is afterwards.
  bool Touch(uint32_t line) {
    const bool hit = links_[line].held();
    if (hit) {
      Unlink(line);
    } else if (size_ == capacity_) {
      Unlink(links_[head_].before);
    } else {
      ++size_;
    }
    const uint32_t first = links_[head_].after;
    links_[line].before = head_;
    links_[line].after = first;
    links_[head_].after = links_[first].before = line;
    return hit;
  }

 private:
  static constexpr uint32_t kOut = ~0u;
  struct Link {
    uint32_t before = kOut, after = kOut;
    double arrives = 0;
    bool held() const { return after != kOut; }
  };
  void Unlink(uint32_t line) {
    const Link link = links_[line];
    links_[link.before].after = link.after;
    links_[link.after].before = link.before;
    links_[line].before = links_[line].after = kOut;
  }

  size_t capacity_, size_ = 0;
  uint32_t head_;
  std::vector<Link> links_;  // by line, latest first from the head on
};

class UnitMemory {
 public:
  // `cold`: no line has been touched before, by any unit.
  UnitMemory(const Chip& chip, uint32_t simds, uint32_t line_count,
             const TimingConstants& constants, bool cold)
      : constants_(constants),
        l1_byte_clk_(1 / constants[Constant::kL1Rate]),
        l1_line_clk_(1 / constants[Constant::kL1Tags]),
        wave_size_(chip.wave_size),
        miss_latency_(constants[cold ? Constant::kColdLoad : Constant::kL2Latency]),
        lds_free_(std::max(simds / *chip.unit.simds, 1u), 0.0),
        lds_return_free_(simds, 0.0) {
    const uint32_t simds_per_l1 = chip.timing.simds_per_l1;
    for (uint32_t simd = 0; simd < simds; ++simd) port_of_.push_back(simd / simds_per_l1);
    ports_.assign(port_of_.back() + 1, Port{LineCache(constants[Constant::kL1Bytes], line_count)});
  }

  // When the results of an LDS instruction issued at `now` are there. Banks are shared by those
  // whose workgroup has its part of the same LDS (a unit of two compute units has two), each SIMD
  // has a way back of its own, where lanes that are off take no time.
  double Lds(const TimedInstruction& timed, uint32_t detail, uint32_t simd, uint32_t group,
             double now) {
    const double share = static_cast<double>(detail >> kLanesShift) / wave_size_;
    const uint32_t extra_passes = detail & ((1u << kLanesShift) - 1);
    const double passes = timed.lds_passes + extra_passes;
    double& free = lds_free_[group % lds_free_.size()];
    const double start = std::max(now, free);
    free = start + passes * constants_[Constant::kLdsPass];
    const double done = std::max(start + constants_[Constant::kLdsLatency], free);
    if (timed.is_store) return done;
    double& back = lds_return_free_[simd];
    back = std::max(back, start) + timed.transfer_bytes * share / constants_[Constant::kLdsReturn];
    return std::max(done, back);
  }

  // When the results of a memory instruction issued at `now` are there. `first_line` is added to
  // the numbers of its lines.
  double Access(const TimedInstruction& timed, std::span<const uint32_t> lines, uint32_t first_line,
                uint32_t simd, double now) {
    Port& port = ports_[port_of_[simd]];
    const double bytes = timed.transfer_bytes;
    const double start = std::max(now, port.free);
    port.free =
        start + std::max(bytes * l1_byte_clk_, static_cast<double>(lines.size()) * l1_line_clk_);
    double done = start + constants_[Constant::kL1Latency];
    size_t missed = 0;
    for (const uint32_t number : lines) {
      const uint32_t line = first_line + number;
      if (!port.lines.Touch(line)) {
        port.lines.arrives(line) = kInFlight;
        ++missed;
      } else {
        done =
            std::max(done, port.lines.arrives(line));  // a hit on a line that is still on its way
      }
    }
    // A store writes what it has, not whole lines.
    const double missed_bytes =
        timed.is_store ? std::min(bytes, static_cast<double>(lines.size()) * kLineBytes)
                       : static_cast<double>(missed) * kLineBytes;
    if (missed_bytes != 0) {
      missed_bytes_ += missed_bytes;
      port.l2_free = std::max(port.l2_free, start) + missed_bytes / constants_[Constant::kL2Rate];
      done = std::max(done, std::max(port.l2_free, start) + miss_latency_);
    }
    for (size_t i = 0; missed != 0 && i < lines.size(); ++i) {
      double& arrives = port.lines.arrives(first_line + lines[i]);
      if (arrives == kInFlight) arrives = done;
    }
    if (timed.is_dma) {
      const double passes = bytes / kLdsRowBytes;
      lds_free_[0] = std::max(lds_free_[0], start) + passes * constants_[Constant::kLdsPass];
    }
    return timed.is_store ? now + constants_[Constant::kStoreDone] : done;
  }

  double missed_bytes() const { return missed_bytes_; }

 private:
  static constexpr double kLdsRowBytes = 256;
  static constexpr double kInFlight = -1;  // until it is known when the line arrives
  struct Port {
    LineCache lines;
    double free = 0, l2_free = 0;
  };
  const TimingConstants& constants_;
  const double l1_byte_clk_, l1_line_clk_;
  const double wave_size_;
  const double miss_latency_;
  std::vector<double> lds_free_;  // of each LDS of the unit
  std::vector<double> lds_return_free_;
  std::vector<uint32_t> port_of_;  // by SIMD
  std::vector<Port> ports_;
  double missed_bytes_ = 0;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TIMING_MEMORY_H_
