// Which runtime a handler's call belongs to, as the handler's platform says: the emulator on "cpu",
// HIP on "ROCM".
#ifndef JAX_FA_FFI_DEVICE_H_
#define JAX_FA_FFI_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>

#include "runtime/runtime.h"

namespace jax_fa {

struct EmulatedPlace {};

// XLA's stream, the ordinal that HIP knows the stream's device by, and an address within XLA.
struct GpuPlace {
  void* stream;
  int32_t ordinal;
  const void* xla;
};

using Place = std::variant<EmulatedPlace, GpuPlace>;

// Parses the attribute `target` (a target's name, or "any": whichever of them the device is), makes
// the call's runtime and tells the target; the error names what does not fit.
Status Open(const Place& place, std::string_view target_name, std::unique_ptr<Runtime>* runtime,
            const Target** target);

}  // namespace jax_fa

#endif  // JAX_FA_FFI_DEVICE_H_
