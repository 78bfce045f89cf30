// A kernel's decoded text as plain values, for static reports: what stands where, and where control
// can go from there.
#ifndef JAX_FA_EMULATOR_OBJECT_LISTING_H_
#define JAX_FA_EMULATOR_OBJECT_LISTING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/object/program.h"
#include "emulator/state/instruction.h"

namespace jax_fa::emulator {

struct ListedInstruction {
  uint32_t pc = 0;  // image offset
  const char* mnemonic = nullptr;
  OpClass op_class = OpClass::kNop;
  bool falls_through = true;       // control may go on behind it
  std::optional<uint32_t> target;  // where a branch may go instead
  std::string text;                // as findings print it
};

// The instructions of the kernel's own text in order; functions that it calls are not listed. Text
// that could not be decoded (padding, data) appears as "(undecoded)".
std::vector<ListedInstruction> ListInstructions(const Program& program, const Kernel& kernel);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_OBJECT_LISTING_H_
