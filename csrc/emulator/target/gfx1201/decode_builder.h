// What the vector and memory encodings of gfx1201 share while an instruction is put together.
#ifndef JAX_FA_EMULATOR_TARGET_GFX1201_DECODE_BUILDER_H_
#define JAX_FA_EMULATOR_TARGET_GFX1201_DECODE_BUILDER_H_

#include <cstdint>
#include <span>
#include <string>

#include "emulator/exec/families.h"
#include "emulator/target/gfx1201/chip.h"
#include "emulator/target/gfx1201/decode.h"

namespace jax_fa::emulator::gfx1201 {

using Words = std::span<const uint32_t>;

inline constexpr uint32_t kDpp8 = 233;
inline constexpr uint32_t kDpp8FetchInactive = 234;
inline constexpr uint32_t kDpp16 = 250;
inline constexpr uint32_t kLiteral = 255;

constexpr uint32_t Bits(uint32_t word, int low, int count) {
  return (word >> low) & ((1u << count) - 1u);
}

inline bool IsDpp(uint32_t source) {
  return source == kDpp8 || source == kDpp8FetchInactive || source == kDpp16;
}

// What all vector forms share while an instruction is put together.
class Builder {
 public:
  Builder(Words words, size_t size_words, Instruction* instruction)
      : words_(words), size_words_(size_words), instruction_(instruction) {}

  // False when the text ends within the instruction.
  bool Has(size_t words) {
    if (words_.size() >= words) return true;
    failure_ = "the text ends within an instruction";
    return false;
  }
  bool FindRow(Encoding encoding, uint32_t number) {
    const Opcode* row = Gfx1201Opcodes().Find(encoding, number);
    if (!row) {
      failure_ = UnknownOpcode(encoding, number);
      return false;
    }
    instruction_->opcode = row;
    instruction_->exec = row->exec;
    return true;
  }
  uint32_t flags() const { return instruction_->opcode->flags; }
  uint32_t dwords(int source) const {
    return instruction_->opcode->src_dwords[static_cast<size_t>(source)];
  }

