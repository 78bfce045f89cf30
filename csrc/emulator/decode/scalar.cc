// The scalar encodings of both targets.
#include "emulator/exec/scalar.h"

#include <vector>

namespace jax_fa::emulator {
namespace {

// The rows of one target, from the ops that both share.
std::vector<Opcode> MakeRows(Isa isa) {
  std::vector<Opcode> rows;
  for (std::span<const ScalarOp> ops :
       {ScalarAluOps(), ScalarMoveOps(), ScalarFloatOps(), ScalarControlOps(), ScalarMemoryOps()}) {
    for (const ScalarOp& op : ops) {
      const bool is_gfx950 = isa == Isa::kGfx950;
      const int number = is_gfx950 ? op.gfx950 : op.gfx1201;
      if (number == kAbsent) continue;
      Opcode row = {};
      row.encoding = op.encoding;
      row.number = static_cast<uint16_t>(number);
      row.mnemonic = !is_gfx950 && op.name_gfx1201 ? op.name_gfx1201 : op.name;
      row.op_class = op.op_class;
      row.exec = op.exec;
      row.dst_dwords = op.dst_dwords;
      row.src_dwords = op.src_dwords;
      row.flags = op.flags;
      rows.push_back(row);
    }
  }
  return rows;
}

const OpcodeIndex& Index(Isa isa) {
  static const OpcodeIndex gfx950({ScalarRows(Isa::kGfx950)});
  static const OpcodeIndex gfx1201({ScalarRows(Isa::kGfx1201)});
  return isa == Isa::kGfx950 ? gfx950 : gfx1201;
}

constexpr uint32_t Field(uint32_t word, int first, int bits) {
  return (word >> first) & ((1u << bits) - 1);
}
constexpr int32_t SignExtend(uint32_t value, int bits) {
  return static_cast<int32_t>(value << (32 - bits)) >> (32 - bits);
}

struct Decoder {
  Isa isa;
  std::span<const uint32_t> words;
  Instruction* instruction;
  std::string failure = {};
  const Opcode* row = nullptr;

  bool Find(Encoding encoding, uint32_t number) {
    row = Index(isa).Find(encoding, number);
    if (!row) {
      failure = UnknownOpcode(encoding, number);
      return false;
    }
    instruction->opcode = row;
    instruction->exec = row->exec;
    return true;
  }

  void Destination(uint32_t code) {
    if (row->dst_dwords == 0 || !failure.empty()) return;
    if (!DecodeScalarRegister(code, isa, row->dst_dwords, &instruction->dst)) {
      failure = "scalar destination " + std::to_string(code) + " does not exist";
    }
  }

  void Source(size_t place, uint32_t code) {
    const uint8_t dwords = row->src_dwords[place];
    if (dwords == 0 || !failure.empty()) return;
    SourceContext context;
    context.isa = isa;
    context.flags = row->flags;
    context.dwords = dwords;
    context.literal = words.size() > 1 ? &words[1] : nullptr;
    if (!DecodeSource(code, &context, &instruction->src[place])) {
      failure = "scalar source " + std::to_string(code) + " does not exist";
    }
    if (context.literal_used) instruction->size_bytes = 8;
  }

  // The constant that follows the encoding of s_fmaak_f32 and its like.
  void Literal() {
    if ((row->flags & kTakesLiteral) == 0 || !failure.empty()) return;
    Source(2, 255);
    instruction->size_bytes = 8;
  }

