#include "emulator/timing/instruction.h"

#include <algorithm>

#include "emulator/exec/families.h"
#include "emulator/exec/in_flight.h"
#include "emulator/timing/trace.h"

namespace jax_fa::emulator {
namespace {

using C = Constant;

class Describer {
 public:
  Describer(const Chip& chip, const TimingConstants& constants)
      : chip_(chip), issue_clk_(chip.timing.issue_clk), constants_(constants) {}

  // `passes` of the matrix core, as the target's rules on wait states count them.
  TimedInstruction Describe(const Instruction& instruction, uint32_t passes) {
    timed_ = {};
    timed_.wave_clk = issue_clk_;
    timed_.hold_clk = issue_clk_;
    const Opcode& opcode = *instruction.opcode;
    switch (opcode.op_class) {
      case OpClass::kMatrix:
      case OpClass::kSparseMatrix:
        Matrix(instruction, passes);
        break;
      case OpClass::kTrans:
        timed_.kind = TimedKind::kTrans;
        timed_.hold_clk =
            constants_[Is(opcode, TimingClass::kScalarTrans) ? C::kTransScalar : C::kTransHold];
        timed_.unit_clk =
            constants_[Is(opcode, TimingClass::kScalarTrans) ? C::kTransScalar : C::kTransUnit];
        break;
      case OpClass::kValu:
      case OpClass::kValuPacked:
      case OpClass::kValuDual:
        timed_.kind = TimedKind::kVector;
        timed_.packed = opcode.op_class == OpClass::kValuPacked;
        timed_.hold_clk = constants_[Is(opcode, TimingClass::kHalfRate)      ? C::kVectorHalf
                                     : Is(opcode, TimingClass::kQuarterRate) ? C::kVectorQuarter
                                                                             : C::kVector];
        break;
      case OpClass::kSalu:
        timed_.kind = TimedKind::kScalar;
        break;
      case OpClass::kSmem:
        timed_.kind = TimedKind::kScalarLoad;
        timed_.counter = kScalarCounter;
        break;
      case OpClass::kLdsRead:
      case OpClass::kLdsWrite:
        Lds(opcode);
        break;
      case OpClass::kVmemLoad:
      case OpClass::kVmemStore:
      case OpClass::kLdsDma:
        timed_.kind = TimedKind::kMemory;
        timed_.is_dma = opcode.op_class == OpClass::kLdsDma;
        timed_.is_store = opcode.op_class == OpClass::kVmemStore;
        if (timed_.is_store) timed_.wave_clk = constants_[C::kStoreIssue];
        timed_.transfer_bytes = chip_.wave_size * LaneBytes(instruction);
        timed_.counter =
            chip_.timing.has_store_counter && timed_.is_store ? kStoreCounter : kMemoryCounter;
        break;
      case OpClass::kWait:
        timed_.kind = TimedKind::kWait;
        Waits(instruction);
        break;
      case OpClass::kBarrier:
        timed_.kind = Is(opcode, TimingClass::kBarrier)       ? TimedKind::kBarrier
                      : Is(opcode, TimingClass::kBarrierWait) ? TimedKind::kBarrierWait
                                                              : TimedKind::kBarrierSignal;
        break;
      case OpClass::kBranch:
        timed_.kind = Is(opcode, TimingClass::kEnd) ? TimedKind::kEnd : TimedKind::kBranch;
        break;
      default:
        Idle(instruction);
        break;
    }
    Registers(instruction);
    timed_.reads_exec = timed_.kind == TimedKind::kScalar && ReadsExec(instruction);
    return timed_;
  }

 private:
  void Matrix(const Instruction& instruction, uint32_t passes) {
    timed_.kind = TimedKind::kMatrix;
    const bool sparse = instruction.opcode->op_class == OpClass::kSparseMatrix;
    timed_.long_matrix = instruction.opcode->traits.matrix.wide;
    // The constants are those of 4 and 8 passes; where a target counts no passes they are all.
    timed_.hold_clk = constants_[timed_.long_matrix ? C::kMatrixLong : C::kMatrixShort];
    if (passes != 0) timed_.hold_clk *= passes / (timed_.long_matrix ? 8.0 : 4.0);
    timed_.blocked_clk = constants_[sparse ? C::kVectorBlockedSparse : C::kVectorBlocked];
  }

