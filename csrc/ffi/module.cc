// The extension module jax_fa._native: bindings only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "ffi/flash.h"
#include "launch/flash.h"
#include "runtime/code_objects.h"
#include "runtime/hip_runtime.h"

namespace nb = nanobind;

// csrc/emulator/bindings.cc
void BindEmulator(nb::module_& module);

namespace {

struct Registration {
  const char* target;
  XLA_FFI_Handler* initialize;
  XLA_FFI_Handler* execute;
};

constexpr Registration kRegistrations[] = {
    {"jax_fa_flash", jax_fa_flash_initialize, jax_fa_flash_execute},
};

nb::dict Registrations() {
  nb::dict all;
  for (const Registration& registration : kRegistrations) {
    nb::dict stages;
    stages["initialize"] = nb::capsule(reinterpret_cast<void*>(registration.initialize));
    stages["execute"] = nb::capsule(reinterpret_cast<void*>(registration.execute));
    all[registration.target] = stages;
  }
  return all;
}

void RaiseUnlessOk(const jax_fa::Status& status) {
  if (!status.ok) throw std::runtime_error(status.message);
}

nb::bytes CodeObject(const std::string& target) {
  const auto parsed = jax_fa::ParseTarget(target);
  if (!parsed) {
    throw nb::value_error(("target must be gfx950 or gfx1201; got " + target).c_str());
  }
  const auto image = jax_fa::EmbeddedCodeObject(*parsed);
  return nb::bytes(image.data(), image.size());
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
  jax_fa::FlashProblem problem;
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
  RaiseUnlessOk(jax_fa::LaunchFlash(runtime, target, problem));
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
  module.def("hip_devices", &HipDevices);
  module.def("hip_compute_units", &HipComputeUnits, nb::arg("device"));
  module.def("hip_flash", &HipFlash, nb::arg("device"), nb::arg("stream"), nb::arg("shape"),
             nb::arg("address"));
  BindEmulator(module);
}
