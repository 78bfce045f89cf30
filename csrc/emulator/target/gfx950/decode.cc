// The vector encodings of gfx950 (the GFX9 encodings of the gfx940 family, wave64): fields to
// operands.
#include <iterator>
#include <string_view>

#include "emulator/target/gfx950/decode_builder.h"

namespace jax_fa::emulator {
namespace {

using namespace gfx950;  // NOLINT: what the encodings share

class VectorDecoder : public Builder {
 public:
  VectorDecoder(Words words, InstructionStore* store, Instruction* instruction)
      : Builder(words, 1, instruction), store_(*store) {}

  std::string Run() {
    const uint32_t word = words_[0];
    if ((word >> 31) == 0) {
      Vop12c();
    } else if ((word >> 23) == kVop3pBits) {
      Vop3p();
    } else if ((word >> 26) == 0x34) {
      Vop3();
    } else {
      Fail("unknown encoding");
    }
    return Finish();
  }

 private:
  static constexpr uint32_t kVop3pBits = 0x1a7;

  // Source 0 of VOP1, VOP2 and VOPC, which may ask for a second dword.
  void FirstSource(uint32_t code, bool compare) {
    if (code != kSdwa && code != kDpp) {
      Source(0, code, (row_->flags & kAgprSource) != 0);
      return;
    }
    if (!Has(2)) return;
    size_words_ = 2;
    const uint32_t word = words_[1];
    mod_.neg = Byte(Bits(word, 20, 1) | Bits(word, code == kSdwa ? 28 : 22, 1) << 1);
    mod_.abs = Byte(Bits(word, 21, 1) | Bits(word, code == kSdwa ? 29 : 23, 1) << 1);
    if (code == kDpp) {
      mod_.dpp = 1;
      mod_.dpp_ctrl = static_cast<uint16_t>(Bits(word, 8, 9));
      mod_.dpp_bound_ctrl = Bits(word, 19, 1) != 0;
      mod_.dpp_bank_mask = Byte(Bits(word, 24, 4));
      mod_.dpp_row_mask = Byte(Bits(word, 28, 4));
      Source(0, 256 + Bits(word, 0, 8));
      return;
    }
    mod_.sdwa = true;
    mod_.sdwa_src0_sel = Byte(Bits(word, 16, 3));
    mod_.sdwa_src1_sel = Byte(Bits(word, 24, 3));
    mod_.sdwa_sext = Byte(Bits(word, 19, 1) | Bits(word, 27, 1) << 1);
    sdwa_scalar1_ = Bits(word, 31, 1) != 0;
    if (compare) {
      sdwa_mask_ = Bits(word, 15, 1) != 0 ? Bits(word, 8, 7) : uint32_t{kSgprVccLo};
    } else {
      mod_.sdwa_dst_sel = Byte(Bits(word, 8, 3));
      mod_.sdwa_dst_unused = Byte(Bits(word, 11, 2));
      mod_.clamp = Bits(word, 13, 1) != 0;
      mod_.omod = Byte(Bits(word, 14, 2));
    }
    Source(0, Bits(word, 0, 8) + (Bits(word, 23, 1) != 0 ? 0u : 256u));
  }

  void Vop12c() {
    const uint32_t word = words_[0];
    const uint32_t top = word >> 25;
    const uint32_t second = Bits(word, 9, 8);
    const uint32_t result = Bits(word, 17, 8);
    if (top == 0x3f) {
      if (!Find(kVop1, second)) return;
      FirstSource(Bits(word, 0, 9), false);
      Result(result);
      return;
    }
    if (top == 0x3e) {
      if (!Find(kVopc, result)) return;
      sdwa_mask_ = kSgprVccLo;
      FirstSource(Bits(word, 0, 9), true);
      Source(1, second + (sdwa_scalar1_ ? 0u : 256u));
      MaskResult(sdwa_mask_);
      return;
    }
    if (!Find(kVop2, top)) return;
    FirstSource(Bits(word, 0, 9), false);
    const std::string_view name = row_->mnemonic;
    if (name.ends_with("mk_f32") || name.ends_with("mk_f16")) {  // src0 * K + src1
      Source(1, kLiteral);
      Source(2, 256 + second);
    } else {
      Source(1, second + (sdwa_scalar1_ ? 0u : 256u));
      if (row_->src_dwords[2] == 1) Source(2, kLiteral);  // src0 * src1 + K
      if (row_->src_dwords[2] == 2) Source(2, kSgprVccLo);
    }
    if ((row_->flags & kPackedMath) != 0) mod_.op_sel_hi = 7;
    Result(result);
    MaskResult(kSgprVccLo);
  }

