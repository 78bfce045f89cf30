#include "emulator/timing/instruction.h"

#include <algorithm>
#include <string_view>

#include "emulator/exec/families.h"
#include "emulator/exec/in_flight.h"
#include "emulator/timing/trace.h"

namespace jax_fa::emulator {
namespace {

using C = Constant;

class Describer {
 public:
  Describer(Isa isa, const TimingConstants& constants)
      : gfx950_(isa == Isa::kGfx950), issue_clk_(ChipOf(isa).issue_clk), constants_(constants) {}

  TimedInstruction Describe(const Instruction& instruction) {
    timed_ = {};
    timed_.wave_clk = issue_clk_;
    timed_.hold_clk = issue_clk_;
    const Opcode& opcode = *instruction.opcode;
    name_ = opcode.mnemonic;
    switch (opcode.op_class) {
      case OpClass::kMatrix:
      case OpClass::kSparseMatrix:
        Matrix(instruction);
        break;
      case OpClass::kTrans:
        timed_.kind = TimedKind::kTrans;
        timed_.hold_clk = constants_[C::kTransHold];
        break;
      case OpClass::kValu:
      case OpClass::kValuPacked:
      case OpClass::kValuDual:
        timed_.kind = TimedKind::kVector;
        timed_.packed = opcode.op_class == OpClass::kValuPacked;
        timed_.hold_clk = constants_[IsQuarterRate() ? C::kVectorQuarter : C::kVector];
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
        timed_.transfer_bytes = (gfx950_ ? 64 : 32) * LaneBytes(instruction);
        timed_.counter = !gfx950_ && timed_.is_store ? kStoreCounter : kMemoryCounter;
        break;
      case OpClass::kWait:
        timed_.kind = TimedKind::kWait;
        Waits(instruction);
        break;
      case OpClass::kBarrier:
        timed_.kind = name_ == "s_barrier"        ? TimedKind::kBarrier
                      : name_ == "s_barrier_wait" ? TimedKind::kBarrierWait
                                                  : TimedKind::kBarrierSignal;
        break;
      case OpClass::kBranch:
        timed_.kind = name_.starts_with("s_endpgm") ? TimedKind::kEnd : TimedKind::kBranch;
        break;
      default:
        Idle(instruction);
        break;
    }
    Registers(instruction);
    return timed_;
  }

 private:
  void Matrix(const Instruction& instruction) {
    timed_.kind = TimedKind::kMatrix;
    const bool sparse = instruction.opcode->op_class == OpClass::kSparseMatrix;
    timed_.long_matrix = name_.find("_32x32x") != std::string_view::npos;
    timed_.hold_clk = constants_[timed_.long_matrix ? C::kMatrixLong : C::kMatrixShort];
    // With an operand of 8 bits, not of 6 or 4, twice that (LLVM's passes: 8 and 16).
    const bool narrow = name_.ends_with("_f8f6f4");
    if (narrow && (instruction.mod.cbsz < 2 || instruction.mod.blgp < 2)) timed_.hold_clk *= 2;
    timed_.blocked_clk = constants_[sparse ? C::kVectorBlockedSparse : C::kVectorBlocked];
  }

  bool IsQuarterRate() const {
    return name_.starts_with("v_mul_lo_u32") || name_.starts_with("v_mul_hi_") ||
           name_.starts_with("v_mad_u64") || name_.starts_with("v_mad_co_u64");
  }

  void Lds(const Opcode& opcode) {
    timed_.kind = TimedKind::kLds;
    timed_.counter = kLdsCounter;
    const bool write = opcode.op_class == OpClass::kLdsWrite;
    const uint32_t lanes = gfx950_ ? 64 : 32, row_bytes = gfx950_ ? 256 : 128;
    uint32_t lane_bytes =
        4u * std::max<uint32_t>(write ? opcode.src_dwords[1] : opcode.dst_dwords, 1);
    if (write && (opcode.flags & kTwoAddresses) != 0) lane_bytes *= 2;
    timed_.transfer_bytes = lanes * lane_bytes;
    // Writes of gfx950 take twice the passes of reads (b64: 4), as state/bank_conflicts.cc groups
    // them.
    timed_.lds_passes = timed_.transfer_bytes / row_bytes * (write && gfx950_ ? 2 : 1);
  }

