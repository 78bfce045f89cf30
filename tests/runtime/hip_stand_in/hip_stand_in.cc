// A strict stand-in for libamdhip64: no device behind it, the documented refusals in front.
//
// It keeps the rules of the real library that a launcher can break unseen on a lenient one:
// - The current device is per thread and decides about modules and streams.
// - A code object is for this chip, of a version that is loaded everywhere, with the chip's
// features;
//   its metadata says how long the arguments are, how large a workgroup may be and how much LDS it
//   has. The image must stay alive and unchanged.
// - Handles are those that the library gave. Memory is what hip_stand_in_memory() has declared; the
//   host's own must not reach a kernel.
// - The last error is kept as HIP 7 keeps it, or as its forerunners did. After a fault, every call
//   that needs the device fails, for ever.
// Every accepted call goes to a log that the test reads. Streams are numbered device * 256 + n, so
// that a stream tells its device. Devices come from the environment variable HIP_STAND_IN_DEVICES:
// target ids, separated by commas.
//
// hipModuleLaunchKernel counts the grid in workgroups, so that all are whole; a kernel that needs
// no such promise (uniform workgroups) is refused, since ours are all built with it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "code_object.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

#ifndef HIP_STAND_IN_MAJOR
#error "HIP_STAND_IN_MAJOR is the version to stand in for"
#endif

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
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchFailure = 719,
  kCaptureUnsupported = 900,
};

constexpr std::pair<int, const char*> kNames[] = {
    {kSuccess, "hipSuccess"},
    {kInvalidValue, "hipErrorInvalidValue"},
    {kInvalidConfiguration, "hipErrorInvalidConfiguration"},
    {kNoDevice, "hipErrorNoDevice"},
    {kInvalidDevice, "hipErrorInvalidDevice"},
    {kInvalidImage, "hipErrorInvalidImage"},
    {kNoBinaryForGpu, "hipErrorNoBinaryForGpu"},
    {kInvalidHandle, "hipErrorInvalidHandle"},
    {kNotFound, "hipErrorNotFound"},
    {kIllegalAddress, "hipErrorIllegalAddress"},
    {kLaunchOutOfResources, "hipErrorLaunchOutOfResources"},
    {kLaunchFailure, "hipErrorLaunchFailure"},
    {kCaptureUnsupported, "hipErrorStreamCaptureUnsupported"},
};

// What the tests' chips are, beside their name: the machine in e_flags, LDS of a workgroup.
struct Chip {
  const char* name;
  uint32_t machine;
  uint64_t lds_bytes;
};
constexpr Chip kChips[] = {
    {"gfx950", 0x4f, 160 << 10}, {"gfx1201", 0x4e, 64 << 10}, {"gfx1200", 0x48, 64 << 10}};

struct Module {
  int device;
  const unsigned char* image;
  std::vector<unsigned char> copy;  // of the image, to see that it did not change
  std::map<std::string, stand_in::Kernel> kernels;
};

struct Function {
  Module* module;
  std::string name;
  const stand_in::Kernel* kernel;
};

struct Range {
  uintptr_t begin, end;
};

std::mutex mutex;
std::string log_text;
std::vector<std::unique_ptr<Module>> modules;
std::vector<std::unique_ptr<Function>> functions;
std::vector<Range> memory;  // of the devices
bool capturing = false;
int fault = kSuccess;  // what a kernel has died of
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

// Up to HIP 6 a call that succeeds makes the last error forgotten.
int Succeed() {
  if (HIP_STAND_IN_MAJOR < 7) last_error = kSuccess;
  return kSuccess;
}

void Log(const std::string& line) { log_text += line + "\n"; }

bool IsDevice(int device) { return device >= 0 && device < static_cast<int>(Devices().size()); }

// A stream that exists, of the current device; the null stream is everywhere.
bool IsCurrent(void* stream) {
  const auto device = reinterpret_cast<uintptr_t>(stream) / 256;
  return stream == nullptr || device == static_cast<uintptr_t>(current_device);
}

const Chip* ChipOf(const std::string& device) {
  for (const Chip& chip : kChips) {
    if (device.substr(0, device.find(':')) == chip.name) return &chip;
  }
  return nullptr;
}

bool IsMemory(const void* data, uint64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  return std::any_of(memory.begin(), memory.end(), [&](const Range& range) {
    return range.begin <= begin && bytes <= range.end - begin && begin < range.end;
  });
}

// Whether an address is mapped in this process, so that a kernel that gets it would fault.
bool IsOfHost(uintptr_t address) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return false;
  bool mapped = false;
  unsigned long begin, end;
  while (!mapped && std::fscanf(maps, "%lx-%lx%*[^\n]", &begin, &end) == 2) {
    mapped = begin <= address && address < end;
  }
  std::fclose(maps);
  return mapped;
}

