// The host's floating-point mode while a kernel is emulated.
#ifndef JAX_FA_EMULATOR_RUN_FLOAT_ENVIRONMENT_H_
#define JAX_FA_EMULATOR_RUN_FLOAT_ENVIRONMENT_H_

#include <cfenv>

namespace jax_fa::emulator {

// While it lives, the calling thread computes as the C standard begins: to the nearest, with
// denormals, without traps. A kernel's own mode is emulated upon that. Callers have other modes:
// XLA's CPU threads flush denormals to zero. The caller's mode and flags come back at the end.
class FloatEnvironment {
 public:
  FloatEnvironment() {
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&callers_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::fenv_t callers_;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_RUN_FLOAT_ENVIRONMENT_H_
