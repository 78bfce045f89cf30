#include "runtime/hip_api.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include "runtime/hip_library.h"

namespace jax_fa {
namespace {

// hipDeviceProp_t changed its layout in HIP 6, which gave the new one a suffixed symbol; the
// unsuffixed symbol keeps the old layout for ever.
constexpr size_t kArchitectureOffsetHip6 = 1160;
constexpr size_t kArchitectureOffsetHip5 = 396;

template <class Function>
bool Resolve(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

Status Fill(void* library, const std::string& file, HipApi* api) {
  api->file = file;
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
    return Status::Error(file + " has no function " + missing +
                         ": it is too old, or no HIP library; install the ROCm that JAX's plugin "
                         "is made for, or take the file out of LD_LIBRARY_PATH");
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

Status FindHipApi(const void* xla, const HipApi** api) {
  static std::mutex mutex;
  // By caller, so that a call looks once; libraries stay open for ever, since modules and functions
  // belong to them.
  static auto* const by_caller = new std::map<const void*, const HipApi*>;
  static auto* const by_file = new std::map<std::string, HipApi>;

  const std::lock_guard lock(mutex);
  if (const auto known = by_caller->find(xla); known != by_caller->end()) {
    *api = known->second;
    return Status::Ok();
  }
  std::string file;
  if (Status status = FindHipLibrary(xla, &file); !status.ok) return status;
  auto found = by_file->find(file);
  if (found == by_file->end()) {
    HipApi table;
    void* const library = dlopen(file.c_str(), RTLD_NOLOAD | RTLD_LAZY);
    if (library == nullptr) return Status::Error(file + " is no longer loaded");
    if (Status status = Fill(library, file, &table); !status.ok) {
      dlclose(library);
      return status;
    }
    found = by_file->emplace(file, table).first;
  }
  *api = by_caller->emplace(xla, &found->second).first->second;
  return Status::Ok();
}

}  // namespace jax_fa