  // Source `i`, 9 bits. DPP sources have their register in the extra dword.
  void Source(int i, uint32_t code) {
    if (dwords(i) == 0) return;
    SourceContext context;
    context.codes = &kGfx1201Chip.scalar_codes;
    context.flags = flags();
    context.dwords = static_cast<uint8_t>(dwords(i));
    if (words_.size() > size_words_) context.literal = &words_[size_words_];
    Operand& operand = instruction_->src[static_cast<size_t>(i)];
    if (!DecodeSource(code, &context, &operand)) {
      Fail("source " + std::to_string(i) + " of " + Name() + " cannot be " + std::to_string(code));
      return;
    }
    CheckVgprs(operand);
    literal_used_ |= context.literal_used;
  }
  // Source `i` of the e32 forms, where bit 7 of a half register tells the upper half.
  void SourceOrHalf(int i, uint32_t code) {
    const bool half = (flags() & (kHalfSrc0 << i)) != 0;
    if (half && code >= 256 && (code & 0x80) != 0) {
      code &= ~0x80u;
      instruction_->mod.op_sel = static_cast<uint8_t>(instruction_->mod.op_sel | (1u << i));
    }
    Source(i, code);
  }
  void Dst(uint32_t index) {
    const uint8_t dwords = instruction_->opcode->dst_dwords;
    if (dwords == 0) return;
    instruction_->dst = VgprOperand(index, dwords);
    CheckVgprs(instruction_->dst);
  }
  // A VGPR source of an encoding without any other kind. `count`: of so many registers, else as the
  // row says.
  void Vgpr(int i, uint32_t index, uint32_t count = 0) {
    if (dwords(i) == 0) return;
    Operand& operand = instruction_->src[static_cast<size_t>(i)];
    operand = VgprOperand(index, static_cast<uint8_t>(count != 0 ? count : dwords(i)));
    CheckVgprs(operand);
  }
  void ScalarSource(int i, uint32_t code, uint8_t count) {
    if (!DecodeScalarRegister(code, kGfx1201Chip.scalar_codes, count,
                              &instruction_->src[static_cast<size_t>(i)])) {
      Fail("source " + std::to_string(i) + " of " + Name() + " cannot be " + std::to_string(code));
    }
  }
  void DstOrHalf(uint32_t index) {
    if ((flags() & kHalfDst) != 0 && (index & 0x80) != 0) {
      index &= ~0x80u;
      instruction_->mod.op_sel |= 8;
    }
    Dst(index);
  }
  // A mask written to scalar registers: carries and compares.
  void ScalarDst(uint32_t code) {
    const uint8_t dwords = instruction_->opcode->sdst_dwords;
    if (dwords == 0) return;
    if (!DecodeScalarRegister(code, kGfx1201Chip.scalar_codes, dwords, &instruction_->sdst)) {
      Fail("the scalar destination of " + Name() + " cannot be " + std::to_string(code));
    }
  }
  // Lane results in one scalar register: readlane and the scalar transcendentals.
  void ScalarResult(uint32_t code) {
    if (!DecodeScalarRegister(code, kGfx1201Chip.scalar_codes, 1, &instruction_->dst)) {
      Fail("the destination of " + Name() + " cannot be " + std::to_string(code));
    }
  }
  // The dword after the encoding: DPP control and the register of source 0. Its code, or `code`.
  uint32_t Dpp(uint32_t code, bool with_modifiers) {
    if (!IsDpp(code)) return code;
    if (!Has(size_words_ + 1)) return 256;
    const uint32_t word = words_[size_words_];
    Modifiers& mod = instruction_->mod;
    if (code == kDpp16) {
      mod.dpp = 1;
      mod.dpp_ctrl = static_cast<uint16_t>(Bits(word, 8, 9));
      mod.dpp_fetch_inactive = Bits(word, 18, 1) != 0;
      mod.dpp_bound_ctrl = Bits(word, 19, 1) != 0;
      mod.dpp_bank_mask = static_cast<uint8_t>(Bits(word, 24, 4));
      mod.dpp_row_mask = static_cast<uint8_t>(Bits(word, 28, 4));
      if (with_modifiers) {
        mod.neg = static_cast<uint8_t>(Bits(word, 20, 1) | Bits(word, 22, 1) << 1);
        mod.abs = static_cast<uint8_t>(Bits(word, 21, 1) | Bits(word, 23, 1) << 1);
      }
    } else {
      mod.dpp = 2;
      mod.dpp8 = word >> 8;
      mod.dpp_fetch_inactive = code == kDpp8FetchInactive;
    }
    ++size_words_;
    return 256 + Bits(word, 0, 8);
  }
  void Fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }
  std::string Name() const { return instruction_->opcode->mnemonic; }
  std::string Finish() {
    if (literal_used_) {
      if (instruction_->mod.dpp != 0) Fail("a literal together with DPP in " + Name());
      ++size_words_;
    }
    Has(size_words_);
    instruction_->size_bytes = static_cast<uint8_t>(4 * size_words_);
    return failure_;
  }
  const std::string& failure() const { return failure_; }

 private:
  void CheckVgprs(const Operand& operand) {
    if (operand.kind == OperandKind::kVgpr && operand.index + operand.dwords > 256) {
      Fail(Name() + " goes past v255");
    }
  }

  Words words_;
  size_t size_words_;
  Instruction* instruction_;
  bool literal_used_ = false;
  std::string failure_;
};

// The memory encodings (decode_memory.cc).
std::string DecodeDs(Words words, Instruction* instruction);
std::string DecodeFlat(Words words, Encoding encoding, Instruction* instruction);
std::string DecodeSmem(Words words, Instruction* instruction);
std::string DecodeVbuffer(Words words, Instruction* instruction);

}  // namespace jax_fa::emulator::gfx1201

#endif  // JAX_FA_EMULATOR_TARGET_GFX1201_DECODE_BUILDER_H_
