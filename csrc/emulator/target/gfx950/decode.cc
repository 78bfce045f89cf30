// The vector encodings of gfx950 (the GFX9 encodings of the gfx940 family, wave64): fields to
// operands.
#include "emulator/target/gfx950/decode.h"

#include <iterator>
#include <string_view>

namespace jax_fa::emulator {
namespace {

using Words = std::span<const uint32_t>;

constexpr uint32_t kSdwa = 249, kDpp = 250, kLiteral = 255;
constexpr uint32_t kNoAddress = 0x7f;  // "off" in the saddr field
constexpr uint16_t kFirstAgpr = 256;

constexpr uint32_t Bits(uint32_t word, int low, int count) {
  return (word >> low) & ((1u << count) - 1u);
}
constexpr uint8_t Byte(uint32_t value) { return static_cast<uint8_t>(value); }

class Decoder {
 public:
  Decoder(Words words, InstructionStore* store, Instruction* instruction)
      : words_(words),
        store_(*store),
        instruction_(*instruction),
        mod_(instruction->mod),
        mem_(instruction->mem) {}

  std::string Run() {
    const uint32_t word = words_[0];
    if ((word >> 31) == 0) {
      Vop12c();
    } else if ((word >> 23) == 0x1a7) {
      Vop3p();
    } else {
      switch (word >> 26) {
        case 0x34:
          Vop3();
          break;
        case 0x36:
          Ds();
          break;
        case 0x37:
          Flat();
          break;
        case 0x38:
          Mubuf();
          break;
        case 0x3a:
          Fail(Gfx950Unknown(kMtbuf, Bits(word, 15, 4)));
          break;
        default:
          Fail("unknown encoding");
          break;
      }
    }
    if (failure_.empty() && literal_used_) ++size_words_;
    Has(size_words_);
    instruction_.size_bytes = Byte(4 * size_words_);
    return failure_;
  }

 private:
  void Fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }
  bool Has(uint32_t count) {
    if (words_.size() < count) Fail("the text ends within an instruction");
    return failure_.empty();
  }
  bool Find(Encoding encoding, uint32_t number) {
    row_ = Gfx950Opcodes().Find(encoding, number);
    if (!row_) {
      Fail(Gfx950Unknown(encoding, number));
      return false;
    }
    instruction_.opcode = row_;
    instruction_.exec = row_->exec;
    return true;
  }
  std::string Name() const { return row_->mnemonic; }

  Operand Vector(uint32_t index, uint32_t dwords, bool agpr) {
    if (index + dwords > 256) Fail(Name() + " goes past register 255");
    return VgprOperand(index + (agpr ? kFirstAgpr : 0u), Byte(dwords));
  }
  // Source `i` by its 8 or 9 bit code.
  void Source(int i, uint32_t code, bool agpr = false) {
    const uint8_t dwords = row_->src_dwords[static_cast<size_t>(i)];
    if (dwords == 0) return;
    Operand& operand = instruction_.src[static_cast<size_t>(i)];
    if (code >= 256) {
      operand = Vector(code - 256, dwords, agpr);
      return;
    }
    SourceContext context;
    context.isa = Isa::kGfx950;
    context.flags = row_->flags;
    context.dwords = dwords;
    if (words_.size() > size_words_) context.literal = &words_[size_words_];
    if (agpr || !DecodeSource(code, &context, &operand)) {
      Fail("source " + std::to_string(i) + " of " + Name() + " cannot be " + std::to_string(code));
    }
    literal_used_ |= context.literal_used;
  }
  void Result(uint32_t index, bool agpr = false) {
    if ((row_->flags & kScalarResult950) != 0) {
      if (!DecodeScalarRegister(index, Isa::kGfx950, 1, &instruction_.dst)) {
        Fail("the destination of " + Name() + " cannot be " + std::to_string(index));
      }
    } else if (row_->dst_dwords != 0) {
      instruction_.dst = Vector(index, row_->dst_dwords, agpr || (row_->flags & kAgprResult) != 0);
    }
  }
  void MaskResult(uint32_t code) {
    if (row_->sdst_dwords == 0) return;
    if (!DecodeScalarRegister(code, Isa::kGfx950, 2, &instruction_.sdst)) {
      Fail("the scalar destination of " + Name() + " cannot be " + std::to_string(code));
    }
  }

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
    const bool product = words_[2] >> 23 == 0x1a7 && Bits(words_[2], 11, 1) != 0;
    if (!product) return Fail("v_mfma_ld_scale_b32 with no matrix product behind it");
    if (Find(kVop3p, kGfx950Scaled | Bits(words_[2], 16, 7))) Matrix(words_[2], words_[3]);
  }

  // The data register and the destination of memory instructions may be AGPRs.
  void Data(int i, uint32_t index, bool agpr) {
    const uint8_t dwords = row_->src_dwords[static_cast<size_t>(i)];
    if (dwords != 0) instruction_.src[static_cast<size_t>(i)] = Vector(index, dwords, agpr);
  }