  void Vop3() {
    if (!Has(2)) return;
    size_words_ = 2;
    const uint32_t low = words_[0], high = words_[1];
    const uint32_t number = Bits(low, 16, 10);
    const bool compare = number < kGfx950Vop2InVop3;
    const bool found = compare                      ? Find(kVopc, number)
                       : number < kGfx950Vop1InVop3 ? Find(kVop2, number - kGfx950Vop2InVop3)
                       : number < kGfx950Vop3Only   ? Find(kVop1, number - kGfx950Vop1InVop3)
                                                    : Find(kVop3, number);
    if (!found) return;
    const bool has_mask = row_->sdst_dwords != 0 && !compare;
    mod_.clamp = Bits(low, 15, 1) != 0;
    mod_.omod = Byte(Bits(high, 27, 2));
    mod_.neg = Byte(Bits(high, 29, 3));
    if (!has_mask) {
      mod_.abs = Byte(Bits(low, 8, 3));
      mod_.op_sel = Byte(Bits(low, 11, 4));
    }
    Source(0, Bits(high, 0, 9));
    Source(1, Bits(high, 9, 9));
    Source(2, Bits(high, 18, 9));
    if (compare) {
      MaskResult(Bits(low, 0, 8));
    } else {
      Result(Bits(low, 0, 8));
      MaskResult(Bits(low, 8, 7));
    }
  }

  void Vop3p() {
    if (!Has(2)) return;
    size_words_ = 2;
    const uint32_t low = words_[0], high = words_[1];
    if (Bits(low, 16, 7) == kGfx950LoadScale) return ScaledMatrix();
    if (!Find(kVop3p, Bits(low, 16, 7))) return;
    if (row_->op_class == OpClass::kMatrix || row_->op_class == OpClass::kSparseMatrix) {
      return Matrix(low, high);
    }
    mod_.abs = Byte(Bits(low, 8, 3));  // neg_hi
    mod_.op_sel = Byte(Bits(low, 11, 3));
    mod_.op_sel_hi = Byte(Bits(high, 27, 2) | Bits(low, 14, 1) << 2);
    mod_.clamp = Bits(low, 15, 1) != 0;
    mod_.neg = Byte(Bits(high, 29, 3));
    Source(0, Bits(high, 0, 9), (row_->flags & kAgprSource) != 0);
    Source(1, Bits(high, 9, 9));
    Source(2, Bits(high, 18, 9));
    Result(Bits(low, 0, 8));
  }

  void Matrix(uint32_t low, uint32_t high) {
    mod_.cbsz = Byte(Bits(low, 8, 3));
    mod_.abid = Byte(Bits(low, 11, 4));
    mod_.blgp = Byte(Bits(high, 29, 3));
    const bool agprs = Bits(low, 15, 1) != 0;  // C and D; the positions of sparse ones never are
    const bool narrow = std::string_view(row_->mnemonic).ends_with("_f8f6f4");
    for (uint32_t i = 0; i < 2; ++i) {
      constexpr uint8_t kDwords[] = {8, 8, 6, 6, 4};  // by format
      const uint32_t code = Bits(high, static_cast<int>(9 * i), 9),
                     format = i == 0 ? mod_.cbsz : mod_.blgp;
      if (narrow && format >= std::size(kDwords)) {
        return Fail("unknown format " + std::to_string(format) + " of " + Name());
      }
      if (code < 256) return Fail(Name() + " needs registers");
      instruction_.src[i] = Vector(code - 256, narrow ? kDwords[format] : row_->src_dwords[i],
                                   Bits(high, static_cast<int>(27 + i), 1) != 0);
    }
    const uint32_t third = Bits(high, 18, 9);
    Source(2, third, agprs && third >= 256 && row_->op_class == OpClass::kMatrix);
    Result(Bits(low, 0, 8), agprs);
  }

  // The scales stand first, then the product, with bit 0 of abid set.
  void ScaledMatrix() {
    if (!Has(4) || !Find(kVop3p, kGfx950LoadScale)) return;
    const uint32_t low = words_[0], high = words_[1];
    mod_.op_sel = Byte(Bits(low, 11, 3));
    mod_.op_sel_hi = Byte(Bits(high, 27, 2));
    Source(0, Bits(high, 0, 9));
    Source(1, Bits(high, 9, 9));
    for (size_t i = 0; i < 2; ++i) {
      if (instruction_.src[i].kind != OperandKind::kVgpr) Fail("scales must be in registers");
    }
    const Instruction& scales = store_.emplace_back(instruction_);
    instruction_ = Instruction();
    instruction_.dual = &scales;
    size_words_ = 4;
    const bool product = words_[2] >> 23 == kVop3pBits && Bits(words_[2], 11, 1) != 0;
    if (!product) return Fail("v_mfma_ld_scale_b32 with no matrix product behind it");
    if (Find(kVop3p, kGfx950Scaled | Bits(words_[2], 16, 7))) Matrix(words_[2], words_[3]);
  }

  InstructionStore& store_;
  bool sdwa_scalar1_ = false;
  uint32_t sdwa_mask_ = kSgprVccLo;
};

}  // namespace

std::string DecodeGfx950(Words words, InstructionStore* store, Instruction* instruction) {
  std::string failure;
  if (DecodeSop(Gfx950Opcodes(), kGfx950Chip.scalar_codes, words, instruction, &failure) ||
      DecodeMemory(words, instruction, &failure)) {
    return failure;
  }
  return VectorDecoder(words, store, instruction).Run();
}

}  // namespace jax_fa::emulator