template <class T>
bool Holds(const std::vector<std::unique_ptr<T>>& all, const T* one) {
  return std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.get() == one; });
}

}  // namespace

// ---- The test's own entries
// ----------------------------------------------------------------------

EXPORT const char* hip_stand_in_log() { return log_text.c_str(); }
EXPORT void hip_stand_in_clear() { log_text.clear(); }
EXPORT void hip_stand_in_capture(int on) { capturing = on != 0; }
EXPORT int hip_stand_in_current_device() { return current_device; }
EXPORT void hip_stand_in_memory(uintptr_t begin, uint64_t bytes) {
  memory.push_back({begin, begin + bytes});
}
EXPORT void hip_stand_in_fault(int error) { fault = error; }

// ---- The library's
// -------------------------------------------------------------------------------

EXPORT int hipGetDeviceCount(int* count) {
  if (count == nullptr) return Fail(kInvalidValue);
  *count = static_cast<int>(Devices().size());
  return *count == 0 ? Fail(kNoDevice) : Succeed();
}

EXPORT int hipGetDevice(int* device) {
  if (device == nullptr) return Fail(kInvalidValue);
  *device = current_device;
  return Succeed();
}

EXPORT int hipSetDevice(int device) {
  if (!IsDevice(device)) return Fail(kInvalidDevice);
  current_device = device;
  return Succeed();
}