  void Ds() {
    if (!Has(2)) return;
    size_words_ = 2;
    const uint32_t low = words_[0], high = words_[1];
    if (!Find(kDs, Bits(low, 17, 8))) return;
    if (Bits(low, 16, 1) != 0) Fail(Name() + " with the gds bit");
    const bool agpr = Bits(low, 25, 1) != 0;
    if ((row_->flags & kTwoAddresses) != 0) {
      mem_.offset = static_cast<int32_t>(Bits(low, 0, 8));
      mem_.offset1 = static_cast<int32_t>(Bits(low, 8, 8));
    } else {
      mem_.offset = static_cast<int32_t>(Bits(low, 0, 16));
    }
    Data(0, Bits(high, 0, 8), false);
    Data(1, Bits(high, 8, 8), agpr);
    Data(2, Bits(high, 16, 8), agpr);
    Result(Bits(high, 24, 8), agpr);
  }

  void Flat() {
    if (!Has(2)) return;
    size_words_ = 2;
    const uint32_t low = words_[0], high = words_[1];
    const uint32_t segment = Bits(low, 14, 2);
    if (segment == 3) return Fail("unknown segment of a FLAT instruction");
    const Encoding encoding = segment == 0 ? kFlat : segment == 1 ? kScratch : kGlobal;
    if (!Find(encoding, Bits(low, 18, 7))) return;
    mem_.segment = Byte(segment);
    const uint32_t offset = Bits(low, 0, 13);
    mem_.offset = segment == 0 ? static_cast<int32_t>(offset & 0xfff)
                               : static_cast<int32_t>(offset << 19) >> 19;
    mem_.cache_policy = Byte(Bits(low, 16, 2) | Bits(low, 25, 1) << 2);
    const bool agpr = Bits(high, 23, 1) != 0;
    const uint32_t base = Bits(high, 16, 7);
    const bool has_base = segment != 0 && base != kNoAddress;
    if (has_base) {
      Operand& operand = instruction_.src[2];
      if (!DecodeScalarRegister(base, Isa::kGfx950, row_->src_dwords[2], &operand)) {
        Fail("saddr of " + Name() + " cannot be " + std::to_string(base));
      }
    }
    // Scratch: the bit that is `lds` elsewhere says whether there is an address register.
    if (segment != 1 || Bits(low, 13, 1) != 0) {
      const uint32_t dwords = segment == 1 || has_base ? 1 : 2;
      instruction_.src[0] = Vector(Bits(high, 0, 8), dwords, false);
    }
    if (segment != 1 && Bits(low, 13, 1) != 0) Fail(Name() + " with the lds bit");
    Data(1, Bits(high, 8, 8), agpr);
    if ((row_->flags & kIsAtomic) == 0 || Bits(low, 16, 1) != 0) Result(Bits(high, 24, 8), agpr);
  }

  void Mubuf() {
    if (!Has(2)) return;
    size_words_ = 2;
    const uint32_t low = words_[0], high = words_[1];
    mem_.lds = Bits(low, 16, 1) != 0;
    if (!Find(kMubuf, Bits(low, 18, 7) | (mem_.lds ? kGfx950MubufLds : 0u))) return;
    mem_.offset = static_cast<int32_t>(Bits(low, 0, 12));
    mem_.offen = Bits(low, 12, 1) != 0;
    mem_.idxen = Bits(low, 13, 1) != 0;
    const bool returns = Bits(low, 14, 1) != 0;
    mem_.cache_policy = Byte(Bits(low, 14, 2) | Bits(low, 17, 1) << 2);
    if (row_->src_dwords[2] == 0) return;  // cache control
    const bool agpr = Bits(high, 23, 1) != 0;
    const uint32_t address_dwords = (mem_.offen ? 1u : 0u) + (mem_.idxen ? 1u : 0u);
    if (address_dwords != 0) {
      instruction_.src[0] = Vector(Bits(high, 0, 8), address_dwords, false);
    }
    Data(1, Bits(high, 8, 8), agpr);
    if (!DecodeScalarRegister(Bits(high, 16, 5) * 4, Isa::kGfx950, 4, &instruction_.src[2])) {
      Fail("the resource of " + Name() + " cannot be " + std::to_string(Bits(high, 16, 5) * 4));
    }
    SourceContext context;
    context.isa = Isa::kGfx950;
    if (!DecodeSource(Bits(high, 24, 8), &context, &mem_.soffset) ||
        mem_.soffset.kind == OperandKind::kVgpr) {
      Fail("soffset of " + Name() + " cannot be " + std::to_string(Bits(high, 24, 8)));
    }
    if ((row_->flags & kIsAtomic) == 0 || returns) Result(Bits(high, 8, 8), agpr);
  }

  Words words_;
  InstructionStore& store_;
  Instruction& instruction_;
  Modifiers& mod_;
  MemoryFields& mem_;
  const Opcode* row_ = nullptr;
  uint32_t size_words_ = 1;
  bool literal_used_ = false;
  bool sdwa_scalar1_ = false;
  uint32_t sdwa_mask_ = kSgprVccLo;
  std::string failure_;
};

std::string DecodeGfx950(Words words, InstructionStore* store, Instruction* instruction) {
  std::string failure;
  if (DecodeScalar(Isa::kGfx950, words, instruction, &failure)) return failure;
  return Decoder(words, store, instruction).Run();
}

}  // namespace

const TargetIsa& Gfx950Isa() {
  static constexpr TargetIsa kIsa = {
      .isa = Isa::kGfx950,
      .name = "gfx950",
      .elf_machine = 0x4f,
      .wave_size = 64,
      .max_lds_bytes = 160 * 1024,
      .max_waves = 16,
      .decode = &DecodeGfx950,
      .workgroup_id_in_ttmp = false,
  };
  return kIsa;
}

}  // namespace jax_fa::emulator
