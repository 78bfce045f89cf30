// The vector encodings of gfx1201 (gfx12, wave32): fields to operands.
//
// 16-bit operands are halves of registers here. In VOP1, VOP2 and VOPC the top bit of a register
// number of such an operand selects the upper half, everywhere else op_sel does.
#include <algorithm>

#include "emulator/exec/gfx1201.h"
#include "emulator/target/gfx1201/decode_builder.h"

namespace jax_fa::emulator {
namespace {

using namespace gfx1201;  // NOLINT: what the encodings share

Operand ScalarOperand(uint16_t index) {
  Operand operand;
  operand.kind = OperandKind::kSgpr;
  operand.dwords = 1;
  operand.index = index;
  return operand;
}

// VOP2's third source, where the encoding has no room for it.
void ImplicitThird(Builder* builder, Instruction* instruction, uint32_t second) {
  const Opcode& row = *instruction->opcode;
  if ((row.flags & kLiteralLast) != 0) {  // fmaak: src0 * src1 + K
    builder->SourceOrHalf(1, second);
    builder->Source(2, kLiteral);
  } else if ((row.flags & kLiteralMiddle) != 0) {  // fmamk: src0 * K + src1
    builder->Source(1, kLiteral);
    builder->SourceOrHalf(2, second);
  } else {
    builder->SourceOrHalf(1, second);
    if ((row.flags & kMaskSrc2) != 0) instruction->src[2] = ScalarOperand(kSgprVccLo);
  }
}

std::string DecodeVop12c(Words words, Instruction* instruction) {
  const uint32_t word = words[0];
  Builder builder(words, 1, instruction);
  const uint32_t top = word >> 25;
  const Encoding encoding = top == 0x3f ? kVop1 : top == 0x3e ? kVopc : kVop2;
  const uint32_t number = encoding == kVop1   ? Bits(word, 9, 8)
                          : encoding == kVopc ? Bits(word, 17, 8)
                                              : Bits(word, 25, 6);
  if (!builder.FindRow(encoding, number)) return builder.failure();
  const Opcode& row = *instruction->opcode;
  const uint32_t first = builder.Dpp(Bits(word, 0, 9), /*with_modifiers=*/true);
  if (!builder.failure().empty()) return builder.failure();
  builder.SourceOrHalf(0, first);
  const uint32_t second = 256 + Bits(word, 9, 8);
  if (encoding == kVop2) ImplicitThird(&builder, instruction, second);
  if (encoding == kVopc) {
    builder.SourceOrHalf(1, second);
    builder.ScalarDst((row.flags & kWritesExec) != 0 ? kSgprExecLo : kSgprVccLo);
    return builder.Finish();
  }
  if ((row.flags & kScalarResult) != 0) {
    builder.ScalarResult(Bits(word, 17, 8));
  } else {
    builder.DstOrHalf(Bits(word, 17, 8));
  }
  builder.ScalarDst(kSgprVccLo);
  return builder.Finish();
}

std::string DecodeVop3(Words words, Instruction* instruction) {
  Builder builder(words, 2, instruction);
  if (!builder.Has(2)) return builder.failure();
  const uint32_t low = words[0], high = words[1];
  if (!builder.FindRow(kVop3, Bits(low, 16, 10))) return builder.failure();
  const Opcode& row = *instruction->opcode;
  Modifiers& mod = instruction->mod;
  const bool compare = row.number < kVop2InVop3;
  const bool has_sdst = row.sdst_dwords != 0 && !compare;
  mod.clamp = Bits(low, 15, 1) != 0;
  mod.omod = static_cast<uint8_t>(Bits(high, 27, 2));
  mod.neg = static_cast<uint8_t>(Bits(high, 29, 3));
  if (!has_sdst) {
    mod.abs = static_cast<uint8_t>(Bits(low, 8, 3));
    mod.op_sel = static_cast<uint8_t>(Bits(low, 11, 4));
  }
  const uint32_t first = builder.Dpp(Bits(high, 0, 9), /*with_modifiers=*/false);
  if (!builder.failure().empty()) return builder.failure();
  builder.Source(0, first);
  builder.Source(1, Bits(high, 9, 9));
  builder.Source(2, Bits(high, 18, 9));
  const uint32_t dst = Bits(low, 0, 8);
  if (compare) {
    builder.ScalarDst((row.flags & kWritesExec) != 0 ? uint32_t{kSgprExecLo} : dst);
  } else if ((row.flags & kScalarResult) != 0) {
    builder.ScalarResult(dst);
  } else {
    builder.Dst(dst);
    if (has_sdst) builder.ScalarDst(Bits(low, 8, 7));
  }
  return builder.Finish();
}

std::string DecodeVop3p(Words words, Instruction* instruction) {
  Builder builder(words, 2, instruction);
  if (!builder.Has(2)) return builder.failure();
  const uint32_t low = words[0], high = words[1];
  if (!builder.FindRow(kVop3p, Bits(low, 16, 7))) return builder.failure();
  Modifiers& mod = instruction->mod;
  mod.abs = static_cast<uint8_t>(Bits(low, 8, 3));  // neg_hi
  mod.op_sel = static_cast<uint8_t>(Bits(low, 11, 3));
  mod.op_sel_hi = static_cast<uint8_t>(Bits(high, 27, 2) | Bits(low, 14, 1) << 2);
  mod.clamp = Bits(low, 15, 1) != 0;
  mod.neg = static_cast<uint8_t>(Bits(high, 29, 3));
  const uint32_t first = builder.Dpp(Bits(high, 0, 9), /*with_modifiers=*/false);
  if (!builder.failure().empty()) return builder.failure();
  builder.Source(0, first);
  builder.Source(1, Bits(high, 9, 9));
  builder.Source(2, Bits(high, 18, 9));
  builder.Dst(Bits(low, 0, 8));
  if (instruction->opcode->op_class == OpClass::kMatrix) {
    const auto& src = instruction->src;
    if (src[0].kind != OperandKind::kVgpr || src[1].kind != OperandKind::kVgpr ||
        (src[2].kind != OperandKind::kVgpr && src[2].kind != OperandKind::kConstant)) {
      builder.Fail("matrices of " + builder.Name() + " are VGPRs, and C else a constant");
    }
  }
  return builder.Finish();
}

// Two VALU operations in one instruction: X in `instruction`, Y in the store. Both may use the one
// literal.
std::string DecodeVopd(Words words, InstructionStore* store, Instruction* instruction) {
  Builder x(words, 2, instruction);
  if (!x.Has(2)) return x.failure();
  const uint32_t low = words[0], high = words[1];
  Instruction second;
  Builder y(words, 2, &second);
  if (!x.FindRow(kVopd, Bits(low, 22, 4))) return x.failure();
  if (!y.FindRow(kVopd, Bits(low, 17, 5))) return y.failure();
  const uint32_t dst_x = Bits(high, 24, 8);
  x.Source(0, Bits(low, 0, 9));
  ImplicitThird(&x, instruction, 256 + Bits(low, 9, 8));
  x.Dst(dst_x);
  y.Source(0, Bits(high, 0, 9));
  ImplicitThird(&y, &second, 256 + Bits(high, 9, 8));
  y.Dst(Bits(high, 17, 7) << 1 | ((dst_x & 1u) ^ 1u));
  std::string failure = x.Finish();
  if (failure.empty()) failure = y.Finish();
  if (!failure.empty()) return failure;
  const uint8_t size = std::max(instruction->size_bytes, second.size_bytes);
  instruction->size_bytes = second.size_bytes = size;
  store->push_back(second);
  instruction->dual = &store->back();
  instruction->exec = ChooseDualExec(*instruction, second);
  return {};
}

}  // namespace

std::string DecodeGfx1201(Words words, InstructionStore* store, Instruction* instruction) {
  const uint32_t word = words[0];
  if ((word >> 31) == 0) return DecodeVop12c(words, instruction);
  switch (word >> 24) {
    case 0xcc:
      return DecodeVop3p(words, instruction);
    case 0xec:
      return DecodeFlat(words, kFlat, instruction);
    case 0xed:
      return DecodeFlat(words, kScratch, instruction);
    case 0xee:
      return DecodeFlat(words, kGlobal, instruction);
    default:
      break;
  }
  switch (word >> 26) {
    case 0x35:
      return DecodeVop3(words, instruction);
    case 0x32:
      return DecodeVopd(words, store, instruction);
    case 0x36:
      return DecodeDs(words, instruction);
    case 0x31:
      return DecodeVbuffer(words, instruction);
    case 0x3d:
      return DecodeSmem(words, instruction);
    default:
      break;
  }
  std::string failure;
  if (DecodeSop(Gfx1201Opcodes(), kGfx1201Chip.scalar_codes, words, instruction, &failure))
    return failure;
  return failure.empty() ? "an encoding that the emulator does not know" : failure;
}

}  // namespace jax_fa::emulator
