// Modes of gfx9 that change what the instructions behind them do: relative vector registers
// (S_SET_GPR_IDX_*) and skipped vector instructions (S_SETVSKIP). run/scheduler.cc obeys them.
#include "emulator/exec/scalar.h"

namespace jax_fa::emulator {
namespace {

// The scheduler looks up at the next instruction.
void SetModes(Wave& wave, bool index, bool skip) {
  wave.indexes_vgprs = index;
  wave.skips_vectors = skip;
  wave.budget = 0;
}

// M0: the offset in [7:0], which operands it is added to in [15:12].
void SetM0(Wave& wave, uint32_t mask, uint32_t bits) {
  wave.WriteSgpr(kSgprM0, (wave.ReadSgpr(kSgprM0) & ~mask) | (bits & mask));
}

void IndexOn(Wave& wave, const Instruction& instruction) {
  const uint32_t offset = ReadScalar32(wave, instruction.src[0]) & 0xff;
  SetM0(wave, 0xf0ff, offset | static_cast<uint32_t>(instruction.simm16) << 12);
  SetModes(wave, true, wave.skips_vectors);
}
void IndexOff(Wave& wave, const Instruction&) { SetModes(wave, false, wave.skips_vectors); }
void IndexMode(Wave& wave, const Instruction& instruction) {
  SetM0(wave, 0xf000, static_cast<uint32_t>(instruction.simm16) << 12);
}
void IndexOffset(Wave& wave, const Instruction& instruction) {
  SetM0(wave, 0xff, ReadScalar32(wave, instruction.src[0]));
}

void SkipVectors(Wave& wave, const Instruction& instruction) {
  const uint32_t bits = ReadScalar32(wave, instruction.src[0]);
  const uint32_t place = ReadScalar32(wave, instruction.src[1]) & 31;
  SetModes(wave, wave.indexes_vgprs, ((bits >> place) & 1) != 0);
}

constexpr ScalarOp kScalarModeOps[] = {
    {kSopc, "s_set_gpr_idx_on", kAlu, IndexOn, 0, k1, kImmediateSource1},
    {kSopp, "s_set_gpr_idx_off", kAlu, IndexOff, 0, {}, 0},
    {kSopp, "s_set_gpr_idx_mode", kAlu, IndexMode, 0, {}, 0},
    {kSop1, "s_set_gpr_idx_idx", kAlu, IndexOffset, 0, k1, 0},
    {kSopc, "s_setvskip", kAlu, SkipVectors, 0, k11, 0},
};

}  // namespace

std::span<const ScalarOp> ScalarModeOps() { return kScalarModeOps; }

}  // namespace jax_fa::emulator
