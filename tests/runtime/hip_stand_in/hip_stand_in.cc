// A strict stand-in for libamdhip64: no device behind it, the documented refusals in front.
//
// It keeps the rules of the real library that a launcher can break unseen on a lenient one: the
// current device is per thread and decides about modules and streams, grid and block have limits,
// the argument array has an order, an image must stay alive and unchanged. Every accepted call goes
// to a log that the test reads. Streams are numbered device * 256 + n, so that a stream tells its
// device. Devices come from the environment variable HIP_STAND_IN_DEVICES: architectures, separated
// by commas.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum Error {
  kSuccess = 0,
  kInvalidValue = 1,
  kInvalidConfiguration = 9,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kLaunchFailure = 719,
  kCaptureUnsupported = 900,
};

struct Module {
  int device;
  const unsigned char* image;
  std::vector<unsigned char> copy;  // of the image, to see that it did not change
};

struct Function {
  Module* module;
  std::string name;
};

std::mutex mutex;
std::string log_text;
std::vector<std::unique_ptr<Module>> modules;
std::vector<std::unique_ptr<Function>> functions;
bool capturing = false;
thread_local int current_device = 0;
thread_local int last_error = kSuccess;

std::vector<std::string> Devices() {
  std::vector<std::string> devices;
  const char* text = std::getenv("HIP_STAND_IN_DEVICES");
  std::string rest = text != nullptr ? text : "";
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    devices.push_back(rest.substr(0, comma));
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return devices;
}

int Fail(Error error) { return last_error = error; }

void Log(const std::string& line) { log_text += line + "\n"; }

bool IsDevice(int device) { return device >= 0 && device < static_cast<int>(Devices().size()); }

bool IsCurrent(void* stream) {
  return stream == nullptr ||
         static_cast<int>(reinterpret_cast<uintptr_t>(stream) / 256) == current_device;
}

// EF_AMDGPU_MACH of the architectures that the tests use.
uint32_t MachineOf(const std::string& architecture) {
  if (architecture.rfind("gfx950", 0) == 0) return 0x4f;
  if (architecture.rfind("gfx1201", 0) == 0) return 0x4e;
  if (architecture.rfind("gfx1200", 0) == 0) return 0x48;
  return 0;
}

uint64_t Read(const unsigned char* at, int bytes) {
  uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

// The image's bytes, from its section header table, which the linker puts last.
size_t ElfBytes(const unsigned char* elf) {
  return Read(elf + 40, 8) + Read(elf + 58, 2) * Read(elf + 60, 2);
}

// Whether the image's dynamic symbols hold `name`: a search for the zero-terminated text.
bool HasName(const std::vector<unsigned char>& image, const std::string& name) {
  const std::string needle = std::string(1, '\0') + name + std::string(1, '\0');
  const std::string text(image.begin(), image.end());
  return text.find(needle) != std::string::npos;
}

}  // namespace

// ---- The test's own entries
// ----------------------------------------------------------------------

EXPORT const char* hip_stand_in_log() { return log_text.c_str(); }
EXPORT void hip_stand_in_clear() { log_text.clear(); }
EXPORT void hip_stand_in_capture(int on) { capturing = on != 0; }
EXPORT int hip_stand_in_current_device() { return current_device; }

// ---- The library's
// -------------------------------------------------------------------------------

EXPORT int hipGetDeviceCount(int* count) {
  *count = static_cast<int>(Devices().size());
  return *count == 0 ? Fail(kNoDevice) : kSuccess;
}

EXPORT int hipGetDevice(int* device) {
  *device = current_device;
  return kSuccess;
}

EXPORT int hipSetDevice(int device) {
  if (!IsDevice(device)) return Fail(kInvalidDevice);
  current_device = device;
  return kSuccess;
}

#ifndef HIP_STAND_IN_MAJOR
#error "HIP_STAND_IN_MAJOR is the version to stand in for"
#endif

namespace {

int FillProperties(char* properties, int device, size_t offset, size_t bytes) {
  if (!IsDevice(device)) return Fail(kInvalidDevice);
  std::memset(properties, 0x2a, bytes);  // every other field is something
  std::strcpy(properties + offset, Devices()[device].c_str());
  return kSuccess;
}

}  // namespace

#if HIP_STAND_IN_MAJOR >= 6
EXPORT int hipGetDevicePropertiesR0600(char* properties, int device) {
  return FillProperties(properties, device, 1160, 1472);
}
#endif

// The layout before HIP 6, in every version.
EXPORT int hipGetDeviceProperties(char* properties, int device) {
  return FillProperties(properties, device, 396, 792);
}