  static bool Is(const Opcode& opcode, TimingClass timing) {
    return opcode.traits.timing == timing;
  }

  void Lds(const Opcode& opcode) {
    timed_.kind = TimedKind::kLds;
    timed_.counter = kLdsCounter;
    const bool write = opcode.op_class == OpClass::kLdsWrite;
    timed_.is_store = write;
    const uint32_t row_bytes = 4 * chip_.lds_banks.banks;
    uint32_t lane_bytes =
        4u * std::max<uint32_t>(write ? opcode.src_dwords[1] : opcode.dst_dwords, 1);
    if (write && (opcode.flags & kTwoAddresses) != 0) lane_bytes *= 2;
    timed_.transfer_bytes = chip_.wave_size * lane_bytes;
    timed_.lds_passes = timed_.transfer_bytes / row_bytes;
    if (write) timed_.lds_passes *= chip_.timing.lds_write_passes;
  }

  void Idle(const Instruction& instruction) {
    timed_.kind = TimedKind::kIdle;
    const auto argument = static_cast<uint32_t>(instruction.simm16);
    const Opcode& opcode = *instruction.opcode;
    if (Is(opcode, TimingClass::kWaitStates)) {
      timed_.wave_clk = issue_clk_ * ((argument & 15) + 1);
    } else if (Is(opcode, TimingClass::kSleep)) {
      timed_.wave_clk = 64.0 * (argument & 127);
    } else if (Is(opcode, TimingClass::kPriority)) {
      timed_.priority = static_cast<int>(argument & 3);
    } else if (Is(opcode, TimingClass::kWaitAlu)) {
      // Fields that wait at zero: VA_VDST 15:12, VA_SDST 11:9, VA_VCC 1; SA_SDST 0.
      const auto zero = [&](uint32_t mask) { return (argument & mask) == 0; };
      timed_.awaits_vectors = zero(0xf000) || zero(0x0e00) || zero(2);
      timed_.awaits_scalars = zero(1);
    }
  }

  void AddWait(uint32_t counters, uint32_t count) {
    timed_.wait[timed_.waits++] = {static_cast<uint8_t>(counters), count};
  }
  void Waits(const Instruction& instruction) {
    const auto bits = static_cast<uint32_t>(instruction.simm16);
    constexpr uint32_t kMemory = 1u << kMemoryCounter, kStore = 1u << kStoreCounter,
                       kLds = 1u << kLdsCounter, kScalar = 1u << kScalarCounter;
    switch (instruction.opcode->traits.timing) {
      case TimingClass::kWaitPacked: {
        const WaitCounts counts = PackedWaitCounts(bits);
        AddWait(kMemory, counts.vmcnt);
        AddWait(kLds | kScalar, counts.lgkmcnt);
        break;
      }
      case TimingClass::kWaitLoads:
        AddWait(kMemory, bits & 63);
        break;
      case TimingClass::kWaitStores:
        AddWait(kStore, bits & 63);
        break;
      case TimingClass::kWaitLds:
        AddWait(kLds, bits & 63);
        break;
      case TimingClass::kWaitScalars:
        AddWait(kScalar, bits & 63);
        break;
      case TimingClass::kWaitLoadsAndLds:
      case TimingClass::kWaitStoresAndLds: {
        const bool loads = instruction.opcode->traits.timing == TimingClass::kWaitLoadsAndLds;
        AddWait(loads ? kMemory : kStore, (bits >> 8) & 63);
        AddWait(kLds, bits & 63);
        break;
      }
      case TimingClass::kWaitAll:
        for (int counter = 0; counter < kTimedCounters; ++counter) AddWait(1u << counter, 0);
        break;
      default:
        break;
    }
  }

