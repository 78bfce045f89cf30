// The general form of a vector ALU instruction: everything the fast path of simd/valu_rows.h leaves
// out.
//
// Order, as in the ISA documents: select (DPP, SDWA, op_sel), absolute value, negation, denormals
// of the sources, the operation, output multiplier, denormals of the result, clamp, and the write
// of the part of the register that was asked for, in the lanes that are on.
#include <cfenv>

#include "emulator/exec/valu_general.h"

// The helpers of the SIMD families, in a copy of their own: this file exists once.
#define JAX_FA_SIMD general
#include "emulator/simd/math.h"
#include "emulator/simd/row.h"
#include "emulator/state/operand.h"

namespace jax_fa::emulator {

using namespace general;  // NOLINT: the copy above, private to this file

const uint32_t* SourceRowSlow(const Wave& wave, const Operand& operand, int dword,
                              uint32_t* scratch) {
  uint32_t value = 0;
  switch (operand.kind) {
    case OperandKind::kSgpr:
      value = wave.ReadSgpr(operand.index + static_cast<uint32_t>(dword));
      break;
    case OperandKind::kConstant:
      value = dword == 0 ? operand.value : operand.value_high;
      break;
    case OperandKind::kSpecial:
      value = static_cast<uint32_t>(ReadScalarSource(wave, operand) >> (32 * dword));
      break;
    case OperandKind::kVgpr:
      return wave.Row(operand.index + static_cast<uint32_t>(dword));
    case OperandKind::kNone:
      break;
  }
  for (int l = 0; l < kLaneStride; ++l) scratch[l] = value;
  return scratch;
}

uint64_t SourceMask(const Wave& wave, const Operand& operand) {
  return operand.kind == OperandKind::kSgpr ? wave.ReadMask(operand.index)
                                            : ReadScalarSource(wave, operand);
}

int DppSource(uint32_t ctrl, int lane, int lanes) {
  const int row = lane & ~15;
  const int in_row = lane & 15;
  if (ctrl <= 0xff) return (lane & ~3) + static_cast<int>((ctrl >> (2 * (lane & 3))) & 3);
  const int amount = static_cast<int>(ctrl & 15);
  switch (ctrl & ~15u) {
    case 0x100:  // row_shl
      return amount == 0 ? -2 : in_row + amount < 16 ? lane + amount : -1;
    case 0x110:  // row_shr
      return amount == 0 ? -2 : in_row - amount >= 0 ? lane - amount : -1;
    case 0x120:  // row_ror
      return amount == 0 ? -2 : row + ((in_row - amount) & 15);
    case 0x150:  // row_newbcast, row_share
      return row + amount;
    case 0x160:  // row_xmask
      return row + (in_row ^ amount);
    default:
      break;
  }
  switch (ctrl) {
    case 0x130:  // wave_shl
      return lane + 1 < lanes ? lane + 1 : -1;
    case 0x134:  // wave_rol
      return (lane + 1) % lanes;
    case 0x138:  // wave_shr
      return lane - 1;
    case 0x13c:  // wave_ror
      return (lane + lanes - 1) % lanes;
    case 0x140:  // row_mirror
      return row + 15 - in_row;
    case 0x141:  // row_half_mirror
      return (lane & ~7) + 7 - (lane & 7);
    case 0x142:  // row_bcast:15
      return row == 0 ? -1 : row - 1;
    case 0x143:  // row_bcast:31
      return lane < 32 ? -1 : 31;
    default:
      return -2;
  }
}

namespace {

// Replaces the rows of source 0 by what DPP reads, and takes lanes out of `lanes` that it turns
// off.
void ApplyDpp(const Wave& wave, const Instruction& instruction, Row* rows, int dwords,
              uint64_t* lanes) {
  const Modifiers& mod = instruction.mod;
  alignas(64) Row before;
  int source[kLaneStride];
  for (int l = 0; l < wave.lanes; ++l) {
    if (mod.dpp == 2) {
      source[l] = (l & ~7) + static_cast<int>((mod.dpp8 >> (3 * (l & 7))) & 7);
    } else {
      source[l] = DppSource(mod.dpp_ctrl, l, wave.lanes);
    }
    if (source[l] == -2)
      Fail(wave, instruction, "unknown DPP control " + std::to_string(mod.dpp_ctrl));
    const bool enabled = mod.dpp == 2 || (((mod.dpp_row_mask >> (l / 16)) & 1) != 0 &&
                                          ((mod.dpp_bank_mask >> ((l & 15) / 4)) & 1) != 0);
    const bool valid =
        source[l] >= 0 && (mod.dpp_fetch_inactive || ((wave.exec >> source[l]) & 1) != 0);
    if (!valid) source[l] = -1;
    // An invalid source reads 0 under bound_ctrl, and turns the lane off otherwise.
    if (!enabled || (!valid && !mod.dpp_bound_ctrl && mod.dpp == 1)) *lanes &= ~(uint64_t{1} << l);
  }
  for (int dword = 0; dword < dwords; ++dword) {
    std::memcpy(before, rows[dword], sizeof before);
    for (int l = 0; l < wave.lanes; ++l) rows[dword][l] = source[l] < 0 ? 0 : before[source[l]];
  }
}

uint32_t SelectSdwa(uint32_t value, uint32_t select, bool sign_extend) {
  if (select < 4) {
    const uint32_t byte = (value >> (8 * select)) & 0xff;
    return sign_extend ? static_cast<uint32_t>(static_cast<int8_t>(byte)) : byte;
  }
  if (select < 6) {
    const uint32_t word = (value >> (16 * (select - 4))) & 0xffff;
    return sign_extend ? static_cast<uint32_t>(static_cast<int16_t>(word)) : word;
  }
  return value;
}

// The host's rounding direction while it lives.
class RoundingScope {
 public:
  explicit RoundingScope(int mode) : active_(mode != 0), before_(0) {
    constexpr int kModes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    if (!active_) return;
    before_ = std::fegetround();
    std::fesetround(kModes[mode & 3]);
  }
  ~RoundingScope() {
    if (active_) std::fesetround(before_);
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  bool active_;
  int before_;
};

// The part of the destination that a 16-bit or SDWA result replaces, lane by lane.
uint32_t Merge(uint32_t old, uint32_t value, const Modifiers& mod, bool is_16bit, bool keeps) {
  if (mod.sdwa && mod.sdwa_dst_sel < 6) {
    const uint32_t bits = mod.sdwa_dst_sel < 4 ? 8 : 16;
    const uint32_t shift =
        mod.sdwa_dst_sel < 4 ? 8u * mod.sdwa_dst_sel : 16u * (mod.sdwa_dst_sel - 4u);
    const uint32_t mask = ((1u << bits) - 1) << shift;
    const uint32_t part = (value << shift) & mask;
    if (mod.sdwa_dst_unused == 2) return (old & ~mask) | part;
    if (mod.sdwa_dst_unused == 1) {  // sign-extended above, zero below
      return static_cast<uint32_t>(static_cast<int32_t>(part << (32 - bits - shift)) >>
                                   (32 - bits - shift)) &
             ~((1u << shift) - 1);
    }
    return part;
  }
  if (!is_16bit) return value;
  if ((mod.op_sel & 8) != 0) return (old & 0xffffu) | (value << 16);
  return keeps ? (old & 0xffff0000u) | (value & 0xffffu) : value & 0xffffu;
}

}  // namespace

void ExecValuGeneral(Wave& wave, const Instruction& instruction, const ValuOp& op) {
  const Modifiers& mod = instruction.mod;
  uint64_t lanes = wave.exec;
  alignas(64) Row source[3][2];
  const uint32_t* in[8] = {};
  const int count = op.sources[2] != LaneType::kNone ? 3 : op.sources[1] != LaneType::kNone ? 2 : 1;
  for (int i = 0; i < count; ++i) {
    const LaneType type = op.sources[static_cast<size_t>(i)];
    const bool accumulator = op.accumulates && i == count - 1;
    const Operand& operand =
        accumulator ? instruction.dst : instruction.src[static_cast<size_t>(i)];
    Row* rows = source[i];
    in[2 * i] = rows[0];
    in[2 * i + 1] = Is64Bit(type) ? rows[1] : rows[0];
    if (type == LaneType::kLaneBit) {
      ExpandMask(SourceMask(wave, operand), rows[0]);
      continue;
    }
    const int dwords = Is64Bit(type) ? 2 : 1;
    for (int d = 0; d < dwords; ++d) {
      const uint32_t* row = SourceRow(wave, operand, d, rows[d]);
      if (row != rows[d]) std::memcpy(rows[d], row, sizeof(Row));
    }
    if (i == 0 && mod.dpp != 0) ApplyDpp(wave, instruction, rows, dwords, &lanes);
    if (mod.sdwa && i < 2 && !accumulator) {
      const uint32_t select = i == 0 ? mod.sdwa_src0_sel : mod.sdwa_src1_sel;
      const bool sign_extend = ((mod.sdwa_sext >> i) & 1) != 0;
      for (int l = 0; l < wave.lanes; ++l) rows[0][l] = SelectSdwa(rows[0][l], select, sign_extend);
    }
    const int select_bit = accumulator ? 3 : i;
    if (((mod.op_sel >> select_bit) & 1) != 0 && (!accumulator || Is16Bit(type))) {
      if (!Is16Bit(type)) Fail(wave, instruction, "op_sel on an operand that has no halves");
      for (int l = 0; l < wave.lanes; ++l) rows[0][l] >>= 16;
    }
    const uint32_t sign = SignMask(type);
    uint32_t* sign_row = type == LaneType::kF64 ? rows[1] : rows[0];
    const bool abs = !accumulator && ((mod.abs >> i) & 1) != 0;
    const bool neg = !accumulator && ((mod.neg >> i) & 1) != 0;
    if ((abs || neg) && sign == 0) Fail(wave, instruction, "abs or neg on an integer operand");
    if (abs || neg) {
      for (int l = 0; l < wave.lanes; ++l) {
        const uint32_t value = abs ? sign_row[l] & ~sign : sign_row[l];
        sign_row[l] = neg ? value ^ sign : value;
      }
    }
    if (!op.ignores_mode && (DenormMode(wave, type) & 1) == 0) {
      FlushRows(type, rows[0], rows[1], wave.lanes);
    }
  }

  alignas(64) Row vcc;
  if (op.reads_vcc) {
    ExpandMask(wave.ReadMask(kSgprVccLo), vcc);
    in[6] = in[7] = vcc;
  }

  alignas(64) Row result[2];
  alignas(64) Row bits;
  uint32_t* const out[3] = {result[0], result[1], bits};
  RowFn rows = op.rows;
  if (mod.clamp && !IsFloat(op.result) && op.result != LaneType::kNone) {
    if (op.clamped == nullptr) Fail(wave, instruction, "clamp on an operation that has none");
    rows = op.clamped;
  }
  int rounding = 0;
  if (!op.ignores_mode) {
    rounding = op.result == LaneType::kF32 ? wave.round_f32
               : IsFloat(op.result)        ? wave.round_f64
                                           : 0;
  }
  if (rounding != 0 && op.result == LaneType::kF16) {
    Fail(wave, instruction, "half precision results under a rounding mode other than nearest even");
  }
  {
    const RoundingScope scope(rounding);
    rows(out, in, wave.lanes);
  }

  if (op.result != LaneType::kNone) {
    const bool is_64bit = Is64Bit(op.result);
    if (IsFloat(op.result)) {
      if (mod.omod != 0 || mod.clamp) FinishFloat(wave, mod, op.result, result[0], result[1]);
      if (!op.ignores_mode && (DenormMode(wave, op.result) & 2) == 0) {
        FlushRows(op.result, result[0], result[1], wave.lanes);
      }
    } else if (mod.omod != 0) {
      Fail(wave, instruction, "an output multiplier on an integer result");
    }
    uint32_t* const low = wave.Row(instruction.dst.index);
    const bool keeps = (instruction.opcode->flags & kKeepsOtherHalf) != 0;
    if (!is_64bit && (mod.sdwa || Is16Bit(op.result))) {
      for (int l = 0; l < wave.lanes; ++l) {
        result[0][l] = Merge(low[l], result[0][l], mod, Is16Bit(op.result), keeps);
      }
    }
    BlendRow(low, result[0], lanes);
    if (is_64bit) BlendRow(low + kLaneStride, result[1], lanes);
  }
  if (op.lane_bits) {
    const uint64_t mask = PackMask(bits, wave.lanes) & lanes;
    wave.WriteMask(instruction.sdst.index, mask);
    if ((instruction.opcode->flags & kWritesExec) != 0) wave.exec = mask;
  }
}

}  // namespace jax_fa::emulator
