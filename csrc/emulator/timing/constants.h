// The values of one timing: a target's constants, some of them overridden.
#ifndef JAX_FA_EMULATOR_TIMING_CONSTANTS_H_
#define JAX_FA_EMULATOR_TIMING_CONSTANTS_H_

#include <array>
#include <cstddef>
#include <map>
#include <string>

#include "emulator/chip/chip.h"

namespace jax_fa::emulator {

class TimingConstants {
 public:
  // `overrides` by name; throws EmulatorError for an unknown name or a negative value.
  explicit TimingConstants(const Chip& chip, const std::map<std::string, double>& overrides = {});
  double operator[](Constant constant) const { return values_[static_cast<size_t>(constant)]; }

 private:
  std::array<double, kConstantCount> values_;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TIMING_CONSTANTS_H_
