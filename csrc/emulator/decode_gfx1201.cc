// The vector encodings of gfx1201 (gfx12, wave32): fields to operands.
//
// 16-bit operands are halves of registers here. In VOP1, VOP2 and VOPC the top bit of a register
// number of such an operand selects the upper half, everywhere else op_sel does.
#include "emulator/decode_gfx1201.h"

#include <algorithm>

#include "emulator/exec_gfx1201.h"
#include "emulator/families.h"
#include "emulator/wave.h"

namespace jax_fa::emulator {
namespace {

using Words = std::span<const uint32_t>;

constexpr uint32_t kDpp8 = 233;
constexpr uint32_t kDpp8FetchInactive = 234;
constexpr uint32_t kDpp16 = 250;
constexpr uint32_t kLiteral = 255;

constexpr uint32_t Bits(uint32_t word, int low, int count) {
  return (word >> low) & ((1u << count) - 1u);
}

bool IsDpp(uint32_t source) {
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
    context.isa = Isa::kGfx1201;
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
  // The same for e32 forms, where a half of a register has the upper half in bit 7.
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
    if (!DecodeScalarRegister(code, Isa::kGfx1201, count,
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
    if (!DecodeScalarRegister(code, Isa::kGfx1201, dwords, &instruction_->sdst)) {
      Fail("the scalar destination of " + Name() + " cannot be " + std::to_string(code));
    }
  }
  // Lane results in one scalar register: readlane and the scalar transcendentals.
  void ScalarResult(uint32_t code) {
    if (!DecodeScalarRegister(code, Isa::kGfx1201, 1, &instruction_->dst)) {
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

// ---- memory ----
std::string DecodeDs(Words words, Instruction* instruction) {
  Builder builder(words, 2, instruction);
  if (!builder.Has(2)) return builder.failure();
  const uint32_t low = words[0], high = words[1];
  if (!builder.FindRow(kDs, Bits(low, 18, 8))) return builder.failure();
  const bool two_addresses = (builder.flags() & kTwoAddresses) != 0;
  instruction->mem.offset = static_cast<int32_t>(Bits(low, 0, two_addresses ? 8 : 16));
  if (two_addresses) instruction->mem.offset1 = static_cast<int32_t>(Bits(low, 8, 8));
  builder.Vgpr(0, Bits(high, 0, 8));
  // ds_cmpstore has the new value first, where gfx9 had the one to compare with.
  const bool swapped = (builder.flags() & kSwappedData) != 0;
  builder.Vgpr(1, Bits(high, swapped ? 16 : 8, 8));
  builder.Vgpr(2, Bits(high, swapped ? 8 : 16, 8));
  builder.Dst(Bits(high, 24, 8));
  return builder.Finish();
}

// Bit 0 of `th`: an atomic returns what was there before.
bool HasResult(const Opcode& row, uint32_t th) {
  return (row.flags & kIsAtomic) == 0 || (th & 1) != 0;
}

void SetCachePolicy(uint32_t word, Instruction* instruction) {
  instruction->mem.cache_policy = static_cast<uint8_t>(Bits(word, 18, 5));  // scope, th
}

int32_t SignedOffset(uint32_t word) { return static_cast<int32_t>(word) >> 8; }

std::string DecodeFlat(Words words, Encoding encoding, Instruction* instruction) {
  Builder builder(words, 3, instruction);
  if (!builder.Has(3)) return builder.failure();
  if (!builder.FindRow(encoding, Bits(words[0], 14, 8))) return builder.failure();
  const Opcode& row = *instruction->opcode;
  const uint32_t saddr = Bits(words[0], 0, 7);
  const bool has_saddr = saddr != kSgprNull;
  instruction->mem.offset = SignedOffset(words[2]);
  instruction->mem.segment = encoding == kFlat ? 0 : encoding == kScratch ? 1 : 2;
  SetCachePolicy(words[1], instruction);
  const uint32_t address = Bits(words[2], 0, 8);
  if (encoding == kScratch) {
    if (Bits(words[1], 17, 1) != 0) builder.Vgpr(0, address);
    if (has_saddr) builder.ScalarSource(2, saddr, 1);
  } else if (encoding == kGlobal && has_saddr) {
    builder.Vgpr(0, address, 1);
    builder.ScalarSource(2, saddr, 2);
  } else {
    builder.Vgpr(0, address);
    if (has_saddr) builder.Fail("a scalar address in " + builder.Name());
  }
  builder.Vgpr(1, Bits(words[1], 23, 8));
  if (HasResult(row, Bits(words[1], 20, 3))) builder.Dst(Bits(words[1], 0, 8));
  return builder.Finish();
}

std::string DecodeVbuffer(Words words, Instruction* instruction) {
  Builder builder(words, 3, instruction);
  if (!builder.Has(3)) return builder.failure();
  const uint32_t number = Bits(words[0], 14, 8);
  if (number >= 128) return UnknownOpcode(kMtbuf, number - 128);
  if (!builder.FindRow(kMubuf, number)) return builder.failure();
  const Opcode& row = *instruction->opcode;
  MemoryFields& mem = instruction->mem;
  mem.offset = SignedOffset(words[2]);
  mem.offen = Bits(words[1], 30, 1) != 0;
  mem.idxen = Bits(words[1], 31, 1) != 0;
  SetCachePolicy(words[1], instruction);
  if (Bits(words[0], 22, 1) != 0) builder.Fail("tfe in " + builder.Name());
  const uint32_t addresses = (mem.offen ? 1u : 0u) + (mem.idxen ? 1u : 0u);
  if (addresses != 0) builder.Vgpr(0, Bits(words[2], 0, 8), addresses);
  builder.ScalarSource(2, Bits(words[1], 9, 9), 4);
  if (!DecodeScalarRegister(Bits(words[0], 0, 7), Isa::kGfx1201, 1, &mem.soffset)) {
    builder.Fail("the scalar offset of " + builder.Name());
  }
  const uint32_t data = Bits(words[1], 0, 8);
  builder.Vgpr(1, data);
  if (HasResult(row, Bits(words[1], 20, 3))) builder.Dst(data);
  return builder.Finish();
}

std::string Decode(Words words, InstructionStore* store, Instruction* instruction) {
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
    default:
      break;
  }
  std::string failure;
  if (DecodeScalar(Isa::kGfx1201, words, instruction, &failure)) return failure;
  return failure.empty() ? "an encoding that the emulator does not know" : failure;
}

}  // namespace

const TargetIsa& Gfx1201Isa() {
  static constexpr TargetIsa kIsa = {.isa = Isa::kGfx1201,
                                     .name = "gfx1201",
                                     .elf_machine = 0x4e,
                                     .wave_size = 32,
                                     .max_lds_bytes = 64 * 1024,
                                     .max_waves = 32,
                                     .decode = Decode,
                                     .workgroup_id_in_ttmp = true};
  return kIsa;
}

}  // namespace jax_fa::emulator
