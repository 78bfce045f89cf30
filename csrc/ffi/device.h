// Which runtime a handler's call belongs to. One handler serves platforms "cpu" and "ROCM": a call
// with a GPU stream is HIP's, one without is the emulator's.
#ifndef JAX_FA_FFI_DEVICE_H_
#define JAX_FA_FFI_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "runtime/runtime.h"

namespace jax_fa {

// The GPU stream and device ordinal of a call, or neither.
struct CallDevice {
  bool on_gpu = false;
  void* stream = nullptr;
  int32_t ordinal = 0;
};

// Parses the attribute `target` (a target's name, or "any": whichever of them the device is), makes
// the call's runtime and tells the target; the error names what does not fit.
Status OpenDevice(const CallDevice& device, std::string_view target_name,
                  std::unique_ptr<Runtime>* runtime, const Target** target);

}  // namespace jax_fa

#endif  // JAX_FA_FFI_DEVICE_H_
