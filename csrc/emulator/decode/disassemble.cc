#include "emulator/decode/disassemble.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "emulator/decode/decode.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {
namespace {

std::string Range(char bank, uint32_t first, uint32_t count) {
  if (count <= 1) return bank + std::to_string(first);
  return std::string(1, bank) + "[" + std::to_string(first) + ":" +
         std::to_string(first + count - 1) + "]";
}

std::string ScalarName(uint32_t index, uint32_t dwords) {
  switch (index) {
    case kSgprVccLo:
      return dwords == 2 ? "vcc" : "vcc_lo";
    case kSgprVccHi:
      return "vcc_hi";
    case kSgprNull:
      return "null";
    case kSgprM0:
      return "m0";
    case kSgprExecLo:
      return dwords == 2 ? "exec" : "exec_lo";
    case kSgprExecHi:
      return "exec_hi";
    case kSgprFlatScratchLo:
      return "flat_scratch";
    case kSgprXnackLo:
      return "xnack_mask";
    default:
      if (index >= kSgprTtmp0 && index < kSgprNull)
        return "ttmp" + std::to_string(index - kSgprTtmp0);
      return Range('s', index, dwords);
  }
}

std::string SpecialName(uint32_t index) {
  switch (index) {
    case kSharedBase:
      return "src_shared_base";
    case kSharedLimit:
      return "src_shared_limit";
    case kPrivateBase:
      return "src_private_base";
    case kPrivateLimit:
      return "src_private_limit";
    case kVccz:
      return "src_vccz";
    case kExecz:
      return "src_execz";
    default:
      return "src_scc";
  }
}

std::string OneSource(const Instruction& instruction, size_t place) {
  std::string text = RegisterName(instruction.src[place]);
  const Modifiers& mod = instruction.mod;
  const bool packed = (instruction.opcode->flags & kPackedMath) != 0;
  if (!packed && ((mod.abs >> place) & 1) != 0) text = "|" + text + "|";
  if (!packed && ((mod.neg >> place) & 1) != 0) text = "-" + text;
  return text;
}

// Fields that are not operands.
std::string Suffix(const Instruction& instruction) {
  const Modifiers& mod = instruction.mod;
  const MemoryFields& mem = instruction.mem;
  std::string text;
  if (mem.offset != 0) text += " offset:" + std::to_string(mem.offset);
  if (mem.offset1 != 0) text += " offset1:" + std::to_string(mem.offset1);
  if (mem.offen) text += " offen";
  if (mem.idxen) text += " idxen";
  if (mem.lds) text += " lds";
  if (mod.op_sel != 0) text += " op_sel:" + std::to_string(mod.op_sel);
  if (mod.clamp) text += " clamp";
  if (mod.omod != 0) text += " omod:" + std::to_string(mod.omod);
  if (mod.cbsz != 0) text += " cbsz:" + std::to_string(mod.cbsz);
  if (mod.abid != 0) text += " abid:" + std::to_string(mod.abid);
  if (mod.blgp != 0) text += " blgp:" + std::to_string(mod.blgp);
  if (mod.dpp == 1) text += " dpp:" + HexText(mod.dpp_ctrl);
  if (mod.dpp == 2) text += " dpp8:" + HexText(mod.dpp8);
  if (mod.sdwa) text += " sdwa";
  return text;
}

bool TakesImmediate(const Opcode& opcode) {
  switch (opcode.encoding) {
    case kSopk:
      return true;
    case kSopc:
      return (opcode.flags & kImmediateSource1) != 0;
    case kSopp:
      return opcode.op_class != OpClass::kBranch || (opcode.flags & kTerminator) == 0;
    default:
      return false;
  }
}

}  // namespace

std::string HexText(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string EncodingWords(std::span<const uint32_t> words) {
  std::string text = "encoding";
  for (size_t i = 0; i < std::min<size_t>(words.size(), 2); ++i) {
    char word[16];
    std::snprintf(word, sizeof(word), " 0x%08x", words[i]);
    text += word;
  }
  return text;
}

std::string RegisterName(const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::kNone:
      return "";
    case OperandKind::kVgpr:
      return operand.index >= 256 ? Range('a', operand.index - 256u, operand.dwords)
                                  : Range('v', operand.index, operand.dwords);
    case OperandKind::kSgpr:
      return ScalarName(operand.index, operand.dwords);
    case OperandKind::kConstant: {
      const auto value = static_cast<int32_t>(operand.value);
      if (operand.value_high == 0 && value >= -16 && value <= 64) return std::to_string(value);
      return HexText(operand.value | (uint64_t{operand.value_high} << 32));
    }
    case OperandKind::kSpecial:
      return SpecialName(operand.index);
  }
  return "";
}

std::string Disassemble(const Instruction& instruction) {
  if (!instruction.opcode) return "(none)";
  std::string text = instruction.opcode->mnemonic;
  std::string separator = " ";
  const auto add = [&](const std::string& operand) {
    if (operand.empty()) return;
    text += separator + operand;
    separator = ", ";
  };
  add(RegisterName(instruction.dst));
  add(RegisterName(instruction.sdst));
  if (instruction.opcode->encoding == kMubuf) {
    // The data first, as assemblers have it.
    for (const size_t place : {1, 0, 2}) add(OneSource(instruction, place));
    add(RegisterName(instruction.mem.soffset));
  } else {
    for (size_t place = 0; place < instruction.src.size(); ++place)
      add(OneSource(instruction, place));
  }
  const bool pair = instruction.dual && instruction.opcode->op_class == OpClass::kValuDual;
  if (instruction.dual && !pair) {  // the scales of a matrix product
    for (size_t place = 0; place < 2; ++place) add(OneSource(*instruction.dual, place));
  }
  if (TakesImmediate(*instruction.opcode)) add(HexText(static_cast<uint16_t>(instruction.simm16)));
  if (instruction.opcode->op_class == OpClass::kBranch && instruction.opcode->encoding == kSopp &&
      instruction.opcode->traits.timing != TimingClass::kEnd) {
    add("-> " + HexText(instruction.pc + 4 + static_cast<uint32_t>(instruction.simm16) * 4));
  }
  text += Suffix(instruction);
  if (pair) text += " :: " + Disassemble(*instruction.dual);
  return text;
}

}  // namespace jax_fa::emulator
