#include "runtime/hip_runtime.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "runtime/code_objects.h"
#include "runtime/hip_api.h"

namespace jax_fa {
namespace {

constexpr int kHipErrorNoDevice = 100;

// To a user these three errors mean the same: this driver does not load this code object.
constexpr int kHipErrorInvalidImage = 200;
constexpr int kHipErrorNoBinaryForGpu = 209;
constexpr int kHipErrorInvalidKernelFile = 218;

// Properties are 1472 bytes in HIP 6 and 7; the library writes its own idea of the structure.
constexpr size_t kPropertiesBytes = 8192;

struct LoadedModule {
  std::unique_ptr<std::byte[]> image;  // the library keeps pointers into it
  HipModule module = nullptr;
  std::unordered_map<std::string, HipFunction> functions;
};

struct Device {
  std::string architecture;  // with feature flags; empty: not asked yet
  std::map<const Target*, LoadedModule> modules;
};

struct DeviceCache {
  std::mutex mutex;
  std::map<std::pair<const HipApi*, int>, Device> devices;
};

DeviceCache& Cache() {
  static DeviceCache* cache = new DeviceCache;  // outlives every thread that may still launch
  return *cache;
}

// The architecture without its feature flags: "gfx950" of "gfx950:sramecc+:xnack-".
std::string_view WithoutFeatureFlags(std::string_view architecture) {
  return architecture.substr(0, architecture.find(':'));
}

// Makes `device` the calling thread's current device, and the former one again at the end. The
// current device is per thread, and a launch on another device's stream fails or aborts.
class CurrentDevice {
 public:
  CurrentDevice(const HipApi& api, int device) : api_(api) {
    status_ = api.Check(api.hipGetDevice(&former_), "hipGetDevice");
    if (!status_.ok || former_ == device) return;
    status_ = api.Check(api.hipSetDevice(device), "hipSetDevice(" + std::to_string(device) + ")");
    restore_ = status_.ok;
  }
  ~CurrentDevice() {
    if (restore_) api_.hipSetDevice(former_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  const Status& status() const { return status_; }

 private:
  const HipApi& api_;
  int former_ = 0;
  bool restore_ = false;
  Status status_;
};

Status GetArchitectureLocked(const HipApi& api, int device, std::string* architecture) {
  std::string& known = Cache().devices[{&api, device}].architecture;
  if (known.empty()) {
    const auto properties = std::make_unique<char[]>(kPropertiesBytes);  // zeroed
    const Status status = api.Check(api.get_device_properties(properties.get(), device),
                                    "hipGetDeviceProperties(" + std::to_string(device) + ")");
    if (!status.ok) return status;
    const char* name = properties.get() + api.architecture_offset;
    const std::string text(name, strnlen(name, 256));
    if (!text.starts_with("gfx")) {
      return Status::Error("HIP device " + std::to_string(device) +
                           " does not tell its architecture: expected gfx..., got '" + text + "'");
    }
    known = text;
  }
  *architecture = known;
  return Status::Ok();
}

Status GetArchitecture(const HipApi& api, int device, std::string* architecture) {
  const std::lock_guard lock(Cache().mutex);
  return GetArchitectureLocked(api, device, architecture);
}

// Where an ELF file's header has the machine number: the low byte of e_flags, whose other bits say
// what the code takes of xnack and sramecc.
constexpr size_t kMachineAt = 48;

Status LoadLocked(const HipApi& api, int device, const Target& target, LoadedModule* loaded) {
  std::span<const std::byte> code;
  if (Status status = GetCodeObject(target, &code); !status.ok) return status;
  auto image = std::make_unique<std::byte[]>(code.size());
  std::memcpy(image.get(), code.data(), code.size());
  std::string name;
  if (Status status = GetArchitectureLocked(api, device, &name); !status.ok) return status;
  name = WithoutFeatureFlags(name);
  const Architecture* const architecture = FindArchitecture(name);
  if (architecture != nullptr && architecture->target == target.name) {
    image[kMachineAt] = static_cast<std::byte>(architecture->machine);
  }
  HipModule module = nullptr;
  const int error = api.hipModuleLoadData(&module, image.get());
  const bool unloadable = error == kHipErrorInvalidImage || error == kHipErrorNoBinaryForGpu ||
                          error == kHipErrorInvalidKernelFile;
  std::string what = "loading the kernels for " + name + " on HIP device " + std::to_string(device);
  if (unloadable) {
    what += " through " + api.file + " (" + name + " needs ROCm " + std::string(target.first_rocm) +
            " or later; implementation=\"xla\" needs no kernels)";
  }
  if (Status status = api.Check(error, what); !status.ok) return status;
  loaded->image = std::move(image);
  loaded->module = module;
  return Status::Ok();
}

// The module of `device`, which must be current, loaded on first use.
Status GetModuleLocked(const HipApi& api, int device, const Target& target, LoadedModule** loaded) {
  LoadedModule& entry = Cache().devices[{&api, device}].modules[&target];
  if (entry.module == nullptr) {
    if (Status status = LoadLocked(api, device, target, &entry); !status.ok) return status;
  }
  *loaded = &entry;
  return Status::Ok();
}

Status GetFunction(const HipApi& api, int device, const Target& target, std::string_view kernel,
                   HipFunction* function) {
  const std::lock_guard lock(Cache().mutex);
  LoadedModule* loaded = nullptr;
  if (Status status = GetModuleLocked(api, device, target, &loaded); !status.ok) return status;
  const std::string name(kernel);
  HipFunction& entry = loaded->functions[name];
  if (entry == nullptr) {
    Status status = api.Check(api.hipModuleGetFunction(&entry, loaded->module, name.c_str()),
                              "kernel " + name + " for " + std::string(target.name));
    if (!status.ok) {
      entry = nullptr;
      return status;
    }
  }
  *function = entry;
  return Status::Ok();
}

// Runs `work(api)` with `device` current.
template <class Work>
Status WithDevice(const void* xla, int device, Work&& work) {
  const HipApi* api = nullptr;
  if (Status status = FindHipApi(xla, &api); !status.ok) return status;
  const CurrentDevice current(*api, device);
  if (!current.status().ok) return current.status();
  return work(*api);
}

}  // namespace

Status HipRuntime::GetTarget(const Target** target) {
  const HipApi* api = nullptr;
  if (Status status = FindHipApi(xla_, &api); !status.ok) return status;
  std::string name;
  if (Status status = GetArchitecture(*api, device_, &name); !status.ok) return status;
  const Architecture* const architecture = FindArchitecture(WithoutFeatureFlags(name));
  if (architecture == nullptr) {
    return Status::Error("jax_fa has kernels for " + TargetNames("and") + "; HIP device " +
                         std::to_string(device_) + " is " + name +
                         ", which implementation=\"xla\" serves");
  }
  *target = FindTarget(architecture->target);
  return Status::Ok();
}

Status HipRuntime::Load(const Target& target) {
  return WithDevice(xla_, device_, [&](const HipApi& api) {
    const std::lock_guard lock(Cache().mutex);
    LoadedModule* loaded = nullptr;
    return GetModuleLocked(api, device_, target, &loaded);
  });
}

Status HipRuntime::Launch(const Target& target, const struct Launch& launch) {
  return WithDevice(xla_, device_, [&](const HipApi& api) {
    HipFunction function = nullptr;
    if (Status status = GetFunction(api, device_, target, launch.kernel, &function); !status.ok) {
      return status;
    }
    // The explicit arguments only; the library appends the hidden ones itself.
    size_t argument_bytes = launch.arguments.size();
    void* extra[] = {kHipLaunchBufferPointer, const_cast<std::byte*>(launch.arguments.data()),
                     kHipLaunchBufferSize, &argument_bytes, kHipLaunchEnd};
    return api.Check(
        api.hipModuleLaunchKernel(function, launch.grid.x, launch.grid.y, launch.grid.z,
                                  launch.block.x, launch.block.y, launch.block.z,
                                  launch.dynamic_lds_bytes, stream_, nullptr, extra),
        "launching " + std::string(launch.kernel));
  });
}

Status HipRuntime::MemsetD8(const Buffer& buffer, uint8_t value) {
  if (buffer.bytes == 0) return Status::Ok();
  return WithDevice(xla_, device_, [&](const HipApi& api) {
    return api.Check(api.hipMemsetAsync(buffer.data, value, buffer.bytes, stream_),
                     "filling " + std::string(buffer.name));
  });
}

Status HipRuntime::MemsetD32(const Buffer& buffer, uint32_t value) {
  if (buffer.bytes == 0) return Status::Ok();
  return WithDevice(xla_, device_, [&](const HipApi& api) {
    return api.Check(
        api.hipMemsetD32Async(buffer.data, static_cast<int>(value), buffer.bytes / 4, stream_),
        "filling " + std::string(buffer.name));
  });
}

Status ListHipArchitectures(std::vector<std::string>* architectures) {
  architectures->clear();
  const HipApi* api = nullptr;
  if (Status status = FindHipApi(nullptr, &api); !status.ok) return status;
  int count = 0;
  const int error = api->hipGetDeviceCount(&count);
  if (error == kHipErrorNoDevice) {
    api->hipGetLastError();
    return Status::Ok();
  }
  if (Status status = api->Check(error, "hipGetDeviceCount"); !status.ok) return status;
  for (int device = 0; device < count; ++device) {
    std::string architecture;
    if (Status status = GetArchitecture(*api, device, &architecture); !status.ok) return status;
    architectures->emplace_back(WithoutFeatureFlags(architecture));
  }
  return Status::Ok();
}

}  // namespace jax_fa