  void Sopp(uint32_t word) {
    if (!Find(kSopp, Field(word, 16, 7))) return;
    instruction->simm16 = SignExtend(word & 0xffff, 16);
  }
  void Sop1(uint32_t word) {
    if (!Find(kSop1, Field(word, 8, 8))) return;
    Destination(Field(word, 16, 7));
    Source(0, Field(word, 0, 8));
  }
  void Sopc(uint32_t word) {
    if (!Find(kSopc, Field(word, 16, 7))) return;
    Source(0, Field(word, 0, 8));
    Source(1, Field(word, 8, 8));
  }
  void Sop2(uint32_t word) {
    if (!Find(kSop2, Field(word, 23, 7))) return;
    Destination(Field(word, 16, 7));
    Source(0, Field(word, 0, 8));
    Source(1, Field(word, 8, 8));
    Literal();
  }
  void Sopk(uint32_t word) {
    if (!Find(kSopk, Field(word, 23, 5))) return;
    instruction->simm16 = SignExtend(word & 0xffff, 16);
    Destination(Field(word, 16, 7));
    Source(0, Field(word, 16, 7));
    Literal();
  }

  void SmemGfx950(uint32_t word) {
    if (!Find(kSmemEncoding, Field(word, 18, 8))) return;
    instruction->size_bytes = 8;
    const uint32_t second = words[1];
    const bool has_immediate = Field(word, 17, 1) != 0, has_scalar = Field(word, 14, 1) != 0;
    if (has_immediate) {
      instruction->mem.offset = SignExtend(Field(second, 0, 21), 21);
      if (has_scalar) ScalarOffset(Field(second, 25, 7));
    } else {
      // Without an immediate the offset is a register, in either of the two fields.
      ScalarOffset(has_scalar ? Field(second, 25, 7) : Field(second, 0, 7));
    }
    SmemOperands(word);
  }
  void SmemGfx1201(uint32_t word) {
    if (!Find(kSmemEncoding, Field(word, 13, 6))) return;
    instruction->size_bytes = 8;
    instruction->mem.offset = SignExtend(Field(words[1], 0, 24), 24);
    const uint32_t scalar = Field(words[1], 25, 7);
    if (scalar != kSgprNull) ScalarOffset(scalar);
    SmemOperands(word);
  }
  void ScalarOffset(uint32_t code) {
    if (row->src_dwords[1] == 0) return;
    if (!DecodeScalarRegister(code, isa, 1, &instruction->src[1])) {
      failure = "scalar offset register " + std::to_string(code) + " does not exist";
    }
  }
  void SmemOperands(uint32_t word) {
    Destination(Field(word, 6, 7));
    if (row->src_dwords[0] == 0 || !failure.empty()) return;
    if (!DecodeScalarRegister(2 * Field(word, 0, 6), isa, row->src_dwords[0],
                              &instruction->src[0])) {
      failure = "scalar base register " + std::to_string(2 * Field(word, 0, 6)) + " does not exist";
    }
  }
};

}  // namespace

std::span<const Opcode> ScalarRows(Isa isa) {
  static const std::vector<Opcode> gfx950 = MakeRows(Isa::kGfx950);
  static const std::vector<Opcode> gfx1201 = MakeRows(Isa::kGfx1201);
  return isa == Isa::kGfx950 ? gfx950 : gfx1201;
}

bool DecodeScalar(Isa isa, std::span<const uint32_t> words, Instruction* instruction,
                  std::string* failure) {
  const uint32_t word = words[0];
  Decoder decoder{isa, words, instruction};
  const uint32_t smem = isa == Isa::kGfx950 ? 0b110000 : 0b111101;
  if (Field(word, 26, 6) == smem) {
    if (words.size() < 2) {
      *failure = "the text ends within an instruction";
      return true;
    }
    isa == Isa::kGfx950 ? decoder.SmemGfx950(word) : decoder.SmemGfx1201(word);
  } else if (Field(word, 30, 2) != 0b10) {
    return false;
  } else if (Field(word, 23, 9) == 0b101111111) {
    decoder.Sopp(word);
  } else if (Field(word, 23, 9) == 0b101111110) {
    decoder.Sopc(word);
  } else if (Field(word, 23, 9) == 0b101111101) {
    decoder.Sop1(word);
  } else if (Field(word, 28, 4) == 0b1011) {
    decoder.Sopk(word);
  } else {
    decoder.Sop2(word);
  }
  *failure = decoder.failure;
  return true;
}

}  // namespace jax_fa::emulator
