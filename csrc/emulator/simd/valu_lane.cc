// Vector instructions that move data between lanes or to scalar registers, and v_bitop3.
#include "emulator/simd/level.h"
#include "emulator/simd/valu_rows.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

uint32_t ScalarValue(const Wave& wave, const Operand& operand) {
  uint32_t scratch[kLaneStride];
  return SourceRow(wave, operand, 0, scratch)[0];
}

// With EXEC zero the first lane is lane 0.
void ExecReadFirstLane(Wave& wave, const Instruction& instruction) {
  const int lane = wave.exec == 0 ? 0 : std::countr_zero(wave.exec);
  uint32_t scratch[kLaneStride];
  const uint32_t value = SourceRow(wave, instruction.src[0], 0, scratch)[lane];
  wave.WriteSgpr(instruction.dst.index, value);
}

void ExecReadLane(Wave& wave, const Instruction& instruction) {
  const uint32_t lane = ScalarValue(wave, instruction.src[1]) & (wave.lanes - 1u);
  uint32_t scratch[kLaneStride];
  const uint32_t value = SourceRow(wave, instruction.src[0], 0, scratch)[lane];
  wave.WriteSgpr(instruction.dst.index, value);
}

void ExecWriteLane(Wave& wave, const Instruction& instruction) {
  const uint32_t value = ScalarValue(wave, instruction.src[0]);
  const uint32_t lane = ScalarValue(wave, instruction.src[1]) & (wave.lanes - 1u);
  wave.Row(instruction.dst.index)[lane] = value;
}

// Exchanges the upper `kRow` lanes of every pair of such rows in dst with the lower ones in src0.
template <int kRow>
void ExecPermlaneSwap(Wave& wave, const Instruction& instruction) {
  if (!wave.AllLanes()) {
    Fail(wave, instruction,
         "a permlane swap with lanes turned off: what it does is not documented");
  }
  uint32_t* const dst = wave.Row(instruction.dst.index);
  uint32_t* const src = wave.Row(instruction.src[0].index);
  for (int base = 0; base < wave.lanes; base += 2 * kRow) {
    uint32_t kept[kRow];
    std::memcpy(kept, src + base, sizeof kept);
    std::memcpy(src + base, dst + base + kRow, sizeof kept);
    std::memcpy(dst + base + kRow, kept, sizeof kept);
  }
}

void ExecSwap(Wave& wave, const Instruction& instruction) {
  uint32_t* const a = wave.Row(instruction.dst.index);
  uint32_t* const b = wave.Row(instruction.src[0].index);
  alignas(64) uint32_t kept[kLaneStride];
  std::memcpy(kept, a, sizeof kept);
  BlendRow(a, b, wave.exec);
  BlendRow(b, kept, wave.exec);
}

// Any function of three bits: bit 4a + 2b + c of a truth table, which lies in the modifier fields.
void ExecBitop3(Wave& wave, const Instruction& instruction) {
  const Modifiers& mod = instruction.mod;
  const uint32_t table = mod.neg | uint32_t{mod.abs} << 3 | uint32_t{mod.omod} << 6;
  alignas(64) uint32_t scratch[3][kLaneStride];
  const uint32_t* in[3];
  for (int i = 0; i < 3; ++i) {
    in[i] = SourceRow(wave, instruction.src[static_cast<size_t>(i)], 0, scratch[i]);
  }
  uint32_t minterm[8];
  for (int i = 0; i < 8; ++i) minterm[i] = ((table >> i) & 1) != 0 ? ~0u : 0u;
  alignas(64) uint32_t value[kLaneStride];
  for (int l = 0; l < kLaneStride; ++l) {
    const uint32_t a = in[0][l], b = in[1][l], c = in[2][l];
    const uint32_t without_a = (~b & ~c & minterm[0]) | (~b & c & minterm[1]) |
                               (b & ~c & minterm[2]) | (b & c & minterm[3]);
    const uint32_t with_a = (~b & ~c & minterm[4]) | (~b & c & minterm[5]) | (b & ~c & minterm[6]) |
                            (b & c & minterm[7]);
    value[l] = (~a & without_a) | (a & with_a);
  }
  BlendRow(wave.Row(instruction.dst.index), value, wave.exec);
}

constexpr Opcode Row(const char* mnemonic, ExecFn exec, std::array<uint8_t, 3> sources,
                     uint32_t flags) {
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kValu;
  row.exec = exec;
  row.dst_dwords = 1;
  row.src_dwords = sources;
  row.flags = flags | kIntSources;
  return row;
}

void ExecNothing(Wave&, const Instruction&) {}
constexpr Opcode NopRow(const char* mnemonic) {
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kNop;
  row.exec = &ExecNothing;
  return row;
}

constexpr Opcode kValuLaneRows[] = {
    With(NopRow("v_nop"), HazardClass::kVectorNop),
    With(NopRow("v_clrexcp"), HazardClass::kVectorNop),
    With(Row("v_readfirstlane_b32", &ExecReadFirstLane, {1, 0, 0}, kCrossLane | kReadsExec),
         HazardClass::kReadFirstLane),
    With(Row("v_readlane_b32", &ExecReadLane, {1, 1, 0}, kCrossLane | kIgnoresExec),
         HazardClass::kReadLane),
    With(With(Row("v_writelane_b32", &ExecWriteLane, {1, 1, 0},
                  kCrossLane | kIgnoresExec | kReadsDst),
              HazardClass::kWriteLane),
         AccessClass::kWriteLane),
    With(With(Row("v_permlane16_swap_b32", &ExecPermlaneSwap<16>, {1, 0, 0},
                  kCrossLane | kIgnoresExec | kReadsDst),
              HazardClass::kSwapLanes),
         AccessClass::kSwap),
    With(With(Row("v_permlane32_swap_b32", &ExecPermlaneSwap<32>, {1, 0, 0},
                  kCrossLane | kIgnoresExec | kReadsDst),
              HazardClass::kSwapLanes),
         AccessClass::kSwap),
    With(Row("v_swap_b32", &ExecSwap, {1, 0, 0}, kReadsDst), AccessClass::kSwap),
    Row("v_bitop3_b32", &ExecBitop3, {1, 1, 1}, 0),
};

}  // namespace

std::span<const Opcode> ValuLaneRows() { return kValuLaneRows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