EXPORT int hipModuleLoadData(Module** module, const void* image) {
  const std::lock_guard lock(mutex);
  const auto* elf = static_cast<const unsigned char*>(image);
  if (capturing) return Fail(kCaptureUnsupported);
  if (elf == nullptr || std::memcmp(elf, "\177ELF\2\1\1\100", 8) != 0) return Fail(kInvalidImage);
  if (elf[8] > 3) return Fail(kInvalidImage);  // code object version 6 and later
  if ((Read(elf + 48, 4) & 0xff) != MachineOf(Devices()[current_device])) {
    return Fail(kNoBinaryForGpu);
  }
  modules.push_back(std::make_unique<Module>(
      Module{current_device, elf, std::vector<unsigned char>(elf, elf + ElfBytes(elf))}));
  *module = modules.back().get();
  Log("load device=" + std::to_string(current_device));
  return kSuccess;
}

EXPORT int hipModuleGetFunction(Function** function, Module* module, const char* name) {
  const std::lock_guard lock(mutex);
  if (module == nullptr) return Fail(kInvalidHandle);
  if (module->device != current_device) std::abort();  // as older versions do
  if (!HasName(module->copy, name)) return Fail(kNotFound);
  functions.push_back(std::make_unique<Function>(Function{module, name}));
  *function = functions.back().get();
  return kSuccess;
}

EXPORT int hipModuleLaunchKernel(Function* function, uint32_t grid_x, uint32_t grid_y,
                                 uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                                 uint32_t block_z, uint32_t dynamic_lds_bytes, void* stream,
                                 void** parameters, void** extra) {
  const std::lock_guard lock(mutex);
  if (function == nullptr) return Fail(kInvalidHandle);
  if ((parameters == nullptr) == (extra == nullptr)) return Fail(kInvalidValue);
  if (extra != nullptr &&
      (extra[0] != reinterpret_cast<void*>(1) || extra[2] != reinterpret_cast<void*>(2) ||
       extra[4] != reinterpret_cast<void*>(3))) {
    return Fail(kInvalidValue);
  }
  if (grid_x == 0 || grid_y == 0 || grid_z == 0) return Fail(kInvalidValue);
  if (block_x == 0 || block_y == 0 || block_z == 0) return Fail(kInvalidConfiguration);
  if (uint64_t{block_x} * block_y * block_z > 1024) return Fail(kInvalidValue);
  if (grid_x > 0x7fffffff || grid_y > 65535 || grid_z > 65535) return Fail(kInvalidConfiguration);
  if (uint64_t{grid_x} * block_x > 0xffffffff) return Fail(kInvalidConfiguration);
  if (dynamic_lds_bytes > 65536) return Fail(kInvalidValue);
  if (!IsCurrent(stream) || function->module->device != current_device) return Fail(kInvalidHandle);
  const std::vector<unsigned char>& copy = function->module->copy;
  if (std::memcmp(function->module->image, copy.data(), copy.size()) != 0) {
    return Fail(kLaunchFailure);  // the image did not stay
  }
  std::string arguments;
  if (extra != nullptr) {
    const auto* bytes = static_cast<const unsigned char*>(extra[1]);
    for (size_t i = 0; i < *static_cast<size_t*>(extra[3]); ++i) {
      constexpr char kDigits[] = "0123456789abcdef";
      arguments += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
    }
  }
  Log("launch device=" + std::to_string(current_device) + " stream=" +
      std::to_string(reinterpret_cast<uintptr_t>(stream)) + " kernel=" + function->name +
      " grid=" + std::to_string(grid_x) + " block=" + std::to_string(block_x) +
      " lds=" + std::to_string(dynamic_lds_bytes) + " arguments=" + arguments);
  return kSuccess;
}

namespace {

int LogMemset(const char* width, void* data, int value, size_t count, void* stream) {
  const std::lock_guard lock(mutex);
  if (!IsCurrent(stream)) return Fail(kInvalidHandle);
  Log(std::string("memset width=") + width +
      " data=" + std::to_string(reinterpret_cast<uintptr_t>(data)) +
      " value=" + std::to_string(value) + " count=" + std::to_string(count));
  return kSuccess;
}

}  // namespace

EXPORT int hipMemsetAsync(void* data, int value, size_t bytes, void* stream) {
  return LogMemset("8", data, value, bytes, stream);
}

EXPORT int hipMemsetD32Async(void* data, int value, size_t count, void* stream) {
  return LogMemset("32", data, value, count, stream);
}

EXPORT int hipGetLastError() {
  const int error = last_error;
  last_error = kSuccess;
  return error;
}

EXPORT int hip_stand_in_last_error() { return last_error; }

EXPORT const char* hipGetErrorName(int error) {
  switch (error) {
    case kSuccess:
      return "hipSuccess";
    case kInvalidValue:
      return "hipErrorInvalidValue";
    case kInvalidDevice:
      return "hipErrorInvalidDevice";
    case kNoBinaryForGpu:
      return "hipErrorNoBinaryForGpu";
    case kCaptureUnsupported:
      return "hipErrorStreamCaptureUnsupported";
    case kInvalidHandle:
      return "hipErrorInvalidHandle";
    default:
      return "hipErrorUnknown";
  }
}

EXPORT const char* hipGetErrorString(int error) { return hipGetErrorName(error); }
