#include "emulator/check/access_plan.h"

#include "emulator/state/wave.h"

namespace jax_fa::emulator {
namespace {

bool IsMemory(OpClass op_class) {
  switch (op_class) {
    case OpClass::kSmem:
    case OpClass::kLdsRead:
    case OpClass::kLdsWrite:
    case OpClass::kVmemLoad:
    case OpClass::kVmemStore:
    case OpClass::kLdsDma:
      return true;
    default:
      return false;
  }
}

// Sums and moves of 64 bits. A compiler gives them addends whose upper half is anything when it
// wants the lower half of the result alone.
bool HighToHigh(AccessClass access, size_t place) {
  return access == AccessClass::kHighToHigh || (access == AccessClass::kSumHigh && place == 2);
}

class Planner {
 public:
  explicit Planner(uint32_t wave_size) : mask_dwords_(wave_size == 64 ? 2 : 1) {}

  void Add(const Instruction& instruction) {
    const uint32_t flags = instruction.opcode->flags;
    const AccessClass access = instruction.opcode->traits.access;
    Access::Lanes lanes = (flags & kIgnoresExec) != 0 ? Access::kAll : Access::kActive;
    const OpClass op_class = instruction.opcode->op_class;
    const bool matrix = op_class == OpClass::kMatrix || op_class == OpClass::kSparseMatrix;
    if (!matrix && (flags & kCrossLane) != 0) lanes = Access::kUnknown;

    for (size_t place = 0; place < instruction.src.size(); ++place) {
      const bool moved = place == 0 && (instruction.mod.dpp != 0);
      const Operand operand = Selected(instruction, place);
      Read(operand, moved ? Access::kUnknown : lanes, static_cast<uint8_t>(place));
      if (operand.dwords == 2 && plan_.reads != 0 && HighToHigh(access, place)) {
        Access& read = plan_.read[plan_.reads - 1u];
        read.high_to_high = read.place == place;
        plan_.high_to_high = plan_.high_to_high || read.high_to_high;
      }
    }
    Read(instruction.mem.soffset, lanes);
    const bool one_lane = access == AccessClass::kWriteLane;
    // A load into half of a register keeps the other half as it will be when the load arrives.
    const bool reads_dst = (flags & kReadsDst) != 0 && !one_lane && !IsMemory(op_class);
    if (reads_dst) Read(instruction.dst, lanes);
    if ((flags & kReadsVccImplicitly) != 0) Read(Vcc(), lanes);
    if ((flags & kReadsM0) != 0) Read(Scalar(kSgprM0, 1), lanes);
    plan_.reads_scc = plan_.reads_scc || (flags & kReadsScc) != 0;

    plan_.writes_scc = plan_.writes_scc || (flags & kWritesScc) != 0;
    plan_.arrives_later = IsMemory(instruction.opcode->op_class);
    plan_.writes_one_lane = one_lane;
    const Access::Lanes written = (flags & kIgnoresExec) != 0 ? Access::kAll : Access::kActive;
    Write(instruction.dst, written);
    if (access == AccessClass::kSwap) Write(instruction.src[0], written);
    Write(instruction.sdst, written);
    if ((flags & kWritesVccImplicitly) != 0) Write(Vcc(), written);
    if (instruction.dual) Add(*instruction.dual);
  }

  const AccessPlan& plan() const { return plan_; }

 private:
  static Operand Scalar(uint16_t index, uint8_t dwords) {
    Operand operand;
    operand.kind = OperandKind::kSgpr;
    operand.index = index;
    operand.dwords = dwords;
    return operand;
  }
  // Where both halves of a packed instruction take the same one of a pair of float32, that one.
  static Operand Selected(const Instruction& instruction, size_t place) {
    Operand operand = instruction.src[place];
    const bool packed = instruction.opcode->traits.access == AccessClass::kPairs;
    const auto low = static_cast<uint16_t>((instruction.mod.op_sel >> place) & 1);
    if (packed && operand.dwords == 2 && low == ((instruction.mod.op_sel_hi >> place) & 1)) {
      operand.index = static_cast<uint16_t>(operand.index + low);
      operand.dwords = 1;
    }
    return operand;
  }
  Operand Vcc() const { return Scalar(kSgprVccLo, mask_dwords_); }

  static bool ToAccess(const Operand& operand, Access::Lanes lanes, Access* access) {
    if (operand.dwords == 0) return false;
    if (operand.kind == OperandKind::kVgpr) {
      if (operand.index + operand.dwords > kVgprRows) return false;
      *access = {Access::kVector, lanes, operand.dwords, kOtherPlace, operand.index};
      return true;
    }
    if (operand.kind != OperandKind::kSgpr) return false;
    // EXEC, trap temporaries and what follows them always hold something.
    if (operand.index >= kSgprTtmp0 && operand.index != kSgprM0) return false;
    *access = {Access::kScalar, lanes, operand.dwords, kOtherPlace, operand.index};
    return true;
  }
  void Read(const Operand& operand, Access::Lanes lanes, uint8_t place = kOtherPlace) {
    if (plan_.reads < plan_.read.size() && ToAccess(operand, lanes, &plan_.read[plan_.reads])) {
      plan_.read[plan_.reads++].place = place;
    }
  }
  void Write(const Operand& operand, Access::Lanes lanes) {
    if (plan_.writes < plan_.write.size() && ToAccess(operand, lanes, &plan_.write[plan_.writes])) {
      ++plan_.writes;
    }
  }

  uint8_t mask_dwords_;
  AccessPlan plan_;
};

}  // namespace

AccessPlan PlanAccess(const Instruction& instruction, uint32_t wave_size) {
  Planner planner(wave_size);
  if (instruction.opcode) planner.Add(instruction);
  return planner.plan();
}

}  // namespace jax_fa::emulator
