// The memory encodings of gfx950: fields to operands.
#include "emulator/target/gfx950/decode_builder.h"

namespace jax_fa::emulator::gfx950 {
namespace {

constexpr uint32_t kNoAddress = 0x7f;  // "off" in the saddr field
constexpr uint32_t kSmem = 0x30, kDsBits = 0x36, kFlatBits = 0x37, kMubufBits = 0x38,
                   kMtbufBits = 0x3a;

constexpr int32_t SignExtend(uint32_t value, int bits) {
  return static_cast<int32_t>(value << (32 - bits)) >> (32 - bits);
}

class MemoryDecoder : public Builder {
 public:
  MemoryDecoder(Words words, Instruction* instruction) : Builder(words, 2, instruction) {}

  // False: another encoding.
  bool Run(std::string* failure) {
    switch (words_[0] >> 26) {
      case kSmem:
        Smem();
        break;
      case kDsBits:
        Ds();
        break;
      case kFlatBits:
        Flat();
        break;
      case kMubufBits:
        Mubuf();
        break;
      case kMtbufBits:
        Fail(Gfx950Unknown(kMtbuf, Bits(words_[0], 15, 4)));
        break;
      default:
        return false;
    }
    *failure = Finish();
    return true;
  }

 private:
  void ScalarOperand(Operand* operand, uint32_t code, uint8_t dwords, const char* what) {
    if (dwords == 0 || !failure_.empty()) return;
    if (!DecodeScalarRegister(code, kGfx950Chip.scalar_codes, dwords, operand)) {
      Fail(std::string("scalar ") + what + " " + std::to_string(code) + " does not exist");
    }
  }
  void ScalarOffset(uint32_t code) {
    if (row_->src_dwords[1] != 0) {
      ScalarOperand(&instruction_.src[1], code, 1, "offset register");
    }
  }
  void Smem() {
    if (!Has(2)) return;
    const uint32_t low = words_[0], high = words_[1];
    if (!Find(kSmemEncoding, Bits(low, 18, 8))) return;
    const bool has_immediate = Bits(low, 17, 1) != 0, has_scalar = Bits(low, 14, 1) != 0;
    if (has_immediate) {
      mem_.offset = SignExtend(Bits(high, 0, 21), 21);
      if (has_scalar) ScalarOffset(Bits(high, 25, 7));
    } else {
      // Without an immediate the offset is a register, in either of the two fields.
      ScalarOffset(has_scalar ? Bits(high, 25, 7) : Bits(high, 0, 7));
    }
    const bool returns = (row_->flags & kIsAtomic) == 0 || Bits(low, 16, 1) != 0;
    if (returns) ScalarOperand(&instruction_.dst, Bits(low, 6, 7), row_->dst_dwords, "destination");
    ScalarOperand(&instruction_.src[2], Bits(low, 6, 7), row_->src_dwords[2], "data register");
    ScalarOperand(&instruction_.src[0], 2 * Bits(low, 0, 6), row_->src_dwords[0], "base register");
  }

  void Ds() {
    if (!Has(2)) return;
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
      if (!DecodeScalarRegister(base, kGfx950Chip.scalar_codes, row_->src_dwords[2], &operand)) {
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
    if (!DecodeScalarRegister(Bits(high, 16, 5) * 4, kGfx950Chip.scalar_codes, 4,
                              &instruction_.src[2])) {
      Fail("the resource of " + Name() + " cannot be " + std::to_string(Bits(high, 16, 5) * 4));
    }
    SourceContext context;
    context.codes = &kGfx950Chip.scalar_codes;
    if (!DecodeSource(Bits(high, 24, 8), &context, &mem_.soffset) ||
        mem_.soffset.kind == OperandKind::kVgpr) {
      Fail("soffset of " + Name() + " cannot be " + std::to_string(Bits(high, 24, 8)));
    }
    if ((row_->flags & kIsAtomic) == 0 || returns) Result(Bits(high, 8, 8), agpr);
  }
};

}  // namespace

bool DecodeMemory(Words words, Instruction* instruction, std::string* failure) {
  return MemoryDecoder(words, instruction).Run(failure);
}

}  // namespace jax_fa::emulator::gfx950
