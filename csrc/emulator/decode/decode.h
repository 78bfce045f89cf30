// The table-driven decoder: what is common to the targets.
//
// A target's decode function (target/<name>/decode.cc) picks the encoding from the first bits,
// extracts the fields, finds the `Opcode` row in an `OpcodeIndex` over its tables, and fills an
// `Instruction`; it may replace `Instruction::exec` (set from the row) by a faster special form.
// The SOP encodings, which all targets share, are decoded by `DecodeSop`.
#ifndef JAX_FA_EMULATOR_DECODE_DECODE_H_
#define JAX_FA_EMULATOR_DECODE_DECODE_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <unordered_map>

#include "emulator/chip/chip.h"
#include "emulator/state/instruction.h"
#include "emulator/state/operand.h"

namespace jax_fa::emulator {

// "VOP3".
const char* EncodingName(Encoding encoding);

// Rows of several tables by (encoding, number). Throws std::logic_error when two rows overlap.
class OpcodeIndex {
 public:
  explicit OpcodeIndex(std::initializer_list<std::span<const Opcode>> tables);
  const Opcode* Find(Encoding encoding, uint32_t number) const;  // null: no such opcode
  const std::unordered_map<uint32_t, const Opcode*>& rows() const { return rows_; }

 private:
  std::unordered_map<uint32_t, const Opcode*> rows_;  // encoding << 16 | number
};

// "unknown VOP2 opcode 63".
std::string UnknownOpcode(Encoding encoding, uint32_t number);

// One source or scalar destination as the encodings number them (8 or 9 bits):
//   0..127 scalar registers, 128..208 integers, 240..248 floats, 255 a literal, 256..511 VGPRs.
struct SourceContext {
  const ScalarCodes* codes = nullptr;
  uint32_t flags = 0;                 // Opcode::flags: which float type inline constants have
  uint8_t dwords = 1;                 // registers read; 2 also widens constants to 64 bits
  const uint32_t* literal = nullptr;  // the dword after the encoding; null: none allowed here
  bool literal_used = false;          // set when a source took it: the size grows by 4
};
// False when the code means nothing on this target (or is SDWA/DPP, which the caller handles
// first).
bool DecodeSource(uint32_t code, SourceContext* context, Operand* operand);
// A scalar register written: `code` is 7 bits. False for constants.
bool DecodeScalarRegister(uint32_t code, const ScalarCodes& codes, uint8_t dwords,
                          Operand* operand);

// Decodes the SOP encodings of a target that has these rows; false: words[0] is none of them.
bool DecodeSop(const OpcodeIndex& opcodes, const ScalarCodes& codes,
               std::span<const uint32_t> words, Instruction* instruction, std::string* failure);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_DECODE_DECODE_H_