  void Idle(const Instruction& instruction) {
    timed_.kind = TimedKind::kIdle;
    const auto argument = static_cast<uint32_t>(instruction.simm16);
    if (name_ == "s_nop") timed_.wave_clk = issue_clk_ * ((argument & 15) + 1);
    if (name_ == "s_sleep") timed_.wave_clk = 64.0 * (argument & 127);
    if (name_ == "s_setprio") timed_.priority = static_cast<int>(argument & 3);
  }

  void AddWait(uint32_t counters, uint32_t count) {
    timed_.wait[timed_.waits++] = {static_cast<uint8_t>(counters), count};
  }
  void Waits(const Instruction& instruction) {
    const auto bits = static_cast<uint32_t>(instruction.simm16);
    constexpr uint32_t kMemory = 1u << kMemoryCounter, kStore = 1u << kStoreCounter,
                       kLds = 1u << kLdsCounter, kScalar = 1u << kScalarCounter;
    if (gfx950_) {
      const WaitCounts counts = Gfx950WaitCounts(bits);
      AddWait(kMemory, counts.vmcnt);
      AddWait(kLds | kScalar, counts.lgkmcnt);
    } else if (name_ == "s_wait_loadcnt") {
      AddWait(kMemory, bits & 63);
    } else if (name_ == "s_wait_storecnt") {
      AddWait(kStore, bits & 63);
    } else if (name_ == "s_wait_dscnt") {
      AddWait(kLds, bits & 63);
    } else if (name_ == "s_wait_kmcnt") {
      AddWait(kScalar, bits & 63);
    } else if (name_ == "s_wait_loadcnt_dscnt" || name_ == "s_wait_storecnt_dscnt") {
      AddWait(name_ == "s_wait_loadcnt_dscnt" ? kMemory : kStore, (bits >> 8) & 63);
      AddWait(kLds, bits & 63);
    } else if (name_ == "s_wait_idle") {
      for (int counter = 0; counter < kTimedCounters; ++counter) AddWait(1u << counter, 0);
    }
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
    const Operand vcc = Scalar(kSgprVccLo, gfx950_ ? 2 : 1);
    if ((flags & kReadsVccImplicitly) != 0) Read(vcc);
    if ((flags & kReadsM0) != 0) Read(Scalar(kSgprM0, 1));
    if ((flags & kReadsScc) != 0) ReadScc();
    // Results of memory instructions are guarded by waits, not by the issue logic.
    const bool guarded = timed_.kind == TimedKind::kMemory || timed_.kind == TimedKind::kLds ||
                         timed_.kind == TimedKind::kScalarLoad;
    if (!guarded) {
      Write(instruction.dst);
      Write(instruction.sdst);
      if ((flags & kWritesVccImplicitly) != 0) Write(vcc);
      if ((flags & kWritesScc) != 0 && timed_.writes < timed_.write.size()) {
        timed_.write[timed_.writes++] = {kSccIndex, 1, false};
      }
    }
    if (instruction.dual) Registers(*instruction.dual);
  }

  const bool gfx950_;
  const double issue_clk_;
  const TimingConstants& constants_;
  std::string_view name_;
  TimedInstruction timed_;
};

}  // namespace

std::vector<TimedInstruction> TimeInstructions(Isa isa, const KernelCode& code,
                                               const TimingConstants& constants) {
  Describer describer(isa, constants);
  std::vector<TimedInstruction> timed(code.slots.size());
  for (size_t slot = 0; slot < code.slots.size(); ++slot) {
    if (code.slots[slot]) timed[slot] = describer.Describe(*code.slots[slot]);
  }
  return timed;
}

}  // namespace jax_fa::emulator
