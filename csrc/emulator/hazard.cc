#include "emulator/hazard.h"

#include <algorithm>
#include <string_view>

#include "emulator/check.h"
#include "emulator/disassemble.h"
#include "emulator/launch_context.h"

namespace jax_fa::emulator {
namespace {

using Traits = HazardTraits;

bool IsMatrix(OpClass op_class) {
  return op_class == OpClass::kMatrix || op_class == OpClass::kSparseMatrix;
}

Traits::Unit UnitOf(const Opcode& opcode) {
  switch (opcode.op_class) {
    case OpClass::kVmemLoad:
    case OpClass::kVmemStore:
    case OpClass::kLdsDma:
      return Traits::kMemory;
    case OpClass::kLdsRead:
    case OpClass::kLdsWrite:
      return Traits::kLds;
    default:
      if (IsMatrix(opcode.op_class)) return Traits::kMatrixUnit;
      return std::string_view(opcode.mnemonic).starts_with("v_") ? Traits::kVectorUnit
                                                                 : Traits::kScalarUnit;
  }
}

// How long a matrix instruction takes, in groups of 4 cycles.
uint8_t Passes(std::string_view mnemonic, bool single) {
  if (mnemonic.find("_4x4x") != mnemonic.npos) return 2;
  const bool wide = mnemonic.find("_32x32x") != mnemonic.npos;
  if (single) return wide ? 16 : 8;
  if (mnemonic.find("f8f6f4") != mnemonic.npos) return wide ? 16 : 8;
  const bool blocks = mnemonic.find("_2b_") != mnemonic.npos ||
                      mnemonic.find("_4b_") != mnemonic.npos;  // several products in one
  return static_cast<uint8_t>((wide ? 8 : 4) * (blocks ? 2 : 1));
}

bool ShiftsResult(const Instruction& instruction) {
  const Modifiers& mod = instruction.mod;
  if (mod.sdwa) return mod.sdwa_dst_sel != 6;
  return instruction.opcode->encoding == kVop3 && (mod.op_sel & 8) != 0;
}

uint16_t VectorFlags(const Instruction& instruction) {
  const Opcode& opcode = *instruction.opcode;
  const std::string_view name = opcode.mnemonic;
  uint16_t flags = 0;
  if (instruction.mod.dpp != 0) flags |= Traits::kDpp;
  if (name.starts_with("v_readlane")) flags |= Traits::kReadsLane | Traits::kPicksLane;
  if (name.starts_with("v_readfirstlane")) flags |= Traits::kReadsLane;
  if (name.starts_with("v_writelane")) flags |= Traits::kPicksLane;
  if (name.starts_with("v_permlane")) flags |= Traits::kSwapsLanes;
  if (name.starts_with("v_dot")) flags |= Traits::kDot;
  if (name.starts_with("v_div_fmas")) flags |= Traits::kDivFmas;
  if (opcode.op_class == OpClass::kTrans) flags |= Traits::kTranscendental;
  if ((opcode.flags & kWritesExec) != 0) flags |= Traits::kWritesExecMask;
  if (ShiftsResult(instruction)) flags |= Traits::kShiftsResult;
  return flags;
}

// The data of a wide store goes on being read; a buffer store that has a scalar offset is slower to
// issue and is safe.
bool IsWideStore(const Instruction& instruction) {
  if (instruction.opcode->op_class != OpClass::kVmemStore || instruction.src[1].dwords <= 2) {
    return false;
  }
  return instruction.opcode->encoding != kMubuf ||
         instruction.mem.soffset.kind != OperandKind::kSgpr;
}

const Instruction& InstructionAt(const Wave& wave, uint32_t slot) {
  return *wave.group->launch->code->slots[slot];
}
const Traits& TraitsAt(const Wave& wave, uint32_t slot) {
  return wave.group->launch->code->plans[slot].hazard;
}

// More than any rule asks for.
constexpr uint32_t kLongest = 32;

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
  return writer.passes + 1 + (writer.passes != 2 ? 1 : 0);
}

int VectorToMatrix(const Traits& writer) { return writer.Is(Traits::kDot) ? 0 : 2; }

// What a vector or memory instruction has to wait that reads what a vector instruction wrote.
int AfterVector(const Instruction& written, const Traits& writer, const Instruction& reader,
                const Traits& reads, const Access& access) {
  int needed = 0;
  if (writer.Is(Traits::kDot)) {
    const bool sum = written.opcode == reader.opcode && (access.place == 2);
    needed = sum ? 0 : 3;
  }
  if (reads.unit != Traits::kVectorUnit) return needed;
  if (reads.Is(Traits::kDpp) && access.place == 0) needed = std::max(needed, 2);
  // Between two swaps kernels that are right on the chip leave 1.
  if (reads.Is(Traits::kSwapsLanes)) {
    needed = std::max(needed, writer.Is(Traits::kSwapsLanes) ? 1 : 2);
  }
  if (reads.Is(Traits::kReadsLane) && access.place == 0) needed = std::max(needed, 1);
  if (writer.Is(Traits::kTranscendental) && !reads.Is(Traits::kTranscendental)) {
    needed = std::max(needed, 1);
  }
  if (writer.Is(Traits::kShiftsResult)) needed = std::max(needed, 1);
  return needed;
}

// What a vector instruction, or a load, has to wait that overwrites what a matrix instruction reads
// as C.
int AfterSumRead(const Traits& reader) {
  if (reader.single) return 0;
  return reader.passes == 2 ? 1 : reader.passes - 1;
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

bool Overlaps(const Operand& a, const Operand& b) {
  return a.kind == OperandKind::kVgpr && b.kind == OperandKind::kVgpr &&
         a.index < b.index + b.dwords && b.index < a.index + a.dwords;
}

}  // namespace

HazardTraits PlanHazards(const Instruction& instruction, Isa isa) {
  Traits traits;
  const Opcode& opcode = *instruction.opcode;
  const std::string_view name = opcode.mnemonic;
  traits.unit = UnitOf(opcode);
  if (isa != Isa::kGfx950) return traits;
  if (name == "s_nop") {
    traits.wait_states = static_cast<uint8_t>((instruction.simm16 & 15) + 1);
  }
  if (name.starts_with("s_setreg")) traits.flags |= Traits::kSetsRegister;
  if (name.starts_with("s_getreg")) traits.flags |= Traits::kGetsRegister;
  // Buffer loads to LDS are not in the documents' list, and kernels that are right on the chip do
  // without.
  const bool dma = opcode.op_class == OpClass::kLdsDma && opcode.encoding != kMubuf;
  if (dma || name == "s_sendmsg") traits.flags |= Traits::kUsesM0;
  if (traits.unit == Traits::kVectorUnit) traits.flags |= VectorFlags(instruction);
  if (IsWideStore(instruction)) traits.flags |= Traits::kWideStore;
  if (traits.unit == Traits::kMatrixUnit) {
    traits.single = name.ends_with("_f32") || name.ends_with("_f64");
    traits.passes = Passes(name, traits.single);
  }
  return traits;
}

void HazardChecker::Begin(const Workgroup& group) {
  waves_.assign(group.waves.size(), WaveState{});
  isa_ = group.launch->program->isa->isa;
  first_pc_ = group.launch->code->begin;
}

void HazardChecker::Step(Wave& wave, const Instruction& instruction, const AccessPlan& plan) {
  WaveState& state = waves_[wave.index_in_group];
  const Traits& traits = plan.hazard;
  const Write here = {state.now, (instruction.pc - first_pc_) / 4};
  if (isa_ == Isa::kGfx950) {
    Check(wave, instruction, plan, state);
    Note(instruction, plan, here, &state);
  } else if (traits.unit == Traits::kVectorUnit || traits.unit == Traits::kMatrixUnit) {
    if (traits.unit == Traits::kMatrixUnit) CheckWmma(wave, instruction, state);
    state.last_vector = here;
  }
  state.now += traits.wait_states;
}

void HazardChecker::Check(Wave& wave, const Instruction& instruction, const AccessPlan& plan,
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

void HazardChecker::CheckVectorRead(Wave& wave, const Instruction& instruction,
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

void HazardChecker::CheckVectorWrite(Wave& wave, const Instruction& instruction,
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
      if (writer.Is(Traits::kDot) && InstructionAt(wave, write.slot).opcode != instruction.opcode) {
        needed = 3;
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
      const int needed = reader.unit == Traits::kMatrixUnit   ? AfterSumRead(reader)
                         : writes.unit == Traits::kVectorUnit ? 2
                                                              : 0;
      if (static_cast<int>(since_read) < needed) {
        Require(wave, instruction, "overwrites " + Name(access, index), since_read, needed,
                read.slot, " began to read it");
        break;
      }
    }
  }
}

void HazardChecker::CheckScalarRead(Wave& wave, const Instruction& instruction,
                                    const AccessPlan& plan, const Access& access,
                                    const WaveState& state) {
  const Traits& reads = plan.hazard;
  int needed = 0;
  if (reads.unit == Traits::kMemory) {
    needed = 5;
  } else if (reads.unit == Traits::kVectorUnit) {
    const bool lane = reads.Is(Traits::kPicksLane) && access.place == 1;
    const bool mask = reads.Is(Traits::kDivFmas) && access.place == kOtherPlace;
    // Other uses would take 2 by LLVM's rules; hand-written kernels that are right on the chip
    // leave 1, so those are no defect.
    needed = lane || mask ? 4 : 0;
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

void HazardChecker::CheckOthers(Wave& wave, const Instruction& instruction,
                                const HazardTraits& traits, const WaveState& state) {
  const auto require = [&](const Write& write, int needed, const char* does, const char* what) {
    const uint32_t since = std::min(state.now - write.when - 1, kLongest);
    Require(wave, instruction, does, since, needed, write.slot, what);
  };
  if (traits.Is(Traits::kUsesM0)) require(state.m0, 1, "uses m0", " wrote it");
  int exec = 0;
  if (traits.Is(Traits::kDpp)) exec = 5;
  if (traits.Is(Traits::kReadsLane) || traits.Is(Traits::kPicksLane)) exec = 4;
  if (traits.unit == Traits::kMatrixUnit) exec = 4;
  if (exec != 0) require(state.exec, exec, "runs under EXEC", " wrote it");
  if (traits.Is(Traits::kSwapsLanes)) require(state.exec, 4, "runs under EXEC", " wrote it");
  if (traits.Is(Traits::kSetsRegister) || traits.Is(Traits::kGetsRegister)) {
    constexpr int32_t kNumber = 63;
    const Instruction& before = InstructionAt(wave, state.set_register.slot);
    if ((before.simm16 & kNumber) == (instruction.simm16 & kNumber)) {
      require(state.set_register, 2, "accesses the hardware register", " wrote it");
    }
  }
}

void HazardChecker::CheckWmma(Wave& wave, const Instruction& instruction, const WaveState& state) {
  const Write& before = state.last_vector;
  if (before.when == 0 || TraitsAt(wave, before.slot).unit != Traits::kMatrixUnit) return;
  const Operand& written = InstructionAt(wave, before.slot).dst;
  const bool sparse = instruction.opcode->op_class == OpClass::kSparseMatrix;
  for (size_t place = 0; place < (sparse ? 3u : 2u); ++place) {
    if (!Overlaps(written, instruction.src[place])) continue;
    Report(wave, instruction,
           "reads " + RegisterName(instruction.src[place]) +
               " right after the matrix instruction before wrote it: a v_nop is missing between");
    return;
  }
}

void HazardChecker::Note(const Instruction& instruction, const AccessPlan& plan, Write here,
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
  if (traits.unit == Traits::kMatrixUnit || traits.Is(Traits::kWideStore)) {
    const bool sparse = instruction.opcode->op_class == OpClass::kSparseMatrix;
    const uint8_t place = traits.Is(Traits::kWideStore) ? 1 : sparse ? kOtherPlace : 2;
    for (uint32_t i = 0; i < plan.reads; ++i) {
      const Access& access = plan.read[i];
      if (access.kind != Access::kVector || access.place != place) continue;
      std::fill_n(state->read.begin() + access.first, access.count, here);
    }
  }
  if (traits.Is(Traits::kWritesExecMask)) state->exec = here;
  if (traits.Is(Traits::kSetsRegister)) state->set_register = here;
}

}  // namespace jax_fa::emulator
