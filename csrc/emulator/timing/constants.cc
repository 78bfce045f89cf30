#include "emulator/timing/constants.h"

#include "emulator/emulator.h"

namespace jax_fa::emulator {

TimingConstants::TimingConstants(const Chip& chip, const std::map<std::string, double>& overrides) {
  size_t used = 0;
  for (const ConstantRow& row : *chip.timing.constants) {
    double& value = values_[static_cast<size_t>(row.constant)];
    value = row.value;
    const auto found = overrides.find(row.name);
    if (found == overrides.end()) continue;
    value = found->second;
    ++used;
    if (!(value >= 0)) throw EmulatorError(std::string(row.name) + " must not be negative");
  }
  if (used == overrides.size()) return;
  for (const auto& [name, value] : overrides) {
    bool known = false;
    for (const ConstantRow& row : *chip.timing.constants) known = known || name == row.name;
    if (!known) throw EmulatorError("the timing model has no constant named '" + name + "'");
  }
}

}  // namespace jax_fa::emulator
