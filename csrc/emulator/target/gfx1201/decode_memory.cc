// The memory encodings of gfx1201 (gfx12): fields to operands.
#include "emulator/target/gfx1201/decode_builder.h"

namespace jax_fa::emulator::gfx1201 {
namespace {

// Bit 0 of `th`: an atomic returns what was there before.
bool HasResult(const Opcode& row, uint32_t th) {
  return (row.flags & kIsAtomic) == 0 || (th & 1) != 0;
}

void SetCachePolicy(uint32_t word, Instruction* instruction) {
  instruction->mem.cache_policy = static_cast<uint8_t>(Bits(word, 18, 5));  // scope, th
}

int32_t SignedOffset(uint32_t word) { return static_cast<int32_t>(word) >> 8; }

}  // namespace

std::string DecodeSmem(Words words, Instruction* instruction) {
  Builder builder(words, 2, instruction);
  if (!builder.Has(2)) return builder.failure();
  if (!builder.FindRow(kSmemEncoding, Bits(words[0], 13, 6))) return builder.failure();
  const Opcode& row = *instruction->opcode;
  const auto scalar = [&](Operand* operand, uint32_t code, uint8_t dwords, const char* what) {
    if (dwords == 0 || DecodeScalarRegister(code, kGfx1201Chip.scalar_codes, dwords, operand)) {
      return;
    }
    builder.Fail(std::string("scalar ") + what + " " + std::to_string(code) + " does not exist");
  };
  instruction->mem.offset = SignedOffset(words[1] << 8);
  const uint32_t offset = Bits(words[1], 25, 7);
  if (offset != kSgprNull && row.src_dwords[1] != 0) {
    scalar(&instruction->src[1], offset, 1, "offset register");
  }
  scalar(&instruction->dst, Bits(words[0], 6, 7), row.dst_dwords, "destination");
  scalar(&instruction->src[0], 2 * Bits(words[0], 0, 6), row.src_dwords[0], "base register");
  return builder.Finish();
}

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
  if (!DecodeScalarRegister(Bits(words[0], 0, 7), kGfx1201Chip.scalar_codes, 1, &mem.soffset)) {
    builder.Fail("the scalar offset of " + builder.Name());
  }
  const uint32_t data = Bits(words[1], 0, 8);
  builder.Vgpr(1, data);
  if (HasResult(row, Bits(words[1], 20, 3))) builder.Dst(data);
  return builder.Finish();
}

}  // namespace jax_fa::emulator::gfx1201
