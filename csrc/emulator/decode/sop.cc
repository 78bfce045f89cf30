// The scalar encodings that all targets share.
#include "emulator/decode/decode.h"

namespace jax_fa::emulator {
namespace {

constexpr uint32_t Field(uint32_t word, int first, int bits) {
  return (word >> first) & ((1u << bits) - 1);
}
constexpr int32_t SignExtend(uint32_t value, int bits) {
  return static_cast<int32_t>(value << (32 - bits)) >> (32 - bits);
}

struct Decoder {
  const OpcodeIndex& opcodes;
  const ScalarCodes& codes;
  std::span<const uint32_t> words;
  Instruction* instruction;
  std::string failure = {};
  const Opcode* row = nullptr;

  bool Find(Encoding encoding, uint32_t number) {
    row = opcodes.Find(encoding, number);
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
    if (!DecodeScalarRegister(code, codes, row->dst_dwords, &instruction->dst)) {
      failure = "scalar destination " + std::to_string(code) + " does not exist";
    }
  }

  void Source(size_t place, uint32_t code) {
    const uint8_t dwords = row->src_dwords[place];
    if (dwords == 0 || !failure.empty()) return;
    SourceContext context;
    context.codes = &codes;
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
    if ((row->flags & kImmediateSource1) != 0) {
      instruction->simm16 = static_cast<int32_t>(Field(word, 8, 4));
    } else {
      Source(1, Field(word, 8, 8));
    }
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
};

}  // namespace

bool DecodeSop(const OpcodeIndex& opcodes, const ScalarCodes& codes,
               std::span<const uint32_t> words, Instruction* instruction, std::string* failure) {
  const uint32_t word = words[0];
  if (Field(word, 30, 2) != 0b10) return false;
  Decoder decoder{opcodes, codes, words, instruction};
  if (Field(word, 23, 9) == 0b101111111) {
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