  static bool ReadsExec(const Instruction& instruction) {
    if ((instruction.opcode->flags & kReadsExec) != 0) return true;
    return std::any_of(instruction.src.begin(), instruction.src.end(), [](const Operand& operand) {
      return operand.kind == OperandKind::kSgpr && operand.index == kSgprExecLo;
    });
  }
  static bool ToUse(const Operand& operand, TimedInstruction::Use* use) {
    if (operand.dwords == 0) return false;
    if (operand.kind == OperandKind::kVgpr) {
      *use = {operand.index, operand.dwords, false};
    } else if (operand.kind == OperandKind::kSgpr && operand.index != kSgprNull) {
      *use = {static_cast<uint16_t>(kScalarBase + operand.index), operand.dwords, false};
    } else {
      return false;
    }
    return use->first + use->count <= kTimedRegisters;
  }
  void Read(const Operand& operand, bool accumulator = false) {
    TimedInstruction::Use use;
    if (timed_.reads >= timed_.read.size() || !ToUse(operand, &use)) return;
    use.accumulator = accumulator;
    timed_.read[timed_.reads++] = use;
  }
  void Write(const Operand& operand) {
    TimedInstruction::Use use;
    if (timed_.writes < timed_.write.size() && ToUse(operand, &use)) {
      timed_.write[timed_.writes++] = use;
    }
  }
  void ReadScc() {
    if (timed_.reads < timed_.read.size()) timed_.read[timed_.reads++] = {kSccIndex, 1, false};
  }
  static Operand Scalar(uint16_t index, uint8_t dwords) {
    Operand operand;
    operand.kind = OperandKind::kSgpr;
    operand.index = index;
    operand.dwords = dwords;
    return operand;
  }

  void Registers(const Instruction& instruction) {
    const uint32_t flags = instruction.opcode->flags;
    const bool sparse = instruction.opcode->op_class == OpClass::kSparseMatrix;
    const bool matrix = timed_.kind == TimedKind::kMatrix;
    for (size_t i = 0; i < instruction.src.size(); ++i) {
      Read(instruction.src[i], matrix && !sparse && i == 2);
    }
    Read(instruction.mem.soffset);
    if ((flags & kReadsDst) != 0) Read(instruction.dst, matrix);
    const Operand vcc = Scalar(kSgprVccLo, chip_.mask_dwords());
    if ((flags & kReadsVccImplicitly) != 0) Read(vcc);
    if ((flags & kReadsM0) != 0) Read(Scalar(kSgprM0, 1));
    if ((flags & kReadsScc) != 0) ReadScc();
    const Operand exec = Scalar(kSgprExecLo, chip_.mask_dwords());
    if ((flags & kReadsExec) != 0) Read(exec);
    // Results of memory instructions are guarded by waits, not by the issue logic.
    const bool guarded = timed_.kind == TimedKind::kMemory || timed_.kind == TimedKind::kLds ||
                         timed_.kind == TimedKind::kScalarLoad;
    if (!guarded) {
      Write(instruction.dst);
      Write(instruction.sdst);
      if ((flags & kWritesVccImplicitly) != 0) Write(vcc);
      if ((flags & kWritesExec) != 0) Write(exec);
      if ((flags & kWritesScc) != 0 && timed_.writes < timed_.write.size()) {
        timed_.write[timed_.writes++] = {kSccIndex, 1, false};
      }
    }
    if (instruction.dual) Registers(*instruction.dual);
  }

  const Chip& chip_;
  const double issue_clk_;
  const TimingConstants& constants_;
  TimedInstruction timed_;
};

}  // namespace

std::vector<TimedInstruction> TimeInstructions(const Chip& chip, const KernelCode& code,
                                               const TimingConstants& constants) {
  Describer describer(chip, constants);
  std::vector<TimedInstruction> timed(code.slots.size());
  for (size_t slot = 0; slot < code.slots.size(); ++slot) {
    if (!code.slots[slot]) continue;
    const uint32_t passes = code.plans[slot].hazard.passes;
    timed[slot] = describer.Describe(
        *code.slots[slot], passes != 0 ? passes : code.slots[slot]->opcode->traits.matrix.passes);
  }
  return timed;
}

}  // namespace jax_fa::emulator
