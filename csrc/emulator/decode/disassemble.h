// Decoded instructions as text, for messages. Close to llvm-objdump's spelling, not equal to it.
#ifndef JAX_FA_EMULATOR_DECODE_DISASSEMBLE_H_
#define JAX_FA_EMULATOR_DECODE_DISASSEMBLE_H_

#include <cstdint>
#include <span>
#include <string>

#include "emulator/state/instruction.h"

namespace jax_fa::emulator {

std::string Disassemble(const Instruction& instruction);
std::string EncodingWords(std::span<const uint32_t> words);  // "0xbf8c0070 0x..."
std::string HexText(uint64_t value);                         // "0x1f"
std::string RegisterName(const Operand& operand);            // "v[4:7]", "s2", "vcc"

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_DECODE_DISASSEMBLE_H_
