#include "emulator/target/gfx1201/hazards.h"

#include <algorithm>
#include <string>

#include "emulator/check/check.h"
#include "emulator/decode/disassemble.h"

namespace jax_fa::emulator {
namespace {

using Traits = HazardTraits;

constexpr uint32_t kDsNopsThatDrop = 4;  // in a wave of 32 lanes

// The fields of s_wait_alu: at zero they wait.
constexpr int32_t kScalarResults = 1 << 0, kVcc = 1 << 1, kVectorResults = 7 << 9;

bool Overlaps(const Operand& a, const Operand& b) {
  return a.kind == OperandKind::kVgpr && b.kind == OperandKind::kVgpr &&
         a.index < b.index + b.dwords && b.index < a.index + a.dwords;
}

bool IsVcc(uint32_t index) { return index >= kSgprVccLo; }

// Takes VCC, or all but VCC, off the registers that are to be waited for.
template <class Registers>
void Clear(bool vcc, Registers* registers) {
  const Registers of_vcc = Registers(3) << kSgprVccLo;
  *registers &= vcc ? ~of_vcc : of_vcc;
}

// Past the last register; damaged code may name a pair that begins at the last one.
uint32_t End(const Access& access) {
  return std::min<uint32_t>(access.first + access.count, kSgprTtmp0);
}

std::string ScalarName(uint32_t index) {
  Operand operand;
  operand.kind = OperandKind::kSgpr;
  operand.dwords = 1;
  operand.index = static_cast<uint16_t>(index);
  return RegisterName(operand);
}

}  // namespace

void Gfx1201Hazards::Begin(const Workgroup& group) {
  waves_.assign(group.waves.size(), WaveState{});
}

void Gfx1201Hazards::StepFlagged(Wave& wave, const Instruction& instruction, const AccessPlan& plan,
                                 WaveState* state) {
  const Traits& traits = plan.hazard;
  Wait(instruction, traits, state);
  const bool vector = traits.unit == Traits::kVectorUnit || traits.unit == Traits::kMatrixUnit;
  if (traits.Is(Gfx1201Hazard::kTouchesScalars)) {
    for (uint32_t i = 0; i < plan.reads; ++i) {
      if (IsPlainScalar(plan.read[i])) Read(wave, instruction, plan.read[i], vector, state);
    }
    for (uint32_t i = 0; i < plan.writes; ++i) {
      const Access& access = plan.write[i];
      if (!IsPlainScalar(access) || !state->copied[access.first / 2]) continue;
      for (uint32_t index = access.first; index < End(access); ++index) {
        (vector ? state->by_vector : state->by_scalar).set(index);
        if (IsVcc(index)) (vector ? state->by_scalar : state->by_vector).reset(index);
        state->writer[index] = &instruction;
      }
    }
  }
  if (traits.Is(Gfx1201Hazard::kSwapsLanes) && state->exec_written) {
    Report(wave, instruction,
           "follows a v_cmpx: a vector instruction other than v_nop is missing between");
  }
  if (vector && !traits.Is(Gfx1201Hazard::kVectorNop)) {
    state->exec_written = traits.Is(Gfx1201Hazard::kWritesExecMask);
  }
}

void Gfx1201Hazards::Wait(const Instruction& instruction, const Traits& traits, WaveState* state) {
  if (traits.Is(Gfx1201Hazard::kDropsCopies)) {
    state->ds_nops = instruction.pc == state->after_ds_nop ? state->ds_nops + 1 : 1;
    state->after_ds_nop = instruction.pc + instruction.size_bytes;
  }
  const bool dropped = traits.Is(Gfx1201Hazard::kDropsCopies) && state->ds_nops >= kDsNopsThatDrop;
  if (dropped) state->copied.reset();
  if (dropped || traits.Is(Gfx1201Hazard::kWaitsForScalars)) {
    state->by_scalar.reset();
    state->by_vector.reset();
  }
  if (traits.Is(Gfx1201Hazard::kWaitsForAlu)) {
    const int32_t fields = instruction.simm16;
    if ((fields & kScalarResults) == 0) state->by_scalar.reset();
    if ((fields & kVcc) == 0) Clear(/*vcc=*/true, &state->by_vector);
    if ((fields & kVectorResults) == 0) Clear(/*vcc=*/false, &state->by_vector);
  }
}

void Gfx1201Hazards::Read(Wave& wave, const Instruction& instruction, const Access& access,
                          bool vector, WaveState* state) {
  const bool vcc = IsVcc(access.first);
  if (!vector) Clear(vcc, &state->by_vector);
  if (!state->copied[access.first / 2]) {
    if (vector) state->copied.set(access.first / 2);
    return;
  }
  for (uint32_t index = access.first; index < End(access); ++index) {
    const bool scalar = state->by_scalar[index];
    if (!scalar && !state->by_vector[index]) continue;
    Report(wave, instruction,
           "reads " + ScalarName(index) + ", which " + state->writer[index]->opcode->mnemonic +
               " wrote after a vector instruction had read it or its pair: s_wait_alu depctr_" +
               (scalar ? "sa_sdst"
                : vcc  ? "va_vcc"
                       : "va_sdst") +
               "(0) is missing before");
    if (scalar) {
      state->by_scalar.reset();
    } else {
      Clear(vcc, &state->by_vector);
    }
    return;
  }
}

void Gfx1201Hazards::CheckMatrix(Wave& wave, const Instruction& instruction,
                                 const Instruction& before) {
  for (size_t place = 0; place < 2; ++place) {
    if (!Overlaps(before.dst, instruction.src[place])) continue;
    Report(wave, instruction,
           "reads " + RegisterName(instruction.src[place]) +
               " right after the matrix instruction before wrote it: a v_nop is missing between");
    return;
  }
}

}  // namespace jax_fa::emulator
