// The runtime of a machine without the chip: host memory, and the emulator for the code object.
#ifndef JAX_FA_RUNTIME_EMULATOR_RUNTIME_H_
#define JAX_FA_RUNTIME_EMULATOR_RUNTIME_H_

#include <optional>

#include "runtime/runtime.h"

namespace jax_fa {

// Stands for one chip of `target`; without a target it answers every question with an error.
class EmulatorRuntime final : public Runtime {
 public:
  explicit EmulatorRuntime(std::optional<Target> target) : target_(target) {}

  Status GetTarget(Target* target) override;
  Status GetComputeUnits(int* count) override;
  Status Load(Target target) override;
  Status Launch(Target target, const struct Launch& launch) override;
  Status MemsetD8(const Buffer& buffer, uint8_t value) override;
  Status MemsetD32(const Buffer& buffer, uint32_t value) override;

 private:
  std::optional<Target> target_;
};

}  // namespace jax_fa

#endif  // JAX_FA_RUNTIME_EMULATOR_RUNTIME_H_
