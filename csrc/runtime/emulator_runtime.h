// The runtime of a machine without the chip: host memory, and the emulator for the code object.
#ifndef JAX_FA_RUNTIME_EMULATOR_RUNTIME_H_
#define JAX_FA_RUNTIME_EMULATOR_RUNTIME_H_

#include "runtime/runtime.h"

namespace jax_fa {

// Stands for one chip of `target`.
class EmulatorRuntime final : public Runtime {
 public:
  explicit EmulatorRuntime(const Target& target) : target_(target) {}

  Status GetTarget(const Target** target) override;
  Status Load(const Target& target) override;
  Status Launch(const Target& target, const struct Launch& launch) override;
  Status MemsetD8(const Buffer& buffer, uint8_t value) override;
  Status MemsetD32(const Buffer& buffer, uint32_t value) override;

 private:
  const Target& target_;
};

}  // namespace jax_fa

#endif  // JAX_FA_RUNTIME_EMULATOR_RUNTIME_H_
