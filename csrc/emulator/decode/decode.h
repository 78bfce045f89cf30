// The table-driven decoder: what is common to the targets, and how a target plugs in.
//
// A target gives the engine one `TargetIsa`. Its decode function picks the encoding from the first
// bits, extracts the fields, finds the `Opcode` row in an `OpcodeIndex` over its tables, and fills
// an `Instruction`; it may replace `Instruction::exec` (set from the row) by a faster special form.
//
// Who has which rows: exec_scalar.cc gives the scalar encodings (SOP1, SOP2, SOPC, SOPK, SOPP,
// SMEM) of both targets and decodes them (`DecodeScalar`); decode_<target>*.cc and simd_*.cc the
// rest.
#ifndef JAX_FA_EMULATOR_DECODE_DECODE_H_
#define JAX_FA_EMULATOR_DECODE_DECODE_H_

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <span>
#include <string>
#include <unordered_map>

#include "emulator/state/instruction.h"

namespace jax_fa::emulator {

// Opcode::encoding of every target. (encoding, number) is unique within a target.
enum Encoding : uint8_t {
  kSop1,
  kSop2,
  kSopc,
  kSopk,
  kSopp,
  kSmemEncoding,
  kVop1,
  kVop2,
  kVopc,
  kVop3,   // with VOP3SD; the VOP1, VOP2 and VOPC opcodes in their VOP3 form use their own rows
  kVop3p,  // with the matrix instructions
  kVopd,
  kDs,
  kFlat,
  kGlobal,
  kScratch,
  kMubuf,  // gfx12: VBUFFER
  kMtbuf,
  kEncodingCount
};
const char* EncodingName(Encoding encoding);

// Owns what an Instruction points to beside its row: second halves of VOPD.
using InstructionStore = std::deque<Instruction>;

// Decodes the instruction at words[0] (words runs to the end of the text). Returns an empty text
// and fills exec, opcode, size_bytes and the operands, or says which opcode, field or format is
// unknown. `pc` is set by the caller. Scalar encodings go to DecodeScalar.
using DecodeFn = std::string (*)(std::span<const uint32_t> words, InstructionStore* store,
                                 Instruction* instruction);

enum class Isa : uint8_t { kGfx950, kGfx1201 };

struct TargetIsa {
  Isa isa;
  const char* name;        // "gfx950"
  uint32_t elf_machine;    // EF_AMDGPU_MACH of e_flags: 0x4f gfx950, 0x4e gfx1201
  uint32_t wave_size;      // the target's default; the kernel descriptor may say 32 on gfx12
  uint32_t max_lds_bytes;  // of one workgroup
  uint32_t max_waves;      // of one workgroup
  DecodeFn decode;
  // gfx12: the workgroup id is in ttmp7 and ttmp9, and each kind of memory has its own counter.
  bool workgroup_id_in_ttmp;
};

const TargetIsa& Gfx950Isa();   // target/gfx950/decode.cc
const TargetIsa& Gfx1201Isa();  // target/gfx1201/decode.cc

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
  Isa isa;
  uint32_t flags = 0;                 // Opcode::flags: which float type inline constants have
  uint8_t dwords = 1;                 // registers read; 2 also widens constants to 64 bits
  const uint32_t* literal = nullptr;  // the dword after the encoding; null: none allowed here
  bool literal_used = false;          // set when a source took it: the size grows by 4
};
// False when the code means nothing on this target (or is SDWA/DPP, which the caller handles
// first).
bool DecodeSource(uint32_t code, SourceContext* context, Operand* operand);
// A scalar register written: `code` is 7 bits. False for constants.
bool DecodeScalarRegister(uint32_t code, Isa isa, uint8_t dwords, Operand* operand);
inline Operand VgprOperand(uint32_t index, uint8_t dwords) {
  Operand operand;
  operand.kind = OperandKind::kVgpr;
  operand.dwords = dwords;
  operand.index = static_cast<uint16_t>(index);
  return operand;
}

// OperandKind::kSpecial, by source code.
enum SpecialSource : uint16_t {
  kSharedBase = 235,
  kSharedLimit = 236,
  kPrivateBase = 237,
  kPrivateLimit = 238,
  kVccz = 251,
  kExecz = 252,
  kSccSource = 253,
};
// The 64-bit value of a scalar source (kSgpr, kConstant, kSpecial): dwords 0 and 1.
uint64_t ReadScalarSource(const Wave& wave, const Operand& operand);

// Decodes the scalar encodings of either target; false: words[0] is none of them.
bool DecodeScalar(Isa isa, std::span<const uint32_t> words, Instruction* instruction,
                  std::string* failure);
// Their rows, for tests and listings.
std::span<const Opcode> ScalarRows(Isa isa);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_DECODE_DECODE_H_
