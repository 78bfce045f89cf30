// What the host runs the emulator with, in jax_fa._native.
#include <nanobind/nanobind.h>

#include <string>

#include "emulator/exec/families.h"
#include "emulator/simd/level.h"

namespace nb = nanobind;

namespace jax_fa::emulator {
namespace {

// Where the functions of each SIMD level's rows start, by mnemonic.
nb::dict SimdCode() {
  nb::dict levels;
  for (const SimdLevel level : kSimdLevels) {
    nb::dict code;
    for (const auto& [mnemonic, row] : SimdRows(level)) {
      code[std::string(mnemonic).c_str()] = reinterpret_cast<uintptr_t>(row->exec);
    }
    levels[SimdLevelName(level)] = code;
  }
  return levels;
}

}  // namespace
}  // namespace jax_fa::emulator

void BindHost(nb::module_& module) {
  using namespace jax_fa::emulator;
  module.attr("host_compiler") = JAX_FA_HOST_COMPILER;
  module.def("simd_level", [] { return SimdLevelName(HostSimdLevel()); });
  module.def("simd_code", &SimdCode);
}
