#include "emulator/exec/gfx1201.h"

#include <cstring>

#include "emulator/exec/transfer.h"
#include "emulator/simd/valu_op.h"
#include "emulator/state/memory.h"
#include "emulator/state/operand.h"

namespace jax_fa::emulator {
namespace {

// ---- VOPD ----
void ExecXThenY(Wave& wave, const Instruction& x) {
  x.opcode->exec(wave, x);
  x.dual->opcode->exec(wave, *x.dual);
}
void ExecYThenX(Wave& wave, const Instruction& x) {
  x.dual->opcode->exec(wave, *x.dual);
  x.opcode->exec(wave, x);
}
// Each half reads what the other writes.
void ExecCrossed(Wave& wave, const Instruction& x) {
  uint32_t* const row = wave.Row(x.dst.index);
  uint32_t before[kLaneStride], result[kLaneStride];
  std::memcpy(before, row, sizeof before);
  x.opcode->exec(wave, x);
  std::memcpy(result, row, sizeof result);
  std::memcpy(row, before, sizeof before);
  x.dual->opcode->exec(wave, *x.dual);
  std::memcpy(row, result, sizeof result);
}
bool Reads(const Instruction& instruction, uint16_t vgpr) {
  for (const Operand& source : instruction.src) {
    if (source.kind == OperandKind::kVgpr && source.index == vgpr) return true;
  }
  return false;
}

// ---- cross-lane moves ----
// Lane l takes source lane `from`; -1: none, the lane keeps its value unless `bound_ctrl` gives 0.
// Sources are off lanes only under `fetch_inactive`.
template <class FromFn>
void Permute(Wave& wave, const Instruction& instruction, bool fetch_inactive, bool bound_ctrl,
             const FromFn& from) {
  uint32_t before[kLaneStride];
  uint32_t scratch[kLaneStride];
  std::memcpy(before, SourceRow(wave, instruction.src[0], 0, scratch), sizeof before);
  uint32_t select[kLaneStride];
  for (int l = 0; l < wave.lanes; ++l) select[l] = static_cast<uint32_t>(from(l));
  uint32_t* row = wave.Row(instruction.dst.index);
  for (int l = 0; l < wave.lanes; ++l) {
    if (((wave.exec >> l) & 1) == 0) continue;
    const bool valid = fetch_inactive || ((wave.exec >> select[l]) & 1) != 0;
    if (valid) {
      row[l] = before[select[l]];
    } else if (bound_ctrl) {
      row[l] = 0;
    }
  }
}
// v_permlane16: within a row of 16 lanes; v_permlanex16: from the other row of the pair. Lane i of
// the row takes lane select[i], sixteen 4-bit numbers in two scalars. op_sel[0]: also lanes that
// are off; op_sel[1]: 0 instead of the old value where the source is off.
template <int kOtherRow>
void ExecPermlane16(Wave& wave, const Instruction& instruction) {
  uint32_t low[kLaneStride], high[kLaneStride];
  const uint32_t* low_row = SourceRow(wave, instruction.src[1], 0, low);
  const uint32_t* high_row = SourceRow(wave, instruction.src[2], 0, high);
  const uint64_t selects = low_row[0] | (uint64_t{high_row[0]} << 32);
  Permute(wave, instruction, (instruction.mod.op_sel & 1) != 0, (instruction.mod.op_sel & 2) != 0,
          [&](int l) {
            return ((l & ~15) ^ kOtherRow) + static_cast<int>((selects >> (4 * (l & 15))) & 15);
          });
}
template <int kOtherRow>
void ExecPermlane16Var(Wave& wave, const Instruction& instruction) {
  uint32_t scratch[kLaneStride];
  const uint32_t* select = SourceRow(wave, instruction.src[1], 0, scratch);
  Permute(wave, instruction, (instruction.mod.op_sel & 1) != 0, (instruction.mod.op_sel & 2) != 0,
          [&](int l) { return ((l & ~15) ^ kOtherRow) + static_cast<int>(select[l] & 15); });
}
// The halves of a wave64 change places; in a wave32 there is nothing to change.
void ExecPermlane64(Wave& wave, const Instruction& instruction) {
  Permute(wave, instruction, /*fetch_inactive=*/true, false,
          [&](int l) { return wave.lanes == 64 ? l ^ 32 : l; });
}

// ---- memory ----
// Eight lanes give the addresses of eight rows of eight 16-bit elements; lane t of the eight
// receives column t, element j of it from row j.
void ExecLoadTranspose(Wave& wave, const Instruction& instruction) {
  if (!wave.AllLanes()) {
    Fail(wave, instruction, "a transposing load with lanes turned off: not documented");
  }
  const Operand& address = instruction.src[0];
  const uint32_t* low = wave.Row(address.index);
  const uint32_t* high = address.dwords == 2 ? low + kLaneStride : nullptr;
  uint64_t base = static_cast<uint64_t>(int64_t{instruction.mem.offset});
  if (instruction.src[2].kind != OperandKind::kNone) {
    base += ReadScalarSource(wave, instruction.src[2]);
  }
  InFlight& result = Issue(wave, instruction, Counter::kLoad);
  ToRegisters<kDword4>(wave, instruction, &result);
  constexpr int kSide = 8;
  for (int group = 0; group < wave.lanes; group += kSide) {
    uint16_t rows[kSide][kSide];
    for (int i = 0; i < kSide; ++i) {
      const int l = group + i;
      const uint64_t at = base + low[l] + (high ? uint64_t{high[l]} << 32 : 0);
      std::memcpy(rows[i], LoadPointer(wave, instruction, at, sizeof rows[i], l), sizeof rows[i]);
    }
    for (int t = 0; t < kSide; ++t) {
      for (int d = 0; d < kSide / 2; ++d) {
        result.data[static_cast<size_t>(d * kLaneStride + group + t)] =
            rows[2 * d][t] | static_cast<uint32_t>(rows[2 * d + 1][t]) << 16;
      }
    }
  }
  Push(wave, instruction, result);
}
// Cache control moves nothing that a kernel could see here, but counts.
template <Counter kCounter>
void ExecCacheControl(Wave& wave, const Instruction& instruction) {
  Push(wave, instruction, Issue(wave, instruction, kCounter));
}

constexpr Opcode LaneRow(const char* mnemonic, OpClass op_class, ExecFn exec, uint8_t dst,
                         std::array<uint8_t, 3> src, uint32_t flags) {
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = op_class;
  row.exec = exec;
  row.dst_dwords = dst;
  row.src_dwords = src;
  row.flags = flags;
  return row;
}

}  // namespace

ExecFn ChooseDualExec(const Instruction& x, const Instruction& y) {
  if (!Reads(y, x.dst.index)) return ExecXThenY;
  return Reads(x, y.dst.index) ? ExecCrossed : ExecYThenX;
}

std::span<const Opcode> Gfx1201OwnRows() {
  constexpr uint32_t kLanes = kCrossLane | kReadsDst | kIntSources;
  static constexpr Opcode kRows[] = {
      With(LaneRow("v_permlane16_b32", OpClass::kValu, ExecPermlane16<0>, 1, {1, 1, 1}, kLanes),
           HazardClass::kSwapLanes),
      With(LaneRow("v_permlanex16_b32", OpClass::kValu, ExecPermlane16<16>, 1, {1, 1, 1}, kLanes),
           HazardClass::kSwapLanes),
      With(LaneRow("v_permlane16_var_b32", OpClass::kValu, ExecPermlane16Var<0>, 1, {1, 1, 0},
                   kLanes),
           HazardClass::kSwapLanes),
      With(LaneRow("v_permlanex16_var_b32", OpClass::kValu, ExecPermlane16Var<16>, 1, {1, 1, 0},
                   kLanes),
           HazardClass::kSwapLanes),
      With(LaneRow("v_permlane64_b32", OpClass::kValu, ExecPermlane64, 1, {1, 0, 0},
                   kCrossLane | kIntSources),
           HazardClass::kSwapLanes),
      MemoryRow("global_load_tr_b128", OpClass::kVmemLoad, ExecLoadTranspose, 4, {2, 0, 2}, 0),
      MemoryRow("global_inv", OpClass::kVmemLoad, ExecCacheControl<Counter::kLoad>, 0, {}, 0),
      MemoryRow("global_wb", OpClass::kVmemStore, ExecCacheControl<Counter::kStore>, 0, {}, 0),
      MemoryRow("global_wbinv", OpClass::kVmemStore, ExecCacheControl<Counter::kStore>, 0, {}, 0),
  };
  return kRows;
}

}  // namespace jax_fa::emulator
