// What the vector and memory encodings of gfx950 share while an instruction is put together.
#ifndef JAX_FA_EMULATOR_TARGET_GFX950_DECODE_BUILDER_H_
#define JAX_FA_EMULATOR_TARGET_GFX950_DECODE_BUILDER_H_

#include <cstdint>
#include <span>
#include <string>

#include "emulator/decode/decode.h"
#include "emulator/target/gfx950/chip.h"
#include "emulator/target/gfx950/decode.h"

namespace jax_fa::emulator::gfx950 {

using Words = std::span<const uint32_t>;

inline constexpr uint32_t kSdwa = 249, kDpp = 250, kLiteral = 255;
inline constexpr uint16_t kFirstAgpr = 256;

constexpr uint32_t Bits(uint32_t word, int low, int count) {
  return (word >> low) & ((1u << count) - 1u);
}
constexpr uint8_t Byte(uint32_t value) { return static_cast<uint8_t>(value); }

class Builder {
 public:
  // An instruction of `size_words` words, a literal or the dword of DPP and SDWA apart.
  Builder(Words words, uint32_t size_words, Instruction* instruction)
      : words_(words),
        instruction_(*instruction),
        mod_(instruction->mod),
        mem_(instruction->mem),
        size_words_(size_words) {}

  std::string Finish() {
    if (failure_.empty() && literal_used_) ++size_words_;
    Has(size_words_);
    instruction_.size_bytes = Byte(4 * size_words_);
    return failure_;
  }

 protected:
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
    context.codes = &kGfx950Chip.scalar_codes;
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
      if (!DecodeScalarRegister(index, kGfx950Chip.scalar_codes, 1, &instruction_.dst)) {
        Fail("the destination of " + Name() + " cannot be " + std::to_string(index));
      }
    } else if (row_->dst_dwords != 0) {
      instruction_.dst = Vector(index, row_->dst_dwords, agpr || (row_->flags & kAgprResult) != 0);
    }
  }
  void MaskResult(uint32_t code) {
    if (row_->sdst_dwords == 0) return;
    if (!DecodeScalarRegister(code, kGfx950Chip.scalar_codes, 2, &instruction_.sdst)) {
      Fail("the scalar destination of " + Name() + " cannot be " + std::to_string(code));
    }
  }
  // The data register and the destination of memory instructions may be AGPRs.
  void Data(int i, uint32_t index, bool agpr) {
    const uint8_t dwords = row_->src_dwords[static_cast<size_t>(i)];
    if (dwords != 0) instruction_.src[static_cast<size_t>(i)] = Vector(index, dwords, agpr);
  }

  Words words_;
  Instruction& instruction_;
  Modifiers& mod_;
  MemoryFields& mem_;
  const Opcode* row_ = nullptr;
  uint32_t size_words_;
  bool literal_used_ = false;
  std::string failure_;
};

// The memory encodings (decode_memory.cc); false: words[0] is none of them.
bool DecodeMemory(Words words, Instruction* instruction, std::string* failure);

}  // namespace jax_fa::emulator::gfx950

#endif  // JAX_FA_EMULATOR_TARGET_GFX950_DECODE_BUILDER_H_
