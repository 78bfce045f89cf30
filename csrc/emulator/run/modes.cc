#include "emulator/run/modes.h"

#include "emulator/chip/chip.h"
#include "emulator/decode/disassemble.h"
#include "emulator/object/launch_context.h"

namespace jax_fa::emulator {
namespace {

constexpr uint32_t kResultBit = 3;  // of M0[15:12]; bit i: source i

void Move(const Wave& wave, const Instruction& relative, uint32_t place, Operand* operand) {
  const uint32_t m0 = wave.ReadSgpr(kSgprM0);
  if (operand->kind != OperandKind::kVgpr || operand->index >= 256) return;  // or an AGPR
  if (((m0 >> (12 + place)) & 1) == 0) return;
  operand->index = static_cast<uint16_t>(operand->index + (m0 & 0xff));
  const uint32_t rows = wave.group->launch->vgprs.vector;
  if (uint32_t{operand->index} + operand->dwords > rows) {
    Fail(wave, relative,
         "reaches v" + std::to_string(operand->index) + " by a relative register; the kernel has " +
             std::to_string(rows) + " VGPRs");
  }
}

}  // namespace

bool IsVector(const Instruction& instruction) {
  const uint8_t encoding = instruction.opcode->encoding;
  return (encoding >= kVop1 && encoding <= kVopd) || (encoding >= kDs && encoding <= kMtbuf);
}

bool IsIndexed(const Instruction& instruction) {
  const uint8_t encoding = instruction.opcode->encoding;
  return encoding >= kVop1 && encoding <= kVop3p;
}

IndexedInstruction::IndexedInstruction(const Wave& wave, const Instruction& relative)
    : instruction(relative) {
  for (uint32_t i = 0; i < 3; ++i) Move(wave, relative, i, &instruction.src[i]);
  Move(wave, relative, kResultBit, &instruction.dst);
  const Program& program = *wave.group->launch->program;
  plan = PlanAccess(instruction, wave.lanes);
  plan.hazard = (*program.chip->plan_hazards)(instruction, plan);
}

}  // namespace jax_fa::emulator
