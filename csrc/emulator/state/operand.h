// Operands outside the decoder: how they are made, and what a scalar source holds when it is read.
#ifndef JAX_FA_EMULATOR_STATE_OPERAND_H_
#define JAX_FA_EMULATOR_STATE_OPERAND_H_

#include <cstdint>

#include "emulator/state/wave.h"

namespace jax_fa::emulator {

inline Operand VgprOperand(uint32_t index, uint8_t dwords) {
  Operand operand;
  operand.kind = OperandKind::kVgpr;
  operand.dwords = dwords;
  operand.index = static_cast<uint16_t>(index);
  return operand;
}

// OperandKind::kSpecial, by source code.
enum SpecialSource : uint16_t {
  kSharedBase = 235,
  kSharedLimit = 236,
  kPrivateBase = 237,
  kPrivateLimit = 238,
  kVccz = 251,
  kExecz = 252,
  kSccSource = 253,
};
// The 64-bit value of a scalar source (kSgpr, kConstant, kSpecial): dwords 0 and 1.
uint64_t ReadScalarSource(const Wave& wave, const Operand& operand);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_STATE_OPERAND_H_
