// What the waves of the timing model spend their time in, as runs of like instructions.
#ifndef JAX_FA_EMULATOR_TIMING_SLICES_H_
#define JAX_FA_EMULATOR_TIMING_SLICES_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/timing/wave.h"

namespace jax_fa::emulator {

enum class SliceKind : uint8_t {
  kMatrix,
  kVector,
  kTrans,
  kScalar,
  kLds,
  kMemory,
  kWait,
  kBarrier
};
constexpr const char* SliceName(SliceKind kind) {
  constexpr const char* kNames[] = {"matrix", "vector", "transcendental", "scalar",
                                    "LDS",    "memory", "wait",           "barrier"};
  return kNames[static_cast<size_t>(kind)];
}

// Instructions of one kind, with the time that the first of them waited to issue.
struct Slice {
  uint32_t group = 0, wave = 0;  // of the resident ones
  SliceKind kind = SliceKind::kWait;
  double begin_clk = 0, end_clk = 0;
  uint32_t instructions = 0;
};

class SliceRecorder {
 public:
  static SliceKind KindOf(const TimedInstruction& timed) {
    switch (timed.kind) {
      case TimedKind::kMatrix:
        return SliceKind::kMatrix;
      case TimedKind::kVector:
        return SliceKind::kVector;
      case TimedKind::kTrans:
        return SliceKind::kTrans;
      case TimedKind::kLds:
        return SliceKind::kLds;
      case TimedKind::kMemory:
        return SliceKind::kMemory;
      case TimedKind::kWait:
        return SliceKind::kWait;
      case TimedKind::kBarrier:
      case TimedKind::kBarrierSignal:
      case TimedKind::kBarrierWait:
        return SliceKind::kBarrier;
      default:
        return SliceKind::kScalar;
    }
  }

  void Add(const TimedWave& wave, SliceKind kind, double begin, double end, uint32_t instructions) {
    if (wave.place >= last_.size()) last_.resize(wave.place + 1, kNone);
    size_t& last = last_[wave.place];
    if (last != kNone) {
      Slice& slice = slices_[last];
      begin = std::max(begin, slice.end_clk);
      if (slice.kind == kind && begin == slice.end_clk) {
        slice.end_clk = std::max(end, slice.end_clk);
        slice.instructions += instructions;
        return;
      }
    }
    if (end <= begin) return;
    last = slices_.size();
    slices_.push_back({wave.group_index, wave.index_in_group, kind, begin, end, instructions});
  }

  std::vector<Slice> Take() { return std::move(slices_); }

 private:
  static constexpr size_t kNone = ~size_t{0};
  std::vector<Slice> slices_;
  std::vector<size_t> last_;  // by wave
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TIMING_SLICES_H_
