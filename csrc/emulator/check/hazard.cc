#include "emulator/check/hazard.h"

namespace jax_fa::emulator {

HazardTraits::Unit HazardUnit(const Opcode& opcode) {
  switch (opcode.op_class) {
    case OpClass::kVmemLoad:
    case OpClass::kVmemStore:
    case OpClass::kLdsDma:
      return HazardTraits::kMemory;
    case OpClass::kLdsRead:
    case OpClass::kLdsWrite:
      return HazardTraits::kLds;
    case OpClass::kMatrix:
    case OpClass::kSparseMatrix:
      return HazardTraits::kMatrixUnit;
    case OpClass::kValu:
    case OpClass::kValuPacked:
    case OpClass::kValuDual:
    case OpClass::kTrans:
      return HazardTraits::kVectorUnit;
    default:
      return opcode.traits.hazard == HazardClass::kVectorNop ? HazardTraits::kVectorUnit
                                                             : HazardTraits::kScalarUnit;
  }
}

}  // namespace jax_fa::emulator
