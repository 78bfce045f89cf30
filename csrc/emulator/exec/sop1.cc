// SOP1: moves, bit counting, EXEC mask operations, indexed scalar moves.
#include <bit>

#include "emulator/exec/scalar.h"

namespace jax_fa::emulator {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;
using i64 = int64_t;

template <class D, class A, auto kFn>
constexpr ExecFn kPlain = ScalarUnary<D, A, Scc::kKeep, kFn>;
template <class D, class A, auto kFn>
constexpr ExecFn kTest = ScalarUnary<D, A, Scc::kNonZero, kFn>;

template <class T>
constexpr auto kIdentity = [](T a) { return a; };
template <class T>
constexpr auto kNot = [](T a) { return static_cast<T>(~a); };
template <class T>
constexpr auto kReverse = [](T a) {
  T result = 0;
  for (unsigned bit = 0; bit < sizeof(T) * 8; ++bit)
    result |= ((a >> bit) & 1) << (sizeof(T) * 8 - 1 - bit);
  return result;
};
template <class T>
constexpr auto kCountOnes = [](T a) { return static_cast<u32>(std::popcount(a)); };
template <class T>
constexpr auto kCountZeros =
    [](T a) { return static_cast<u32>(sizeof(T) * 8) - static_cast<u32>(std::popcount(a)); };
// Position of the first one from the low end; -1 when there is none.
template <class T>
constexpr auto kFirstOne =
    [](T a) { return a == 0 ? ~u32{0} : static_cast<u32>(std::countr_zero(a)); };
template <class T>
constexpr auto kFirstZero =
    [](T a) { return ~a == 0 ? ~u32{0} : static_cast<u32>(std::countr_one(a)); };
template <class T>
constexpr auto kLeadingZeros =
    [](T a) { return a == 0 ? ~u32{0} : static_cast<u32>(std::countl_zero(a)); };
// Leading bits equal to the sign.
template <class T>
constexpr auto kLeadingSigns = [](T a) {
  const bool negative = (a >> (sizeof(T) * 8 - 1)) != 0;
  const int count = negative ? std::countl_one(a) : std::countl_zero(a);
  return count == static_cast<int>(sizeof(T) * 8) ? ~u32{0} : static_cast<u32>(count);
};
// Each group of four bits: all ones where any is set.
template <class T>
constexpr auto kWholeQuad = [](T a) {
  T result = 0;
  for (unsigned quad = 0; quad < sizeof(T) * 8; quad += 4) {
    if ((a >> quad) & 15) result |= T{15} << quad;
  }
  return result;
};
template <class T>
constexpr auto kQuadMask = [](T a) {
  T result = 0;
  for (unsigned quad = 0; quad < sizeof(T) * 2; ++quad) {
    if ((a >> (4 * quad)) & 15) result |= T{1} << quad;
  }
  return result;
};

template <class T, bool kValue>
void SetBit(Wave& wave, const Instruction& instruction) {
  const u32 bit = ReadScalar32(wave, instruction.src[0]) & (sizeof(T) * 8 - 1);
  const T old = ReadScalar<T>(wave, instruction.dst);
  WriteScalar<T>(wave, instruction.dst,
                 kValue ? old | (T{1} << bit) : old & static_cast<T>(~(T{1} << bit)));
}

template <class T>
void MoveIfScc(Wave& wave, const Instruction& instruction) {
  if (wave.scc) WriteScalar<T>(wave, instruction.dst, ReadScalar<T>(wave, instruction.src[0]));
}

u64 ReadExec(const Wave& wave) { return wave.exec; }
template <class T>
void SetExec(Wave& wave, T value) {
  wave.exec = sizeof(T) == 4 ? (wave.exec & ~u64{0xffffffff}) | value
                             : static_cast<u64>(value) & wave.full_exec;
}
// dst = EXEC; EXEC = fn(src, EXEC); SCC = EXEC is not zero.
template <class T, auto kFn>
void SaveExec(Wave& wave, const Instruction& instruction) {
  const T source = ReadScalar<T>(wave, instruction.src[0]);
  const T exec = static_cast<T>(ReadExec(wave));
  const T result = kFn(source, exec);
  WriteScalar<T>(wave, instruction.dst, exec);
  SetExec<T>(wave, result);
  wave.scc = result != 0;
}
// EXEC = fn(src, EXEC); dst = EXEC.
template <class T, auto kFn>
void WriteExec(Wave& wave, const Instruction& instruction) {
  const T result = kFn(ReadScalar<T>(wave, instruction.src[0]), static_cast<T>(ReadExec(wave)));
  SetExec<T>(wave, result);
  WriteScalar<T>(wave, instruction.dst, result);
  wave.scc = result != 0;
}

// s_movrels / s_movreld: M0 is added to the source's or destination's register number.
u32 RelativeIndex(const Wave& wave, const Instruction& instruction, const Operand& operand,
                  u32 dwords) {
  const u64 index = u64{operand.index} + wave.ReadSgpr(kSgprM0);
  if (operand.kind != OperandKind::kSgpr || index + dwords > kSgprTtmp0) {
    Fail(wave, instruction, "M0 makes the scalar register number " + std::to_string(index));
  }
  return static_cast<u32>(index);
}
template <class T>
void MoveRelativeSource(Wave& wave, const Instruction& instruction) {
  Operand source = instruction.src[0];
  source.index = static_cast<uint16_t>(RelativeIndex(wave, instruction, source, sizeof(T) / 4));
  WriteScalar<T>(wave, instruction.dst, ReadScalar<T>(wave, source));
}
template <class T>
void MoveRelativeDestination(Wave& wave, const Instruction& instruction) {
  Operand destination = instruction.dst;
  destination.index =
      static_cast<uint16_t>(RelativeIndex(wave, instruction, destination, sizeof(T) / 4));
  WriteScalar<T>(wave, destination, ReadScalar<T>(wave, instruction.src[0]));
}

#define UNARY(name, D, A, exec, flags) \
  {kSop1, name, kAlu, exec, sizeof(D) / 4, {sizeof(A) / 4, 0, 0}, flags}
#define SAVE_EXEC(op, expression)                                                \
  {kSop1,                                                                        \
   "s_" op "_saveexec_b64",                                                      \
   kAlu,                                                                         \
   SaveExec<u64, [](u64 s, u64 exec) -> u64 { return expression; }>,             \
   2,                                                                            \
   k2,                                                                           \
   kW | kReadsExec | kWritesExec},                                               \
  {                                                                              \
    kSop1, "s_" op "_saveexec_b32", kAlu,                                        \
        SaveExec<u32, [](u32 s, u32 exec) -> u32 { return expression; }>, 1, k1, \
        kW | kReadsExec | kWritesExec                                            \
  }
#define WRITE_EXEC(op, expression)                                                \
  {kSop1,                                                                         \
   "s_" op "_wrexec_b64",                                                         \
   kAlu,                                                                          \
   WriteExec<u64, [](u64 s, u64 exec) -> u64 { return expression; }>,             \
   2,                                                                             \
   k2,                                                                            \
   kW | kReadsExec | kWritesExec},                                                \
  {                                                                               \
    kSop1, "s_" op "_wrexec_b32", kAlu,                                           \
        WriteExec<u32, [](u32 s, u32 exec) -> u32 { return expression; }>, 1, k1, \
        kW | kReadsExec | kWritesExec                                             \
  }

constexpr ScalarOp kScalarMoveOps[] = {
    UNARY("s_mov_b32", u32, u32, (kPlain<u32, u32, kIdentity<u32>>), 0),
    {kSop1,
     "s_mov_b64",
     kAlu,
     (kPlain<u64, u64, kIdentity<u64>>),
     2,
     {2, 0, 0},
     0,
     {.access = AccessClass::kHighToHigh}},
    UNARY("s_cmov_b32", u32, u32, MoveIfScc<u32>, kReadsScc | kReadsDst),
    UNARY("s_cmov_b64", u64, u64, MoveIfScc<u64>, kReadsScc | kReadsDst),
    UNARY("s_not_b32", u32, u32, (kTest<u32, u32, kNot<u32>>), kW),
    UNARY("s_not_b64", u64, u64, (kTest<u64, u64, kNot<u64>>), kW),
    UNARY("s_wqm_b32", u32, u32, (kTest<u32, u32, kWholeQuad<u32>>), kW),
    UNARY("s_wqm_b64", u64, u64, (kTest<u64, u64, kWholeQuad<u64>>), kW),
    UNARY("s_brev_b32", u32, u32, (kPlain<u32, u32, kReverse<u32>>), 0),
    UNARY("s_brev_b64", u64, u64, (kPlain<u64, u64, kReverse<u64>>), 0),
    UNARY("s_bcnt0_i32_b32", u32, u32, (kTest<u32, u32, kCountZeros<u32>>), kW),
    UNARY("s_bcnt0_i32_b64", u32, u64, (kTest<u32, u64, kCountZeros<u64>>), kW),
    UNARY("s_bcnt1_i32_b32", u32, u32, (kTest<u32, u32, kCountOnes<u32>>), kW),
    UNARY("s_bcnt1_i32_b64", u32, u64, (kTest<u32, u64, kCountOnes<u64>>), kW),
    UNARY("s_ff0_i32_b32", u32, u32, (kPlain<u32, u32, kFirstZero<u32>>), 0),
    UNARY("s_ff0_i32_b64", u32, u64, (kPlain<u32, u64, kFirstZero<u64>>), 0),
    UNARY("s_ff1_i32_b32", u32, u32, (kPlain<u32, u32, kFirstOne<u32>>), 0),
    UNARY("s_ff1_i32_b64", u32, u64, (kPlain<u32, u64, kFirstOne<u64>>), 0),
    UNARY("s_flbit_i32_b32", u32, u32, (kPlain<u32, u32, kLeadingZeros<u32>>), 0),
    UNARY("s_flbit_i32_b64", u32, u64, (kPlain<u32, u64, kLeadingZeros<u64>>), 0),
    UNARY("s_flbit_i32", u32, u32, (kPlain<u32, u32, kLeadingSigns<u32>>), 0),
    UNARY("s_flbit_i32_i64", u32, u64, (kPlain<u32, u64, kLeadingSigns<u64>>), 0),
    UNARY("s_sext_i32_i8", u32, u32,
          (kPlain<i32, u32, [](u32 a) -> i32 { return static_cast<int8_t>(a); }>), 0),
    UNARY("s_sext_i32_i16", u32, u32,
          (kPlain<i32, u32, [](u32 a) -> i32 { return static_cast<int16_t>(a); }>), 0),
    UNARY("s_bitset0_b32", u32, u32, (SetBit<u32, false>), kReadsDst),
    UNARY("s_bitset0_b64", u64, u32, (SetBit<u64, false>), kReadsDst),
    UNARY("s_bitset1_b32", u32, u32, (SetBit<u32, true>), kReadsDst),
    UNARY("s_bitset1_b64", u64, u32, (SetBit<u64, true>), kReadsDst),
    SAVE_EXEC("and", s& exec),
    SAVE_EXEC("or", s | exec),
    SAVE_EXEC("xor", s ^ exec),
    SAVE_EXEC("andn2", s & ~exec),
    SAVE_EXEC("orn2", s | ~exec),
    SAVE_EXEC("nand", ~(s& exec)),
    SAVE_EXEC("nor", ~(s | exec)),
    SAVE_EXEC("xnor", ~(s ^ exec)),
    SAVE_EXEC("andn1", ~s& exec),
    SAVE_EXEC("orn1", ~s | exec),
    WRITE_EXEC("andn1", ~s& exec),
    WRITE_EXEC("andn2", s & ~exec),
    UNARY("s_quadmask_b32", u32, u32, (kTest<u32, u32, kQuadMask<u32>>), kW),
    UNARY("s_quadmask_b64", u64, u64, (kTest<u64, u64, kQuadMask<u64>>), kW),
    {kSop1,
     "s_movrels_b32",
     kAlu,
     MoveRelativeSource<u32>,
     sizeof(u32) / 4,
     {sizeof(u32) / 4, 0, 0},
     kReadsM0,
     {.hazard = HazardClass::kUsesM0}},
    {kSop1,
     "s_movrels_b64",
     kAlu,
     MoveRelativeSource<u64>,
     sizeof(u64) / 4,
     {sizeof(u64) / 4, 0, 0},
     kReadsM0,
     {.hazard = HazardClass::kUsesM0}},
    {kSop1,
     "s_movreld_b32",
     kAlu,
     MoveRelativeDestination<u32>,
     sizeof(u32) / 4,
     {sizeof(u32) / 4, 0, 0},
     kReadsM0,
     {.hazard = HazardClass::kUsesM0}},
    {kSop1,
     "s_movreld_b64",
     kAlu,
     MoveRelativeDestination<u64>,
     sizeof(u64) / 4,
     {sizeof(u64) / 4, 0, 0},
     kReadsM0,
     {.hazard = HazardClass::kUsesM0}},
    UNARY("s_abs_i32", u32, u32,
          (kTest<u32, u32, [](u32 a) { return (a >> 31) != 0 ? 0 - a : a; }>), kW),
    UNARY(
        "s_bitreplicate_b64_b32", u64, u32,
        (
            kPlain<u64, u32,
                   [](u32 a) {
                     u64 result = 0;
                     for (unsigned bit = 0; bit < 32; ++bit) {
                       if ((a >> bit) & 1) result |= u64{3} << (2 * bit);
                     }
                     return result;
                   }>),
        0),
};

}  // namespace

std::span<const ScalarOp> ScalarMoveOps() { return kScalarMoveOps; }

}  // namespace jax_fa::emulator
