// A decoded instruction: what the table-driven decoder makes and every exec function takes.
//
// One engine serves both targets. A target is a table of `Opcode` rows (decode_<target>.cc) and the
// exec families it names; nothing else in the engine asks which chip it is.
#ifndef JAX_FA_EMULATOR_STATE_INSTRUCTION_H_
#define JAX_FA_EMULATOR_STATE_INSTRUCTION_H_

#include <array>
#include <cstdint>

namespace jax_fa::emulator {

struct Wave;
struct Instruction;

// Runs one instruction on one wave. Sources are read before any destination is written. The engine
// has already advanced the program counter past the instruction; branches overwrite it.
using ExecFn = void (*)(Wave&, const Instruction&);

// Every executed wave instruction counts in exactly one class.
enum class OpClass : uint8_t {
  kMatrix,        // mfma, wmma
  kSparseMatrix,  // smfmac, swmmac
  kValu,
  kValuPacked,  // v_pk_* on two float32
  kValuDual,    // one VOPD pair
  kTrans,       // exp, log, rcp, rsq, sqrt, sin, cos
  kSalu,
  kSmem,
  kLdsRead,
  kLdsWrite,
  kVmemLoad,
  kVmemStore,
  kLdsDma,
  kWait,
  kBarrier,
  kBranch,
  kNop,
  kCount
};

enum class OperandKind : uint8_t {
  kNone,
  kVgpr,  // index 0..255 (AGPR a<n>: index 256 + n)
  kSgpr,  // index as in the encoding after normalisation, see state/wave.h (VCC, M0, EXEC included)
  kConstant,  // inline constant or literal, already a bit pattern in `value`
  kSpecial,   // read-only sources with a value of their own: SCC, VCCZ, EXECZ, apertures (`index`)
};

struct Operand {
  OperandKind kind = OperandKind::kNone;
  uint8_t dwords = 0;  // registers read or written from `index` on
  bool is_16bit_constant = false;
  uint16_t index = 0;
  uint32_t value = 0;  // kConstant: low dword; 64-bit operands take ConstantHigh()
  uint32_t value_high = 0;
};

// Source modifiers and the fields of the wide encodings, zero where an encoding has none.
struct Modifiers {
  uint8_t neg = 0;        // bit per source
  uint8_t abs = 0;        // bit per source; VOP3P: neg_hi
  uint8_t op_sel = 0;     // bit per source, bit 3: destination
  uint8_t op_sel_hi = 0;  // VOP3P
  uint8_t omod = 0;
  bool clamp = false;
  uint8_t cbsz = 0, abid = 0, blgp = 0;  // MFMA
  // DPP and SDWA: `dpp` 0 none, 1 the 16-lane control word in `dpp_ctrl`, 2 DPP8 selects.
  uint8_t dpp = 0;
  uint16_t dpp_ctrl = 0;
  uint8_t dpp_row_mask = 15, dpp_bank_mask = 15;
  bool dpp_bound_ctrl = false, dpp_fetch_inactive = false;
  uint32_t dpp8 = 0;
  bool sdwa = false;
  uint8_t sdwa_dst_sel = 6, sdwa_dst_unused = 0, sdwa_src0_sel = 6, sdwa_src1_sel = 6,
          sdwa_sext = 0;
};

// Fields of the memory encodings.
struct MemoryFields {
  int32_t offset =
      0;  // signed byte offset (DS: unsigned 16 bits; two-address forms: offset, offset1)
  int32_t offset1 = 0;
  bool offen = false, idxen = false, lds = false, gds = false;
  uint8_t cache_policy = 0;  // sc0/sc1/nt or scope/th bits; no effect on results
  uint8_t segment = 0;       // 0 flat, 1 scratch, 2 global
  Operand soffset;           // MUBUF: the scalar offset, read beside the sources
};

// One row of a target's decode table: (encoding, opcode number) is unique.
struct Opcode {
  uint8_t encoding;  // enum of the target's decoder
  uint16_t number;
  const char* mnemonic;  // as llvm-objdump prints it, without _e32/_e64
  OpClass op_class;
  ExecFn exec;
  // Dwords of each operand; 0: the operand does not exist. Order: dst, sdst, src0..src2.
  uint8_t dst_dwords, sdst_dwords;
  std::array<uint8_t, 3> src_dwords;
  uint32_t flags;
};

// Opcode::flags
enum OpFlags : uint32_t {
  kReadsVccImplicitly = 1u << 0,
  kWritesVccImplicitly = 1u << 1,
  kReadsDst = 1u << 2,  // fmac, dot accumulators, d16_hi loads, cndmask-like merges
  kWritesScc = 1u << 3,
  kReadsScc = 1u << 4,
  kReadsM0 = 1u << 5,
  kIgnoresExec = 1u << 6,  // readlane, writelane, matrix instructions, permlane swaps
  kF16Sources = 1u << 7,   // inline constants are half precision
  kBf16Sources = 1u << 8,
  kF64Sources = 1u << 9,  // 64-bit float constants
  kCrossLane = 1u << 10,
  kReadsExec = 1u << 11,
  kWritesExec = 1u << 12,
  kTerminator = 1u << 13,
  kIntSources = 1u << 14,  // no abs/neg; integer constants
  kPackedMath = 1u << 15,  // VOP3P with op_sel_hi
  kDefaultSourceBits = 1u << 16,
};

struct Instruction {
  ExecFn exec = nullptr;
  const Opcode* opcode = nullptr;
  uint32_t pc = 0;  // byte offset in the code object's text
  uint8_t size_bytes = 4;
  Operand dst, sdst;  // sdst: scalar carry/compare destination of VOP3, or M0-like extras
  std::array<Operand, 3> src;
  int32_t simm16 = 0;  // SOPP/SOPK immediate, sign-extended
  Modifiers mod;
  MemoryFields mem;
  // VOPD: the second half; null otherwise. Both halves read all sources before either writes.
  const Instruction* dual = nullptr;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_STATE_INSTRUCTION_H_
