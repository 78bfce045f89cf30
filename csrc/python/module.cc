// The extension module jax_fa._native: bindings only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "ffi/append.h"
#include "ffi/flash.h"
#include "ffi/paged.h"
#include "ffi/varlen.h"
#include "launch/attention.h"
#include "runtime/code_objects.h"
#include "runtime/hip_runtime.h"

namespace nb = nanobind;

// csrc/emulator/python/emulator.cc
void BindEmulator(nb::module_& module);

namespace {

struct Registration {
  const char* target;
  XLA_FFI_Handler* initialize;  // null: the handler is one of CPUs
  XLA_FFI_Handler* execute;
};

constexpr Registration kRegistrations[] = {
    {"jax_fa_flash", jax_fa_flash_initialize, jax_fa_flash_execute},
    {"jax_fa_varlen", jax_fa_varlen_initialize, jax_fa_varlen_execute},
    {"jax_fa_paged", jax_fa_paged_initialize, jax_fa_paged_execute},
    {"jax_fa_append", nullptr, jax_fa_append_execute},
};

nb::dict Registrations() {
  nb::dict all;
  for (const Registration& registration : kRegistrations) {
    nb::dict stages;
    if (registration.initialize != nullptr) {
      stages["initialize"] = nb::capsule(reinterpret_cast<void*>(registration.initialize));
    }
    stages["execute"] = nb::capsule(reinterpret_cast<void*>(registration.execute));
    all[registration.target] = stages;
  }
  return all;
}

void RaiseUnlessOk(const jax_fa::Status& status) {
  if (!status.ok) throw std::runtime_error(status.message);
}

jax_fa::Target ToTarget(const std::string& name) {
  const auto target = jax_fa::ParseTarget(name);
  if (!target) throw nb::value_error(("target must be gfx950 or gfx1201; got " + name).c_str());
  return *target;
}

nb::bytes CodeObject(const std::string& target) {
  const auto image = jax_fa::EmbeddedCodeObject(ToTarget(target));
  return nb::bytes(image.data(), image.size());
}

// The numbers that a static choice of num_splits is made from.
nb::dict DecodeTile(const std::string& target, int head_dim) {
  const jax_fa::Target parsed = ToTarget(target);
  const jax_fa::AttentionKernel* kernel = jax_fa::FindAttentionKernel(
      parsed, jax_fa::KernelFamily::kDecode, jax_fa::DataType::kBfloat16, head_dim, false, false);
  if (kernel == nullptr || head_dim < 1) {
    throw nb::value_error(("head_dim must be 1 to 256; got " + std::to_string(head_dim)).c_str());
  }
  const jax_fa::AttentionTile tile = jax_fa::GetTile(parsed, kernel->family, kernel->head_dim_tile);
  nb::dict numbers;
  numbers["compute_units"] = jax_fa::ComputeUnits(parsed);
  numbers["block_q"] = tile.block_q();
  numbers["block_kv"] = tile.block_kv;
  numbers["key_parts"] = tile.key_parts;
  return numbers;
}

std::vector<std::string> HipDevices() {
  std::vector<std::string> architectures;
  RaiseUnlessOk(jax_fa::ListHipArchitectures(&architectures));
  return architectures;
}

// The path of a flash call on a HIP device below the FFI handler, with the addresses given as
// numbers: lets tests watch it through a stand-in library.
void HipFlash(int device, uintptr_t stream, const std::array<int64_t, 6>& shape,
              uintptr_t address) {
  jax_fa::AttentionProblem problem;
  problem.query = problem.key = problem.value = reinterpret_cast<void*>(address);
  problem.out = reinterpret_cast<void*>(address);
  problem.lse = reinterpret_cast<float*>(address);
  problem.batch = shape[0];
  problem.seqlen_q = shape[1];
  problem.seqlen_k = shape[2];
  problem.num_heads = shape[3];
  problem.num_kv_heads = shape[4];
  problem.head_dim = shape[5];

  const nb::gil_scoped_release release;
  jax_fa::HipRuntime runtime(device, reinterpret_cast<void*>(stream));
  jax_fa::Target target;
  RaiseUnlessOk(runtime.GetTarget(&target));
  RaiseUnlessOk(runtime.Load(target));
  RaiseUnlessOk(jax_fa::LaunchAttention(runtime, target, problem));
}

int HipComputeUnits(int device) {
  int count = 0;
  RaiseUnlessOk(jax_fa::HipRuntime(device, nullptr).GetComputeUnits(&count));
  return count;
}

}  // namespace

NB_MODULE(_native, module) {
  module.def("registrations", &Registrations);
  module.def("code_object", &CodeObject, nb::arg("target"));
  module.def("decode_tile", &DecodeTile, nb::arg("target"), nb::arg("head_dim"));
  module.def("hip_devices", &HipDevices);
  module.def("hip_compute_units", &HipComputeUnits, nb::arg("device"));
  module.def("hip_flash", &HipFlash, nb::arg("device"), nb::arg("stream"), nb::arg("shape"),
             nb::arg("address"));
  BindEmulator(module);
}