namespace {

int FillProperties(char* properties, int device, size_t offset, size_t bytes) {
  if (properties == nullptr) return Fail(kInvalidValue);
  if (!IsDevice(device)) return Fail(kInvalidDevice);
  std::memset(properties, 0x2a, bytes);  // every other field is something
  std::strcpy(properties + offset, Devices()[device].c_str());
  return Succeed();
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
  // Loading takes its time, without a lock: a caller that lets two threads load sees it twice.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::lock_guard lock(mutex);
  if (fault != kSuccess) return Fail(static_cast<Error>(fault));
  if (module == nullptr || image == nullptr) return Fail(kInvalidValue);
  const auto* elf = static_cast<const unsigned char*>(image);
  if (capturing) return Fail(kCaptureUnsupported);
  if (std::memcmp(elf, "\177ELF\2\1\1\100", 8) != 0) return Fail(kInvalidImage);
  if (elf[8] > 3) return Fail(kInvalidImage);  // code object version 6 and later
  const std::string device = Devices()[current_device];
  const Chip* const chip = ChipOf(device);
  const uint32_t flags = stand_in::Read<uint32_t>(elf + 48);
  if (chip == nullptr || (flags & 0xff) != chip->machine ||
      !stand_in::FeatureFits(flags, 8, device, "xnack") ||
      !stand_in::FeatureFits(flags, 10, device, "sramecc")) {
    return Fail(kNoBinaryForGpu);
  }
  Module loaded = {current_device, elf, {elf, elf + stand_in::ElfBytes(elf)}, {}};
  try {
    loaded.kernels = stand_in::ReadKernels(loaded.copy);
  } catch (const std::exception&) {
    return Fail(kInvalidImage);
  }
  modules.push_back(std::make_unique<Module>(std::move(loaded)));
  *module = modules.back().get();
  Log("load device=" + std::to_string(current_device));
  return Succeed();
}

EXPORT int hipModuleGetFunction(Function** function, Module* module, const char* name) {
  const std::lock_guard lock(mutex);
  if (fault != kSuccess) return Fail(static_cast<Error>(fault));
  if (function == nullptr || name == nullptr) return Fail(kInvalidValue);
  if (!Holds(modules, module)) return Fail(kInvalidHandle);
  if (module->device != current_device) std::abort();  // as older versions do
  const auto found = module->kernels.find(name);
  if (found == module->kernels.end()) return Fail(kNotFound);
  functions.push_back(std::make_unique<Function>(Function{module, name, &found->second}));
  *function = functions.back().get();
  return Succeed();
}

namespace {

// What the real library checks of a launch against the kernel's metadata and the device.
Error CheckKernel(const Function& function, const uint32_t (&block)[3], uint32_t dynamic_lds,
                  uint64_t argument_bytes) {
  const stand_in::Kernel& kernel = *function.kernel;
  const uint64_t lanes = uint64_t{block[0]} * block[1] * block[2];
  if (lanes > kernel.max_workgroup) return kLaunchFailure;
  for (int axis = 0; axis < 3; ++axis) {
    const uint64_t required = kernel.required_block[axis];
    if (required != 0 && required != block[axis]) return kInvalidValue;
  }
  if (!kernel.uniform) return kInvalidValue;
  const uint64_t lds = ChipOf(Devices()[current_device])->lds_bytes;
  if (dynamic_lds > lds) return kInvalidValue;
  if (kernel.lds_bytes + dynamic_lds > lds) return kLaunchOutOfResources;
  // The library copies each argument from where the metadata has it, so that fewer bytes would be
  // read past; hidden arguments are its own affair.
  if (argument_bytes != kernel.explicit_bytes) return kInvalidValue;
  return kSuccess;
}

}  // namespace

EXPORT int hipModuleLaunchKernel(Function* function, uint32_t grid_x, uint32_t grid_y,
                                 uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                                 uint32_t block_z, uint32_t dynamic_lds_bytes, void* stream,
                                 void** parameters, void** extra) {
  const std::lock_guard lock(mutex);
  if (fault != kSuccess) return Fail(static_cast<Error>(fault));
  if (!Holds(functions, function)) return Fail(kInvalidHandle);
  if ((parameters == nullptr) == (extra == nullptr)) return Fail(kInvalidValue);
  if (extra == nullptr) return Fail(kInvalidValue);  // none of ours come so
  if (extra[0] != reinterpret_cast<void*>(1) || extra[2] != reinterpret_cast<void*>(2) ||
      extra[4] != reinterpret_cast<void*>(3) || extra[1] == nullptr || extra[3] == nullptr) {
    return Fail(kInvalidValue);
  }
  if (grid_x == 0 || grid_y == 0 || grid_z == 0) return Fail(kInvalidValue);
  if (block_x == 0 || block_y == 0 || block_z == 0) return Fail(kInvalidConfiguration);
  if (uint64_t{block_x} * block_y * block_z > 1024) return Fail(kInvalidValue);
  if (grid_x > 0x7fffffff || grid_y > 65535 || grid_z > 65535) return Fail(kInvalidConfiguration);
  if (uint64_t{grid_x} * block_x > 0xffffffff) return Fail(kInvalidConfiguration);
  if (!IsCurrent(stream) || function->module->device != current_device) return Fail(kInvalidHandle);
  const uint64_t bytes = *static_cast<size_t*>(extra[3]);
  const Error error = CheckKernel(*function, {block_x, block_y, block_z}, dynamic_lds_bytes, bytes);
  if (error != kSuccess) return Fail(error);
  const std::vector<unsigned char>& copy = function->module->copy;
  if (std::memcmp(function->module->image, copy.data(), copy.size()) != 0) {
    return Fail(kLaunchFailure);  // the image did not stay
  }
  std::vector<unsigned char> kernarg(function->kernel->explicit_bytes);
  for (const stand_in::Argument& argument : function->kernel->arguments) {
    std::memcpy(&kernarg[argument.offset],
                static_cast<const unsigned char*>(extra[1]) + argument.offset, argument.bytes);
  }
  // The launch is accepted; its kernel faults, and the next call is told. Smaller numbers are
  // strides: a program that is not position independent has its own memory there.
  constexpr uintptr_t kLeastAddress = uintptr_t{1} << 40;
  for (size_t i = 0; i + 8 <= kernarg.size(); i += 8) {
    const auto word = stand_in::Read<uintptr_t>(&kernarg[i]);
    if (word >= kLeastAddress && IsOfHost(word)) fault = kIllegalAddress;
  }
  std::string arguments;
  for (const unsigned char byte : kernarg) {
    constexpr char kDigits[] = "0123456789abcdef";
    arguments += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  Log("launch device=" + std::to_string(current_device) + " stream=" +
      std::to_string(reinterpret_cast<uintptr_t>(stream)) + " kernel=" + function->name +
      " grid=" + std::to_string(grid_x) + " block=" + std::to_string(block_x) +
      " lds=" + std::to_string(dynamic_lds_bytes) + " arguments=" + arguments);
  return Succeed();
}

namespace {

int LogMemset(int width, void* data, int value, size_t count, void* stream) {
  const std::lock_guard lock(mutex);
  if (fault != kSuccess) return Fail(static_cast<Error>(fault));
  if (!IsCurrent(stream)) return Fail(kInvalidHandle);
  if (!IsMemory(data, count * width / 8)) return Fail(kInvalidValue);
  Log("memset width=" + std::to_string(width) +
      " data=" + std::to_string(reinterpret_cast<uintptr_t>(data)) +
      " value=" + std::to_string(value) + " count=" + std::to_string(count));
  return Succeed();
}

}  // namespace

EXPORT int hipMemsetAsync(void* data, int value, size_t bytes, void* stream) {
  return LogMemset(8, data, value, bytes, stream);
}

EXPORT int hipMemsetD32Async(void* data, int value, size_t count, void* stream) {
  return LogMemset(32, data, value, count, stream);
}

// Asking clears the error; that of a fault comes back.
EXPORT int hipGetLastError() {
  const int error = last_error;
  last_error = fault;
  return error;
}

EXPORT int hip_stand_in_last_error() { return last_error; }

EXPORT const char* hipGetErrorName(int error) {
  for (const auto& [known, name] : kNames) {
    if (known == error) return name;
  }
  return "hipErrorUnknown";
}

EXPORT const char* hipGetErrorString(int error) { return hipGetErrorName(error); }
