#include "runtime/hip_api.h"

#include <dlfcn.h>

#include <mutex>

namespace jax_fa {
namespace {

// SONAMEs carry the major version. The plugin opens the library with local scope, so its symbols
// are found through a handle only, and the unversioned name finds nothing.
constexpr const char* kLibraryNames[] = {"libamdhip64.so.7", "libamdhip64.so.6",
                                         "libamdhip64.so.5"};

// hipDeviceProp_t changed its layout in HIP 6, which gave the new one a suffixed symbol; the
// unsuffixed symbol keeps the old layout for ever.
constexpr size_t kArchitectureOffsetHip6 = 1160;
constexpr size_t kArchitectureOffsetHip5 = 396;

template <class Function>
bool Resolve(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

Status Fill(void* library, const char* library_name, HipApi* api) {
  const char* missing = nullptr;
  const auto resolve = [&](const char* name, auto** function) {
    if (!Resolve(library, name, function) && missing == nullptr) missing = name;
  };
  resolve("hipGetDeviceCount", &api->hipGetDeviceCount);
  resolve("hipGetDevice", &api->hipGetDevice);
  resolve("hipSetDevice", &api->hipSetDevice);
  resolve("hipModuleLoadData", &api->hipModuleLoadData);
  resolve("hipModuleGetFunction", &api->hipModuleGetFunction);
  resolve("hipModuleLaunchKernel", &api->hipModuleLaunchKernel);
  resolve("hipMemsetAsync", &api->hipMemsetAsync);
  resolve("hipMemsetD32Async", &api->hipMemsetD32Async);
  resolve("hipGetLastError", &api->hipGetLastError);
  resolve("hipGetErrorName", &api->hipGetErrorName);
  resolve("hipGetErrorString", &api->hipGetErrorString);
  api->architecture_offset = kArchitectureOffsetHip6;
  if (!Resolve(library, "hipGetDevicePropertiesR0600", &api->get_device_properties)) {
    api->architecture_offset = kArchitectureOffsetHip5;
    resolve("hipGetDeviceProperties", &api->get_device_properties);
  }
  if (missing != nullptr) {
    return Status::Error(std::string(library_name) + " has no function " + missing);
  }
  return Status::Ok();
}

}  // namespace

Status HipApi::Check(int error, const std::string& what) const {
  if (error == kHipSuccess) return Status::Ok();
  hipGetLastError();
  const char* name = hipGetErrorName(error);
  const char* description = hipGetErrorString(error);
  return Status::Error(what + ": " + (name != nullptr ? name : "HIP error") + " " +
                       std::to_string(error) + " (" +
                       (description != nullptr ? description : "no description") + ")");
}

Status FindHipApi(const HipApi** api) {
  static std::mutex mutex;
  static HipApi table;
  static bool found = false;

  const std::lock_guard lock(mutex);
  if (!found) {
    void* library = nullptr;
    const char* library_name = nullptr;
    for (const char* name : kLibraryNames) {
      void* candidate = dlopen(name, RTLD_NOLOAD | RTLD_LAZY);
      if (candidate == nullptr) continue;
      if (library != nullptr) {
        dlclose(candidate);
        dlclose(library);
        return Status::Error(std::string("both ") + library_name + " and " + name +
                             " are loaded in this process; only one HIP runtime may be");
      }
      library = candidate;
      library_name = name;
    }
    if (library == nullptr) {
      return Status::Error(
          "the HIP runtime (libamdhip64.so.7, .6 or .5) is not loaded in this process; it comes "
          "with "
          "JAX's ROCm plugin");
    }
    if (Status status = Fill(library, library_name, &table); !status.ok) {
      dlclose(library);
      return status;
    }
    found = true;  // the handle stays open for ever: modules and functions belong to it
  }
  *api = &table;
  return Status::Ok();
}

}  // namespace jax_fa
