// The table of targets and the code objects in jax_fa._native.
#include "runtime/targets.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "emulator/chip/chip.h"
#include "runtime/code_objects.h"

namespace nb = nanobind;

namespace {

// What runtime/targets.h and the emulated chip both state, for readers that may not know of each
// other, must agree: else the extension does not load.
void CheckTarget(const jax_fa::Target& target) {
  const std::string name(target.name);
  const jax_fa::emulator::Chip* const chip = jax_fa::emulator::TargetNamed(name);
  if (chip == nullptr) throw std::runtime_error("the emulator has no chip " + name);
  const auto check = [&](const char* fact, int stated, uint32_t emulated) {
    if (static_cast<uint32_t>(stated) == emulated) return;
    throw std::runtime_error(std::string(fact) + " of " + name + " must be the same everywhere; " +
                             std::to_string(stated) + " in runtime/targets.h, " +
                             std::to_string(emulated) + " in the emulator");
  };
  check("compute_units", target.compute_units, chip->compute_units);
  check("dies", target.dies, chip->dies);
  check("lds_bytes", target.lds_bytes, chip->max_lds_bytes);
  check("wave_size", target.flash_tiles.front().wave_size, chip->wave_size);
}

const jax_fa::Target& ToTarget(const std::string& name) {
  const jax_fa::Target* target = jax_fa::FindTarget(name);
  if (target == nullptr) {
    const std::string names = jax_fa::TargetNames("or");
    throw nb::value_error(("target must be " + names + "; got " + name).c_str());
  }
  return *target;
}

// The facts of runtime/targets.h that Python goes by.
nb::dict Targets() {
  nb::dict all;
  for (const jax_fa::Target& target : jax_fa::kTargets) {
    nb::dict facts;
    facts["compute_units"] = target.compute_units;
    facts["dies"] = target.dies;
    facts["lds_bytes"] = target.lds_bytes;
    facts["packed_rows"] = target.packed_rows;
    facts["max_head_dim"] = target.max_head_dim();
    facts["min_split_keys"] = target.min_split_keys();
    all[nb::cast(target.name)] = facts;
  }
  return all;
}

// The target that serves each architecture.
nb::dict Architectures() {
  nb::dict all;
  for (const jax_fa::Architecture& architecture : jax_fa::kArchitectures) {
    all[nb::cast(architecture.name)] = nb::cast(architecture.target);
  }
  return all;
}

nb::bytes CodeObject(const std::string& target) {
  std::span<const std::byte> image;
  if (!jax_fa::GetCodeObject(ToTarget(target), &image).ok) return nb::bytes("", 0);
  return nb::bytes(image.data(), image.size());
}

}  // namespace

void BindTargets(nb::module_& module) {
  for (const jax_fa::Target& target : jax_fa::kTargets) CheckTarget(target);
  module.def("targets", &Targets);
  module.def("architectures", &Architectures);
  module.attr("head_dim_multiple") = jax_fa::kHeadDimMultiple;
  module.def("code_object", &CodeObject, nb::arg("target"));
}
