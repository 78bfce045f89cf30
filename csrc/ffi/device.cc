#include "ffi/device.h"

#include <string>

#include "runtime/emulator_runtime.h"
#include "runtime/hip_runtime.h"

namespace jax_fa {

Status Open(const Place& place, std::string_view target_name, std::unique_ptr<Runtime>* runtime,
            const Target** target) {
  const Target* const named = FindTarget(target_name);
  if (named == nullptr && target_name != "any") {
    return Status::Error("target must be " + TargetNames("or", "any") + "; got " +
                         std::string(target_name));
  }
  const auto* const gpu = std::get_if<GpuPlace>(&place);
  if (gpu == nullptr) {
    if (named == nullptr) {
      return Status::Error(
          "this computation was lowered for an AMD GPU of any target, and runs on a CPU; name a "
          "target to have it emulated, or lower it for CPU");
    }
    *runtime = std::make_unique<EmulatorRuntime>(*named);
    return (*runtime)->GetTarget(target);
  }
  *runtime = std::make_unique<HipRuntime>(gpu->ordinal, gpu->stream, gpu->xla);
  if (Status status = (*runtime)->GetTarget(target); !status.ok) return status;
  if (named != nullptr && named != *target) {
    return Status::Error("implementation " + std::string(target_name) +
                         " was asked for, but HIP device " + std::to_string(gpu->ordinal) + " is " +
                         std::string((*target)->name));
  }
  return Status::Ok();
}

}  // namespace jax_fa
