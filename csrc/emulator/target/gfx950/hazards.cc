#include "emulator/target/gfx950/hazards.h"

#include <algorithm>
#include <string_view>

#include "emulator/check/check.h"
#include "emulator/decode/disassemble.h"
#include "emulator/object/launch_context.h"

namespace jax_fa::emulator {
namespace {

using Traits = HazardTraits;

const Instruction& InstructionAt(const Wave& wave, uint32_t slot) {
  return *wave.group->launch->code->slots[slot];
}
const Traits& TraitsAt(const Wave& wave, uint32_t slot) {
  return wave.group->launch->code->plans[slot].hazard;
}

// More than any rule asks for.
constexpr uint32_t kLongest = 32;

// Of a taken branch and of a barrier, beside their own.
constexpr uint32_t kStalledSlots = 3;

// The first slot after the start of a matrix instruction in which the wave issues a vector
// instruction, and one on two float32. Of the small ones and those of float32 no trace is known.
bool IsTraced(const Traits& matrix) { return !matrix.single && matrix.passes >= 4; }
uint32_t VectorSlot(const Instruction& matrix, const Traits& traits) {
  if (!IsTraced(traits)) return 0;
  return matrix.opcode->op_class == OpClass::kSparseMatrix ? 3 : 2;
}
uint32_t PackedSlot(const Instruction& matrix, const Traits& traits) {
  if (!IsTraced(traits)) return 0;
  if (matrix.opcode->op_class == OpClass::kSparseMatrix) return VectorSlot(matrix, traits);
  return traits.passes >= 8 ? 11 : 7;
}

// Whoever uses what a matrix instruction writes, as another source than C or by another unit.
int AfterMatrix(const Traits& writer) {
  if (writer.single) return writer.passes + 2;
  return writer.passes + 3 + (writer.passes != 2 ? 1 : 0);
}

int MatrixToMatrix(const Wave& wave, uint32_t slot, const Instruction& reader, const Traits& reads,
                   const Access& access) {
  const Traits& writer = TraitsAt(wave, slot);
  const bool sparse = reader.opcode->op_class == OpClass::kSparseMatrix;
  const bool is_sum = access.place == (sparse ? kOtherPlace : 2);
  if (!is_sum) return AfterMatrix(writer);
  const Operand& written = InstructionAt(wave, slot).dst;
  // The very same accumulator is forwarded.
  if (written.index == access.first && written.dwords == access.count) {
    return writer.passes == 2 ? 2 : 0;
  }
  if (writer.single) return reads.single ? writer.passes : 0;
  return writer.passes + (reads.single && writer.passes == 2 ? 1 : 2);
}

int VectorToMatrix(const Traits& writer) { return writer.Is(Gfx950Hazard::kDot) ? 0 : 2; }

// What a vector or memory instruction has to wait that reads what a vector instruction wrote.
int AfterVector(const Instruction& written, const Traits& writer, const Instruction& reader,
                const Traits& reads, const Access& access) {
  int needed = 0;
  if (writer.Is(Gfx950Hazard::kDot)) {
    // v_dot2c names its sum as the destination only.
    const bool named = (reader.opcode->flags & kReadsDst) == 0;
    const bool sum = written.opcode == reader.opcode && access.place == (named ? 2 : kOtherPlace);
    needed = sum ? 0 : 3;
  }
  if (reads.unit != Traits::kVectorUnit) return needed;
  if (reads.Is(Gfx950Hazard::kDpp) && access.place == 0) needed = std::max(needed, 2);
  // Between two swaps kernels that are right on the chip leave 1.
  if (reads.Is(Gfx950Hazard::kSwapsLanes)) {
    needed = std::max(needed, writer.Is(Gfx950Hazard::kSwapsLanes) ? 1 : 2);
  }
  if (reads.Is(Gfx950Hazard::kReadsLane) && access.place == 0) needed = std::max(needed, 1);
  if (writer.Is(Gfx950Hazard::kTranscendental) && !reads.Is(Gfx950Hazard::kTranscendental)) {
    needed = std::max(needed, 1);
  }
  if (writer.Is(Gfx950Hazard::kShiftsResult)) needed = std::max(needed, 1);
  return needed;
}

// What a vector instruction, or a load, has to wait that overwrites what a matrix instruction reads
// as C.
int AfterSumRead(const Traits& reader) {
  if (reader.single) return 0;
  return reader.passes == 2 ? 1 : reader.passes - 1;
}

// What a vector instruction has to wait that overwrites the data of a wide store. A buffer store
// that has a scalar offset is slower to issue.
int AfterWideStore(const Instruction& store) {
  return store.mem.soffset.kind == OperandKind::kSgpr ? 1 : 2;
}

// Where the wave stands, counted from a write.
void Require(Wave& wave, const Instruction& instruction, const std::string& does, uint32_t since,
             int needed, uint32_t slot, const char* what) {
  if (static_cast<int>(since) >= needed) return;
  Report(wave, instruction,
         does + " " + std::to_string(since) + " wait states after " +
             InstructionAt(wave, slot).opcode->mnemonic + what + "; it takes " +
             std::to_string(needed) + ": s_nop " +
             std::to_string(needed - static_cast<int>(since) - 1) + " is missing before");
}

std::string Name(const Access& access, uint32_t index) {
  Operand operand;
  operand.kind = access.kind == Access::kVector ? OperandKind::kVgpr : OperandKind::kSgpr;
  operand.dwords = 1;
  operand.index = static_cast<uint16_t>(index);
  return RegisterName(operand);
}

}  // namespace

void Gfx950Hazards::Begin(const Workgroup& group) {
  waves_.assign(group.waves.size(), WaveState{});
  first_pc_ = group.launch->code->begin;
}

void Gfx950Hazards::Stall(const Instruction& instruction, const HazardTraits& traits,
                          WaveState* state) {
  if (instruction.pc != state->next_pc) state->now += kStalledSlots;
  state->next_pc = instruction.pc + instruction.size_bytes;
  if (traits.unit == Traits::kVectorUnit) {
    state->now = std::max(
        state->now, traits.Is(Gfx950Hazard::kPacked) ? state->packed_free : state->vector_free);
  }
}

void Gfx950Hazards::Step(Wave& wave, const Instruction& instruction, const AccessPlan& plan) {
  WaveState& state = waves_[wave.index_in_group];
  Stall(instruction, plan.hazard, &state);
  const Write here = {state.now, (instruction.pc - first_pc_) / 4};
  Check(wave, instruction, plan, state);
  Note(instruction, plan, here, &state);
  if (plan.hazard.unit == Traits::kMatrixUnit) {
    state.vector_free = state.now + VectorSlot(instruction, plan.hazard);
    state.packed_free = state.now + PackedSlot(instruction, plan.hazard);
  }
  state.now += plan.hazard.wait_states;
  // A workgroup of one wave does not wait.
  if (plan.hazard.Is(Gfx950Hazard::kMeets) && wave.group->waves.size() > 1) {
    state.now += kStalledSlots;
  }
}

void Gfx950Hazards::Check(Wave& wave, const Instruction& instruction, const AccessPlan& plan,
                          const WaveState& state) {
  for (uint32_t i = 0; i < plan.reads; ++i) {
    const Access& access = plan.read[i];
    if (access.kind == Access::kVector) {
      CheckVectorRead(wave, instruction, plan, access, state);
    } else {
      CheckScalarRead(wave, instruction, plan, access, state);
    }
  }
  for (uint32_t i = 0; i < plan.writes; ++i) {
    if (plan.write[i].kind == Access::kVector) {
      CheckVectorWrite(wave, instruction, plan, plan.write[i], state);
    }
  }
  if (plan.hazard.flags != 0 || plan.hazard.unit == Traits::kMatrixUnit) {
    CheckOthers(wave, instruction, plan.hazard, state);
  }
}

void Gfx950Hazards::CheckVectorRead(Wave& wave, const Instruction& instruction,
                                    const AccessPlan& plan, const Access& access,
                                    const WaveState& state) {
  const Traits& reads = plan.hazard;
  for (uint32_t index = access.first; index < access.first + uint32_t{access.count}; ++index) {
    const Write& write = state.vector[index];
    const uint32_t since = state.now - write.when - 1;
    if (since >= kLongest) [[likely]]
      continue;
    const Traits& writer = TraitsAt(wave, write.slot);
    int needed = 0;
    if (writer.unit == Traits::kMatrixUnit) {
      needed = reads.unit == Traits::kMatrixUnit
                   ? MatrixToMatrix(wave, write.slot, instruction, reads, access)
                   : AfterMatrix(writer);
    } else if (reads.unit == Traits::kMatrixUnit) {
      needed = VectorToMatrix(writer);
    } else {
      needed = AfterVector(InstructionAt(wave, write.slot), writer, instruction, reads, access);
    }
    if (static_cast<int>(since) >= needed) continue;
    Require(wave, instruction, "reads " + Name(access, index), since, needed, write.slot,
            " wrote it");
    break;
  }
}

void Gfx950Hazards::CheckVectorWrite(Wave& wave, const Instruction& instruction,
                                     const AccessPlan& plan, const Access& access,
                                     const WaveState& state) {
  const Traits& writes = plan.hazard;
  if (writes.unit == Traits::kMatrixUnit) return;
  for (uint32_t index = access.first; index < access.first + uint32_t{access.count}; ++index) {
    const Write& write = state.vector[index];
    const uint32_t since = state.now - write.when - 1;
    if (since < kLongest) {
      const Traits& writer = TraitsAt(wave, write.slot);
      int needed = 0;
      if (writer.unit == Traits::kMatrixUnit) needed = AfterMatrix(writer);
      if (writer.Is(Gfx950Hazard::kDot) &&
          InstructionAt(wave, write.slot).opcode != instruction.opcode) {
        needed = 3;
      }
      // What keeps part of the register reads it; the rest for its check sum.
      if (writer.Is(Gfx950Hazard::kShiftsResult) && writes.unit == Traits::kVectorUnit) {
        needed = std::max(needed, 1);
      }
      if (static_cast<int>(since) < needed) {
        Require(wave, instruction, "overwrites " + Name(access, index), since, needed, write.slot,
                " wrote it");
        break;
      }
    }
    const Write& read = state.read[index];
    const uint32_t since_read = state.now - read.when - 1;
    if (since_read < kLongest) {
      const Traits& reader = TraitsAt(wave, read.slot);
      int needed = 0;
      if (reader.unit == Traits::kMatrixUnit) {
        needed = AfterSumRead(reader);
      } else if (writes.unit == Traits::kVectorUnit) {
        needed = AfterWideStore(InstructionAt(wave, read.slot));
      }
      if (static_cast<int>(since_read) < needed) {
        Require(wave, instruction, "overwrites " + Name(access, index), since_read, needed,
                read.slot, " began to read it");
        break;
      }
    }
  }
}

void Gfx950Hazards::CheckScalarRead(Wave& wave, const Instruction& instruction,
                                    const AccessPlan& plan, const Access& access,
                                    const WaveState& state) {
  const Traits& reads = plan.hazard;
  int needed = 0;
  if (reads.unit == Traits::kMemory) {
    needed = 5;
  } else if (reads.unit == Traits::kVectorUnit) {
    const bool lane = reads.Is(Gfx950Hazard::kPicksLane) && access.place == 1;
    const bool mask =
        access.place == kOtherPlace || (reads.Is(Gfx950Hazard::kReadsMask) && access.place == 2);
    // For a register that is read as a mask LLVM leaves 2, too; hand-written kernels that are right
    // on the chip leave 0.
    needed = mask ? 0 : 2;
    if (lane || (mask && reads.Is(Gfx950Hazard::kDivFmas))) needed = 4;
  }
  if (needed == 0) return;
  for (uint32_t index = access.first; index < access.first + uint32_t{access.count}; ++index) {
    const Write& write = state.scalar[index];
    const uint32_t since = state.now - write.when - 1;
    if (static_cast<int>(std::min(since, kLongest)) >= needed) continue;
    Require(wave, instruction, "reads " + Name(access, index), since, needed, write.slot,
            " wrote it");
    break;
  }
}

void Gfx950Hazards::CheckOthers(Wave& wave, const Instruction& instruction,
                                const HazardTraits& traits, const WaveState& state) {
  const auto require = [&](const Write& write, int needed, const char* does, const char* what) {
    const uint32_t since = std::min(state.now - write.when - 1, kLongest);
    Require(wave, instruction, does, since, needed, write.slot, what);
  };
  if (traits.Is(Gfx950Hazard::kUsesM0)) require(state.m0, 1, "uses m0", " wrote it");
  int exec = 0;
  if (traits.Is(Gfx950Hazard::kDpp)) exec = 5;
  if (traits.Is(Gfx950Hazard::kReadsLane) || traits.Is(Gfx950Hazard::kPicksLane)) exec = 4;
  if (traits.unit == Traits::kMatrixUnit) exec = 4;
  if (exec != 0) require(state.exec, exec, "runs under EXEC", " wrote it");
  if (traits.Is(Gfx950Hazard::kSwapsLanes)) require(state.exec, 4, "runs under EXEC", " wrote it");
  if (traits.Is(Gfx950Hazard::kSetsRegister) || traits.Is(Gfx950Hazard::kGetsRegister)) {
    constexpr int32_t kNumber = 63;
    const Instruction& before = InstructionAt(wave, state.set_register.slot);
    if ((before.simm16 & kNumber) == (instruction.simm16 & kNumber)) {
      require(state.set_register, 2, "accesses the hardware register", " wrote it");
    }
  }
}

void Gfx950Hazards::Note(const Instruction& instruction, const AccessPlan& plan, Write here,
                         WaveState* state) {
  const Traits& traits = plan.hazard;
  const bool vector = traits.unit == Traits::kVectorUnit;
  for (uint32_t i = 0; i < plan.writes; ++i) {
    const Access& access = plan.write[i];
    if (access.kind == Access::kScalar) {
      if (access.first == kSgprM0 && !vector) state->m0 = here;
      if (!vector) continue;
      std::fill_n(state->scalar.begin() + access.first, access.count, here);
    } else if (vector || traits.unit == Traits::kMatrixUnit) {
      std::fill_n(state->vector.begin() + access.first, access.count, here);
    }
  }
  if (traits.unit == Traits::kMatrixUnit || traits.Is(Gfx950Hazard::kWideStore)) {
    const bool sparse = instruction.opcode->op_class == OpClass::kSparseMatrix;
    const uint8_t place = traits.Is(Gfx950Hazard::kWideStore) ? 1 : sparse ? kOtherPlace : 2;
    for (uint32_t i = 0; i < plan.reads; ++i) {
      const Access& access = plan.read[i];
      if (access.kind != Access::kVector || access.place != place) continue;
      std::fill_n(state->read.begin() + access.first, access.count, here);
    }
  }
  if (traits.Is(Gfx950Hazard::kWritesExecMask)) state->exec = here;
  if (traits.Is(Gfx950Hazard::kSetsRegister)) state->set_register = here;
}

}  // namespace jax_fa::emulator
