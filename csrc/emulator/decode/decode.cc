#include "emulator/decode/decode.h"

#include <bit>
#include <stdexcept>

#include "emulator/state/wave.h"

namespace jax_fa::emulator {
namespace {

constexpr const char* kEncodingNames[kEncodingCount] = {
    "SOP1", "SOP2",  "SOPC", "SOPK", "SOPP", "SMEM",   "VOP1",    "VOP2",  "VOPC",
    "VOP3", "VOP3P", "VOPD", "DS",   "FLAT", "GLOBAL", "SCRATCH", "MUBUF", "MTBUF"};

// Inline constants 240..248: 0.5, -0.5, 1, -1, 2, -2, 4, -4, 1/(2 pi).
constexpr uint16_t kFloats16[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                  0xc000, 0x4400, 0xc400, 0x3118};
constexpr uint16_t kFloatsBf16[] = {0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000,
                                    0xc000, 0x4080, 0xc080, 0x3e22};
constexpr uint32_t kFloats32[] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                  0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
constexpr uint64_t kFloats64[] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                                  0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                                  0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};

Operand ConstantOperand(uint64_t value, uint8_t dwords) {
  Operand operand;
  operand.kind = OperandKind::kConstant;
  operand.dwords = dwords;
  operand.value = static_cast<uint32_t>(value);
  operand.value_high = static_cast<uint32_t>(value >> 32);
  return operand;
}

Operand InlineFloat(uint32_t index, const SourceContext& context) {
  if (context.flags & kF64Sources) return ConstantOperand(kFloats64[index], context.dwords);
  if (context.flags & (kF16Sources | kBf16Sources)) {
    const bool is_bf16 = (context.flags & kBf16Sources) != 0;
    Operand operand =
        ConstantOperand(is_bf16 ? kFloatsBf16[index] : kFloats16[index], context.dwords);
    operand.is_16bit_constant = true;
    return operand;
  }
  return ConstantOperand(kFloats32[index], context.dwords);
}

}  // namespace

const char* EncodingName(Encoding encoding) { return kEncodingNames[encoding]; }

OpcodeIndex::OpcodeIndex(std::initializer_list<std::span<const Opcode>> tables) {
  for (std::span<const Opcode> table : tables) {
    for (const Opcode& row : table) {
      const uint32_t key = uint32_t{row.encoding} << 16 | row.number;
      if (!rows_.emplace(key, &row).second) {
        throw std::logic_error(std::string("two rows for ") +
                               EncodingName(static_cast<Encoding>(row.encoding)) + " opcode " +
                               std::to_string(row.number) + ": " + rows_[key]->mnemonic + " and " +
                               row.mnemonic);
      }
    }
  }
}

const Opcode* OpcodeIndex::Find(Encoding encoding, uint32_t number) const {
  if (number > 0xffff) return nullptr;
  const auto row = rows_.find(uint32_t{encoding} << 16 | number);
  return row == rows_.end() ? nullptr : row->second;
}

std::string UnknownOpcode(Encoding encoding, uint32_t number) {
  return std::string("unknown ") + EncodingName(encoding) + " opcode " + std::to_string(number);
}

bool DecodeScalarRegister(uint32_t code, const ScalarCodes& codes, uint8_t dwords,
                          Operand* operand) {
  if (code > 127) return false;
  uint32_t index = code;
  constexpr uint32_t kFlatScratchCodes = 4;
  if (codes.flat_scratch != kNoCode && code >= codes.flat_scratch &&
      code < codes.flat_scratch + kFlatScratchCodes) {
    index = kSgprFlatScratchLo + (code - codes.flat_scratch);
  } else if (code == codes.m0) {
    index = kSgprM0;
  } else if (code == codes.null) {
    index = kSgprNull;
  } else if (code == kSgprM0 || code == kSgprNull) {
    return false;  // a code that this target has nothing at
  }
  operand->kind = OperandKind::kSgpr;
  operand->dwords = dwords;
  operand->index = static_cast<uint16_t>(index);
  // No register range may run off its block: s0.. into VCC is legal nowhere, EXEC has two.
  if (index == kSgprNull) return true;
  if (dwords > 1) {
    const uint32_t last = index + dwords - 1;
    const uint32_t limit = index < kSgprVccLo           ? kSgprVccLo
                           : index < kSgprTtmp0         ? kSgprTtmp0
                           : index < kSgprNull          ? kSgprNull
                           : index < kSgprExecLo        ? kSgprExecLo
                           : index < kSgprFlatScratchLo ? kSgprFlatScratchLo
                                                        : kSgprCount;
    if (last >= limit) return false;
  }
  return true;
}

bool DecodeSource(uint32_t code, SourceContext* context, Operand* operand) {
  const bool wide = context->dwords == 2;
  if (code >= 256) {
    *operand = VgprOperand(code - 256, context->dwords);
    return code < 512;
  }
  if (code <= 127) return DecodeScalarRegister(code, *context->codes, context->dwords, operand);
  if (code <= 208) {
    const int64_t value = code <= 192 ? int64_t{code} - 128 : 192 - int64_t{code};
    *operand = ConstantOperand(
        wide ? static_cast<uint64_t>(value) : uint64_t{static_cast<uint32_t>(value)},
        context->dwords);
    return true;
  }
  if (code >= 240 && code <= 248) {
    *operand = InlineFloat(code - 240, *context);
    return true;
  }
  if (code == 255) {
    if (!context->literal) return false;
    context->literal_used = true;
    // A literal of a 64-bit float is its high half.
    const uint64_t literal = *context->literal;
    *operand =
        ConstantOperand(context->flags & kF64Sources ? literal << 32 : literal, context->dwords);
    return true;
  }
  switch (code) {
    case kSharedBase:
    case kSharedLimit:
    case kPrivateBase:
    case kPrivateLimit:
    case kVccz:
    case kExecz:
    case kSccSource:
      if (!context->codes->has_vccz_and_execz && (code == kVccz || code == kExecz)) return false;
      operand->kind = OperandKind::kSpecial;
      operand->dwords = context->dwords;
      operand->index = static_cast<uint16_t>(code);
      return true;
    default:
      return false;
  }
}

}  // namespace jax_fa::emulator
