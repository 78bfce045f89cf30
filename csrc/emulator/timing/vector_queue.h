// The queue between issue and the vector unit of a SIMD, where a target has one: vector and matrix
// instructions of all waves execute in the order of their issue, one after another.
#ifndef JAX_FA_EMULATOR_TIMING_VECTOR_QUEUE_H_
#define JAX_FA_EMULATOR_TIMING_VECTOR_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <deque>

namespace jax_fa::emulator {

class VectorQueue {
 public:
  explicit VectorQueue(double places) : places_(static_cast<size_t>(places)) {}
  // Whether the target has one.
  bool exists() const { return places_ != 0; }
  // When the next instruction may issue: the last one has got its place.
  double open() const { return open_; }
  // When one that issues at `now` could begin.
  double Begin(double now) const { return std::max(now, busy_); }

  // It begins at `begin`, holds the unit for `hold` and its place for `drain` more. Returns when it
  // gets the place; its wave stands behind it until then.
  double Add(double now, double begin, double hold, double drain) {
    busy_ = begin + hold;
    while (!taken_.empty() && taken_.front() <= now) taken_.pop_front();
    open_ = now;
    if (taken_.size() >= places_) open_ = taken_[taken_.size() - places_];
    const double free = busy_ + drain;
    taken_.insert(std::upper_bound(taken_.begin(), taken_.end(), free), free);
    return open_;
  }

 private:
  size_t places_;
  double open_ = 0, busy_ = 0;
  std::deque<double> taken_;  // until when, first to be free first
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TIMING_VECTOR_QUEUE_H_
