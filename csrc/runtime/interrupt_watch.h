// Sees that the user has asked for an interrupt (SIGINT, Ctrl-C), whatever thread the process
// handles it on.
#ifndef JAX_FA_RUNTIME_INTERRUPT_WATCH_H_
#define JAX_FA_RUNTIME_INTERRUPT_WATCH_H_

#include <cstdint>

namespace jax_fa {

// While any of these live, SIGINT is counted and then handled as before: by the handler found when
// the first began, which is put back when the last ends. Where the signal is ignored or ends the
// process there is nothing to see, and its disposition is left alone. Any number may live at once,
// on any threads; a handler that somebody installs meanwhile stays, and nothing is seen from then
// on.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  // Whether the signal has come since the construction.
  bool seen() const;

 private:
  uint64_t before_;
};

}  // namespace jax_fa

#endif  // JAX_FA_RUNTIME_INTERRUPT_WATCH_H_
