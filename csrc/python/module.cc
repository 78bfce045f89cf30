// The extension module jax_fa._native: bindings only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "ffi/handlers.h"
#include "launch/attention.h"
#include "runtime/hip_library.h"
#include "runtime/hip_runtime.h"

namespace nb = nanobind;

void BindTargets(nb::module_& module);   // csrc/python/targets.cc
void BindEmulator(nb::module_& module);  // csrc/python/emulator.cc
void BindHost(nb::module_& module);      // csrc/python/host.cc
void BindInterrupts();                   // csrc/python/interrupt.cc

namespace {

nb::dict Registrations() {
  nb::dict all;
  for (const jax_fa::Registration& registration : jax_fa::Registrations()) {
    nb::dict stages;
    if (registration.initialize != nullptr) {
      stages["initialize"] = nb::capsule(reinterpret_cast<void*>(registration.initialize));
    }
    stages["execute"] = nb::capsule(reinterpret_cast<void*>(registration.execute));
    if (!all.contains(registration.platform)) all[registration.platform] = nb::dict();
    all[registration.platform][registration.target] = stages;
  }
  return all;
}

void RaiseUnlessOk(const jax_fa::Status& status) {
  if (!status.ok) throw std::runtime_error(status.message);
}

std::vector<std::string> HipDevices() {
  std::vector<std::string> architectures;
  RaiseUnlessOk(jax_fa::ListHipArchitectures(&architectures));
  return architectures;
}

std::string HipLibrary(uintptr_t xla) {
  std::string file;
  RaiseUnlessOk(jax_fa::FindHipLibrary(reinterpret_cast<const void*>(xla), &file));
  return file;
}

// Runs a flash call on a HIP device from below the FFI handler, all operands at one address, so
// that tests can watch it through a stand-in library.
void HipFlash(int device, uintptr_t stream, const std::array<int64_t, 6>& shape,
              uintptr_t address) {
  using jax_fa::Role;
  jax_fa::AttentionProblem problem;
  problem.batch = shape[0];
  problem.seqlen_q = shape[1];
  problem.seqlen_k = shape[2];
  problem.num_heads = shape[3];
  problem.num_kv_heads = shape[4];
  problem.head_dim = shape[5];
  const auto bind = [&](Role role, const char* name, int64_t bytes, bool writable) {
    problem[role] = {.name = name,
                     .data = reinterpret_cast<void*>(address),
                     .bytes = static_cast<size_t>(bytes),
                     .writable = writable};
  };
  const int64_t query_bytes = problem.query_elements() * jax_fa::kElementBytes;
  const int64_t key_bytes = problem.key_elements() * jax_fa::kElementBytes;
  bind(Role::kQuery, "query", query_bytes, false);
  bind(Role::kKey, "key", key_bytes, false);
  bind(Role::kValue, "value", key_bytes, false);
  bind(Role::kOut, "out", query_bytes, true);
  bind(Role::kLse, "lse", problem.query_rows() * static_cast<int64_t>(sizeof(float)), true);

  const nb::gil_scoped_release release;
  jax_fa::HipRuntime runtime(device, reinterpret_cast<void*>(stream), nullptr);
  const jax_fa::Target* target = nullptr;
  RaiseUnlessOk(runtime.GetTarget(&target));
  RaiseUnlessOk(runtime.Load(*target));
  RaiseUnlessOk(jax_fa::LaunchAttention(runtime, *target, problem));
}

}  // namespace

NB_MODULE(_native, module) {
  module.def("registrations", &Registrations);
  module.def("hip_library", &HipLibrary, nb::arg("xla") = 0);
  module.def("hip_devices", &HipDevices);
  module.def("hip_flash", &HipFlash, nb::arg("device"), nb::arg("stream"), nb::arg("shape"),
             nb::arg("address"));
  BindTargets(module);
  BindEmulator(module);
  BindHost(module);
  BindInterrupts();
}
