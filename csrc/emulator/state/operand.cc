#include "emulator/state/operand.h"

namespace jax_fa::emulator {

uint64_t ReadScalarSource(const Wave& wave, const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::kSgpr: {
      const uint64_t low = wave.ReadSgpr(operand.index);
      if (operand.dwords < 2 || operand.index == kSgprNull) return low;
      return low | (uint64_t{wave.ReadSgpr(operand.index + 1u)} << 32);
    }
    case OperandKind::kConstant:
      return operand.value | (uint64_t{operand.value_high} << 32);
    case OperandKind::kSpecial:
      switch (operand.index) {
        case kVccz:
          return wave.ReadMask(kSgprVccLo) == 0;
        case kExecz:
          return wave.exec == 0;
        case kSccSource:
          return wave.scc;
        case kSharedBase:
          return kSharedAperture;
        case kSharedLimit:
          return kSharedAperture | 0xffffffff;
        case kPrivateBase:
          return kPrivateAperture;
        case kPrivateLimit:
          return kPrivateAperture | 0xffffffff;
      }
      return 0;
    default:
      return 0;
  }
}

}  // namespace jax_fa::emulator
