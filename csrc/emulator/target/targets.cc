// The targets of the emulator: the one place that lists them.
#include <array>

#include "emulator/chip/chip.h"
#include "emulator/target/gfx1201/chip.h"
#include "emulator/target/gfx950/chip.h"

namespace jax_fa::emulator {

std::span<const Chip* const> Targets() {
  static constexpr std::array kTargets = {&kGfx950Chip, &kGfx1201Chip};
  return kTargets;
}

const Chip* TargetNamed(const std::string& name) {
  for (const Chip* chip : Targets()) {
    if (name == *chip->name) return chip;
  }
  return nullptr;
}

const Chip* TargetOfElf(uint32_t machine) {
  for (const Chip* chip : Targets()) {
    if (machine == chip->elf_machine) return chip;
  }
  return nullptr;
}

std::string TargetNames(const std::string& between) {
  std::string names;
  for (const Chip* chip : Targets()) {
    if (!names.empty()) names += between;
    names += *chip->name;
  }
  return names;
}

}  // namespace jax_fa::emulator
