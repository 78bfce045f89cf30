#include "emulator/run/follower.h"

#include <algorithm>
#include <string>

#include "emulator/decode/disassemble.h"

namespace jax_fa::emulator {
namespace {

// A hundred thousand steps are some hundred megabytes.
constexpr size_t kMaxSteps = 100'000;
constexpr uint32_t kFirstAccumulationRow = 256;

std::string NameOf(OperandKind kind, uint32_t index) {
  Operand operand;
  operand.kind = kind;
  operand.dwords = 1;
  operand.index = static_cast<uint16_t>(index);
  return RegisterName(operand);
}

// Whether the instruction itself writes the register: the result of a load comes later.
bool Writes(const AccessPlan& plan, Access::Kind kind, uint32_t index) {
  if (plan.arrives_later) return false;
  return std::any_of(plan.write.begin(), plan.write.begin() + plan.writes,
                     [&](const Access& access) {
                       return access.kind == kind && index >= access.first &&
                              index < uint32_t{access.first} + access.count;
                     });
}

}  // namespace

template <class Visit>
void Follower::ForEachRow(const Visit& visit) const {
  for (uint32_t i = 0; i < rows_.vector; ++i) visit(i);
  for (uint32_t i = 0; i < rows_.accumulation; ++i) visit(kFirstAccumulationRow + i);
}

void Follower::Begin(const Wave& wave) {
  known_.vector.assign(size_t{kVgprRows} * wave.lanes, 0);
  ForEachRow([&](uint32_t row) {
    std::copy_n(wave.Row(row), wave.lanes, &known_.vector[size_t{row} * wave.lanes]);
  });
  for (uint32_t i = 0; i < kSgprCount; ++i) known_.scalar[i] = wave.ReadSgpr(i);
  known_.scc = wave.scc;
}

void Follower::NoteVectors(const Wave& wave, const AccessPlan& plan, WaveStep* step) {
  ForEachRow([&](uint32_t row) {
    const uint32_t* const now = wave.Row(row);
    uint32_t* const before = &known_.vector[size_t{row} * wave.lanes];
    if (std::equal(now, now + wave.lanes, before) && !Writes(plan, Access::kVector, row)) return;
    std::copy_n(now, wave.lanes, before);
    step->written.push_back({NameOf(OperandKind::kVgpr, row), {now, now + wave.lanes}});
  });
}

void Follower::NoteScalars(const Wave& wave, const AccessPlan& plan, WaveStep* step) {
  for (uint32_t i = 0; i < kSgprCount; ++i) {
    const uint32_t now = wave.ReadSgpr(i);
    if (now == known_.scalar[i] && !Writes(plan, Access::kScalar, i)) continue;
    if (i == kSgprNull) continue;
    known_.scalar[i] = now;
    step->written.push_back({NameOf(OperandKind::kSgpr, i), {now}});
  }
  if (wave.scc != known_.scc || plan.writes_scc) {
    known_.scc = wave.scc;
    step->written.push_back({"scc", {wave.scc}});
  }
}

void Follower::After(const Wave& wave, const Instruction& instruction, const AccessPlan& plan) {
  if (steps_.size() == kMaxSteps) return;
  WaveStep& step = steps_.emplace_back();
  step.pc = instruction.pc;
  NoteVectors(wave, plan, &step);
  NoteScalars(wave, plan, &step);
}

}  // namespace jax_fa::emulator
