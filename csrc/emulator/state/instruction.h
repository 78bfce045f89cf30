// A decoded instruction: what the table-driven decoder makes and every exec function takes.
//
// One engine serves all targets. A target is a table of `Opcode` rows (target/<name>/rows.cc),
// which name the functions of exec/ and simd/, and a `Chip` of facts (chip/chip.h); nothing else in
// the engine asks which chip it is.
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

// What the rules on wait states distinguish (check/hazard.h), where the class does not say it.
enum class HazardClass : uint8_t {
  kPlain,
  kReadLane,       // v_readlane: source 1 picks a lane
  kReadFirstLane,  // v_readfirstlane
  kWriteLane,      // v_writelane: source 1 picks a lane
  kSwapLanes,      // v_permlane*
  kDot,
  kDivFmas,
  kReadMask,    // v_cndmask and carries: source 2 is a bit for each lane
  kVectorNop,   // no operation, of the vector unit
  kWaitStates,  // s_nop
  kUsesM0,      // s_sendmsg, s_movrel*
  kSetRegister,
  kGetRegister,
  kWaitAlu,  // s_wait_alu
  kLdsNop,   // ds_nop
};

// Which registers an operation touches beside what its operands say (check/access_plan.h).
enum class AccessClass : uint8_t {
  kPlain,
  kWriteLane,   // one lane of the destination
  kSwap,        // source 0 is written, too
  kHighToHigh,  // the upper half of a source counts for the upper half of the result alone
  kSumHigh,     // so does that of source 2, an addend
  kPairs,       // packed on two float32: op_sel may take one of a pair twice
};

// What the timing model distinguishes within a class (timing/instruction.h).
enum class TimingClass : uint8_t {
  kPlain,
  kHalfRate,     // 64-bit shifts
  kQuarterRate,  // 32-bit integer multiplication
  kScalarTrans,  // transcendental of a scalar register
  kEnd,          // of the wave
  kBarrier,      // signal and wait in one
  kBarrierSignal,
  kBarrierWait,
  kWaitStates,  // s_nop
  kSleep,
  kPriority,
  // Waits, by the counters that their operand has.
  kWaitPacked,  // s_waitcnt: all of them
  kWaitLoads,
  kWaitStores,
  kWaitLds,
  kWaitScalars,
  kWaitLoadsAndLds,
  kWaitStoresAndLds,
  kWaitAll,  // for 0 of each
  kWaitAlu,  // for results of the wave's own vector and scalar instructions
};

// Matrix products. Of those of RDNA the timing model alone needs the passes.
struct MatrixTraits {
  uint8_t passes = 0;            // groups of 4 cycles that the matrix core works on it
  bool twice_for_bytes = false;  // twice as many where A or B has elements of 8 bits (f8f6f4)
  bool single = false;           // of the units for float32 and float64 (not XDL)
  bool wide = false;             // 32 x 32 results
};

// What the checks and the timing model know of an operation beside its class and operands.
struct OpTraits {
  HazardClass hazard = HazardClass::kPlain;
  AccessClass access = AccessClass::kPlain;
  TimingClass timing = TimingClass::kPlain;
  uint8_t lds_dwords = 0;  // LDS-DMA: what a lane moves
  MatrixTraits matrix = {};
};

// One row of a target's decode table: (encoding, opcode number) is unique.
struct Opcode {
  uint8_t encoding;  // Encoding
  uint16_t number;
  const char* mnemonic;  // as llvm-objdump prints it, without _e32/_e64
  OpClass op_class;
  ExecFn exec;
  // Dwords of each operand; 0: the operand does not exist. Order: dst, sdst, src0..src2.
  uint8_t dst_dwords, sdst_dwords;
  std::array<uint8_t, 3> src_dwords;
  uint32_t flags;
  OpTraits traits = {};
};

// The row with these traits.
constexpr Opcode With(Opcode row, HazardClass hazard) {
  row.traits.hazard = hazard;
  return row;
}
constexpr Opcode With(Opcode row, AccessClass access) {
  row.traits.access = access;
  return row;
}
constexpr Opcode With(Opcode row, TimingClass timing) {
  row.traits.timing = timing;
  return row;
}

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

// Flags of scalar rows, beside OpFlags.
inline constexpr uint32_t kTakesLiteral = 1u << 31;      // a literal always follows: src2
inline constexpr uint32_t kImmediateSource1 = 1u << 29;  // SOPC: the field itself is a number
// Flags of memory rows, beside OpFlags.
enum MemoryFlags : uint32_t {
  kIsStore = 1u << 20,
  kIsAtomic = 1u << 21,
  kLoadsToLds = 1u << 22,
  kTwoAddresses = 1u << 23,  // DS read2, write2: two 8-bit offsets
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
