#include "emulator/run/wave_setup.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "emulator/check/check.h"

namespace jax_fa::emulator {
namespace {

// kernel_code_properties.
enum Property : uint32_t {
  kPrivateSegmentBuffer = 1u << 0,
  kDispatchPointer = 1u << 1,
  kQueuePointer = 1u << 2,
  kKernargPointer = 1u << 3,
  kDispatchId = 1u << 4,
  kFlatScratchInit = 1u << 5,
  kPrivateSegmentSize = 1u << 6,
};

// Code for processors that preload arguments begins this far in; before it stands code for firmware
// that cannot.
constexpr uint32_t kPreloadPrologueBytes = 256;

class ScalarFile {
 public:
  explicit ScalarFile(Wave* wave) : wave_(wave) {}
  void Put(uint32_t value) {
    if (next_ >= kSgprVccLo) throw EmulatorError("the kernel descriptor wants too many user SGPRs");
    Set(next_++, value);
  }
  void Put64(uint64_t value) {
    Put(static_cast<uint32_t>(value));
    Put(static_cast<uint32_t>(value >> 32));
  }
  void Set(uint32_t index, uint32_t value) {
    wave_->sgpr[index] = value;
    DeclareSgpr(*wave_, index);
  }
  uint32_t next() const { return next_; }
  void Skip(uint32_t to) { next_ = std::max(next_, to); }

 private:
  Wave* wave_;
  uint32_t next_ = 0;
};

void PutUserSgprs(const LaunchContext& launch, ScalarFile* file) {
  const KernelDescriptor& descriptor = launch.kernel->descriptor;
  const uint32_t properties = descriptor.properties;
  if (properties & kPrivateSegmentBuffer) {
    file->Put64(0);
    file->Put64(0);
  }
  if (properties & kDispatchPointer) file->Put64(launch.dispatch_address);
  if (properties & kQueuePointer) file->Put64(0);
  if (properties & kKernargPointer) file->Put64(launch.kernarg_address);
  if (properties & kDispatchId) file->Put64(0);
  if (properties & kFlatScratchInit) file->Put64(0);
  if (properties & kPrivateSegmentSize) file->Put(descriptor.private_segment_bytes);
  for (uint32_t i = 0; i < descriptor.preload_dwords; ++i) {
    const size_t offset = size_t{4} * (descriptor.preload_offset_dwords + i);
    uint32_t value = 0;
    if (offset + 4 <= launch.kernarg.size()) std::memcpy(&value, &launch.kernarg[offset], 4);
    file->Put(value);
  }
}

void PutWorkgroupId(const LaunchContext& launch, const Wave& wave, ScalarFile* file) {
  const Workgroup& group = *wave.group;
  const uint32_t resource2 = launch.kernel->descriptor.resource2;
  if (launch.program->chip->workgroup_id_in_ttmp) {
    file->Set(kSgprTtmp0 + 9, group.id[0]);
    file->Set(kSgprTtmp0 + 7, group.id[1] | (group.id[2] << 16));
    file->Set(kSgprTtmp0 + 8, wave.index_in_group << 25);
    return;
  }
  for (uint32_t axis = 0; axis < 3; ++axis) {
    if ((resource2 >> (7 + axis)) & 1) file->Put(group.id[axis]);
  }
  if ((resource2 >> 10) & 1) file->Put(0);  // workgroup info
  if (resource2 & 1) file->Put(0);          // private segment wave offset
}

void SetMode(const LaunchContext& launch, Wave* wave) {
  const uint32_t resource1 = launch.kernel->descriptor.resource1;
  wave->round_f32 = (resource1 >> 12) & 3;
  wave->round_f64 = (resource1 >> 14) & 3;
  wave->denorm_f32 = (resource1 >> 16) & 3;
  wave->denorm_f64 = (resource1 >> 18) & 3;
  const bool has_clamp_and_ieee = launch.program->chip->has_clamp_and_ieee;
  wave->dx10_clamp = !has_clamp_and_ieee || ((resource1 >> 21) & 1) != 0;
  wave->ieee = has_clamp_and_ieee && ((resource1 >> 23) & 1) != 0;
  if ((resource1 >> 26) & 1) {
    throw EmulatorError("kernel '" + launch.kernel->info.name +
                        "' sets FP16_OVFL, which is not emulated");
  }
}

}  // namespace

void SetUpWave(const LaunchContext& launch, Wave* wave) {
  const uint32_t lanes = launch.kernel->info.wave_size;
  const uint32_t first = wave->index_in_group * lanes;
  const uint32_t total = launch.block[0] * launch.block[1] * launch.block[2];
  const uint32_t active = std::min(lanes, total - first);
  wave->lanes = static_cast<uint8_t>(lanes);
  wave->full_exec = lanes == 64 ? ~uint64_t{0} : 0xffffffff;
  wave->exec = active == 64 ? ~uint64_t{0} : (uint64_t{1} << active) - 1;
  wave->pc = launch.kernel->descriptor.entry;
  if (launch.kernel->descriptor.preload_dwords != 0) wave->pc += kPreloadPrologueBytes;
  SetMode(launch, wave);

  ScalarFile file(wave);
  PutUserSgprs(launch, &file);
  file.Skip((launch.kernel->descriptor.resource2 >> 1) & 31);
  PutWorkgroupId(launch, *wave, &file);

  // The work item's place in the block, packed into v0.
  uint32_t* v0 = wave->Row(0);
  for (uint32_t lane = 0; lane < active; ++lane) {
    const uint32_t item = first + lane;
    const uint32_t x = item % launch.block[0];
    const uint32_t y = item / launch.block[0] % launch.block[1];
    const uint32_t z = item / launch.block[0] / launch.block[1];
    v0[lane] = x | (y << 10) | (z << 20);
  }
  DeclareVgpr(*wave, 0);
}

void FillHiddenArguments(const LaunchContext& launch, size_t given_bytes,
                         std::span<uint8_t> kernarg) {
  for (const KernelArgument& argument : launch.kernel->arguments) {
    if (!argument.hidden() || argument.offset < given_bytes || argument.bytes > 8) continue;
    const std::string_view kind = argument.kind;
    uint64_t value = 0;
    for (size_t axis = 0; axis < 3; ++axis) {
      const std::string suffix = std::string("_") + "xyz"[axis];
      if (kind == "hidden_block_count" + suffix) value = launch.grid[axis];
      if (kind == "hidden_group_size" + suffix) value = launch.block[axis];
    }
    if (kind == "hidden_grid_dims") {
      value = launch.grid[2] > 1 || launch.block[2] > 1   ? 3
              : launch.grid[1] > 1 || launch.block[1] > 1 ? 2
                                                          : 1;
    }
    if (kind == "hidden_dynamic_lds_size") value = launch.options->dynamic_lds_bytes;
    if (kind == "hidden_shared_base") value = kSharedAperture >> 32;
    if (kind == "hidden_private_base") value = kPrivateAperture >> 32;
    std::memcpy(&kernarg[argument.offset], &value, argument.bytes);
  }
}

}  // namespace jax_fa::emulator
