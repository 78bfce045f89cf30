// The part of the HIP runtime's C ABI that is used, opened at run time and never linked.
#ifndef JAX_FA_RUNTIME_HIP_API_H_
#define JAX_FA_RUNTIME_HIP_API_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/runtime.h"

namespace jax_fa {

// Opaque handles of the library; error codes are ints.
using HipModule = struct HipModuleHandle*;
using HipFunction = struct HipFunctionHandle*;
using HipStream = void*;
inline constexpr int kHipSuccess = 0;

// Tags of hipModuleLaunchKernel's `extra` array, which must come in this order.
inline void* const kHipLaunchBufferPointer = reinterpret_cast<void*>(1);
inline void* const kHipLaunchBufferSize = reinterpret_cast<void*>(2);
inline void* const kHipLaunchEnd = reinterpret_cast<void*>(3);

struct HipApi {
  std::string file;  // of the library
  int (*hipGetDeviceCount)(int* count);
  int (*hipGetDevice)(int* device);
  int (*hipSetDevice)(int device);
  int (*hipModuleLoadData)(HipModule* module, const void* image);
  int (*hipModuleGetFunction)(HipFunction* function, HipModule module, const char* name);
  int (*hipModuleLaunchKernel)(HipFunction function, uint32_t grid_x, uint32_t grid_y,
                               uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                               uint32_t block_z, uint32_t dynamic_lds_bytes, HipStream stream,
                               void** parameters, void** extra);
  int (*hipMemsetAsync)(void* data, int value, size_t bytes, HipStream stream);
  int (*hipMemsetD32Async)(void* data, int value, size_t count, HipStream stream);
  int (*hipGetLastError)();
  const char* (*hipGetErrorName)(int error);
  const char* (*hipGetErrorString)(int error);

  // The device's properties, and where in them the architecture's name begins.
  int (*get_device_properties)(void* properties, int device);
  size_t architecture_offset;

  // Success, or the text "<what>: <name> (<description>)". Clears the library's last error, so that
  // a failure reported here is not found again by whoever asks next.
  Status Check(int error, const std::string& what) const;
};

// Finds the HIP library of the XLA that calls; handles of another one, be it a second copy of the
// same file, are none of XLA's streams. Nothing is loaded, and HIP is not initialised.
//
// `xla` is an address within XLA's plugin, or null where none is known. The library is the first
// that this gives: what that plugin depends on; what the one loaded plugin of PJRT that depends on
// HIP does; the one HIP library that is loaded. Looks again at every call until one is found.
Status FindHipApi(const void* xla, const HipApi** api);

}  // namespace jax_fa

#endif  // JAX_FA_RUNTIME_HIP_API_H_
