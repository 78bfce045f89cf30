// SOP2, SOPC and the arithmetic half of SOPK: integers and bit fields.
#include <algorithm>

#include "emulator/exec/scalar.h"

namespace jax_fa::emulator {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;
using i64 = int64_t;

template <class T, Scc kScc, auto kFn>
constexpr ExecFn kSame = ScalarBinary<T, T, T, kScc, kFn>;
template <class T, auto kFn>
constexpr ExecFn kShift = ScalarBinary<T, T, u32, Scc::kNonZero, kFn>;

constexpr auto kAddCarry = [](u32 a, u32 b, bool& scc) {
  const u64 sum = u64{a} + b;
  scc = (sum >> 32) != 0;
  return static_cast<u32>(sum);
};
constexpr auto kSubBorrow = [](u32 a, u32 b, bool& scc) {
  scc = b > a;
  return a - b;
};
constexpr auto kAddSigned = [](i32 a, i32 b, bool& scc) {
  i32 sum;
  scc = __builtin_add_overflow(a, b, &sum);
  return sum;
};
constexpr auto kSubSigned = [](i32 a, i32 b, bool& scc) {
  i32 difference;
  scc = __builtin_sub_overflow(a, b, &difference);
  return difference;
};
constexpr auto kAddWithCarry = [](u32 a, u32 b, bool& scc) {
  const u64 sum = u64{a} + b + (scc ? 1 : 0);
  scc = (sum >> 32) != 0;
  return static_cast<u32>(sum);
};
constexpr auto kSubWithBorrow = [](u32 a, u32 b, bool& scc) {
  const u64 taken = u64{b} + (scc ? 1 : 0);
  scc = taken > a;
  return static_cast<u32>(a - taken);
};
template <class T>
constexpr auto kMin = [](T a, T b, bool& scc) {
  scc = a < b;
  return scc ? a : b;
};
template <class T>
constexpr auto kMax = [](T a, T b, bool& scc) {
  scc = a >= b;
  return scc ? a : b;
};
template <class T>
constexpr auto kSelect = [](T a, T b, bool& scc) { return scc ? a : b; };

template <class T>
constexpr u32 kShiftMask = sizeof(T) * 8 - 1;

// Field: offset in the low bits of b, width in b[22:16].
template <class T>
constexpr auto kExtractUnsigned = [](T a, u32 b) {
  const u32 offset = b & kShiftMask<T>, width = std::min<u32>((b >> 16) & 0x7f, sizeof(T) * 8);
  const T shifted = a >> offset;
  return width == sizeof(T) * 8 ? shifted : static_cast<T>(shifted & ((T{1} << width) - 1));
};
template <class T, class U>
constexpr auto kExtractSigned = [](T a, u32 b) {
  const u32 offset = b & kShiftMask<T>, width = std::min<u32>((b >> 16) & 0x7f, sizeof(T) * 8);
  if (width == 0) return T{0};
  const T shifted = a >> offset;
  const u32 unused = sizeof(T) * 8 - width;
  // Bits past the top of the register are copies of its sign.
  return static_cast<T>(static_cast<T>(static_cast<U>(shifted) << unused) >> unused);
};
template <class T>
constexpr auto kFieldMask = [](u32 a, u32 b) {
  return static_cast<T>(((T{1} << (a & kShiftMask<T>)) - 1) << (b & kShiftMask<T>));
};
template <int kBy>
constexpr auto kShiftAdd = [](u32 a, u32 b, bool& scc) {
  const u64 sum = (u64{a} << kBy) + b;
  scc = (sum >> 32) != 0;
  return static_cast<u32>(sum);
};
template <int kHalfA, int kHalfB>
constexpr auto kPack = [](u32 a, u32 b) {
  return ((a >> (16 * kHalfA)) & 0xffffu) | (((b >> (16 * kHalfB)) & 0xffffu) << 16);
};

constexpr OpClass kAlu = OpClass::kSalu;
constexpr uint32_t kW = kWritesScc, kRW = kReadsScc | kWritesScc;
constexpr std::array<uint8_t, 3> k11 = {1, 1, 0}, k22 = {2, 2, 0}, k21 = {2, 1, 0}, k10 = {1, 0, 0};

// SOPK: the immediate is the second operand. Compares extend it as their type says.
template <class T, auto kFn>
void CompareImmediate(Wave& wave, const Instruction& instruction) {
  const T a = ReadScalar<T>(wave, instruction.src[0]);
  const T b = std::is_signed_v<T> ? static_cast<T>(instruction.simm16)
                                  : static_cast<T>(static_cast<uint16_t>(instruction.simm16));
  wave.scc = kFn(a, b);
}
void MoveImmediate(Wave& wave, const Instruction& instruction) {
  WriteScalar32(wave, instruction.dst, static_cast<u32>(instruction.simm16));
}
void MoveImmediateIfScc(Wave& wave, const Instruction& instruction) {
  if (wave.scc) MoveImmediate(wave, instruction);
}
void AddImmediate(Wave& wave, const Instruction& instruction) {
  const i32 a = ReadScalar<i32>(wave, instruction.dst);
  WriteScalar32(wave, instruction.dst,
                static_cast<u32>(kAddSigned(a, instruction.simm16, wave.scc)));
}
void MultiplyImmediate(Wave& wave, const Instruction& instruction) {
  WriteScalar32(wave, instruction.dst,
                ReadScalar<u32>(wave, instruction.dst) * static_cast<u32>(instruction.simm16));
}

template <class T>
constexpr auto kEq = [](T a, T b) { return a == b; };
template <class T>
constexpr auto kNe = [](T a, T b) { return a != b; };
template <class T>
constexpr auto kGt = [](T a, T b) { return a > b; };
template <class T>
constexpr auto kGe = [](T a, T b) { return a >= b; };
template <class T>
constexpr auto kLt = [](T a, T b) { return a < b; };
template <class T>
constexpr auto kLe = [](T a, T b) { return a <= b; };
template <class T, bool kValue>
constexpr auto kTestBit = [](T a, u32 b) { return ((a >> (b & kShiftMask<T>)) & 1) == kValue; };

#define BITWISE(number950, number1201, op, name1201, expression)                              \
  {kSop2,                                                                                     \
   number950,                                                                                 \
   number1201,                                                                                \
   "s_" op "_b32",                                                                            \
   name1201 "_b32",                                                                           \
   kAlu,                                                                                      \
   kSame<u32, Scc::kNonZero, [](u32 a, u32 b) -> u32 { return expression; }>,                 \
   1,                                                                                         \
   k11,                                                                                       \
   kW},                                                                                       \
  {                                                                                           \
    kSop2, number950 + 1, number1201 + 1, "s_" op "_b64", name1201 "_b64", kAlu,              \
        kSame<u64, Scc::kNonZero, [](u64 a, u64 b) -> u64 { return expression; }>, 2, k22, kW \
  }

#define COMPARE(number, name, T, fn) \
  {kSopc, number, number, "s_cmp_" name, nullptr, kAlu, ScalarCompare<T, T, fn<T>>, 0, k11, kW}
#define COMPARE_IMMEDIATE(number, name, T, fn) \
  {kSopk, number, kAbsent, "s_cmpk_" name, nullptr, kAlu, CompareImmediate<T, fn<T>>, 0, k10, kW}

constexpr ScalarOp kOps[] = {
    {kSop2, 0, 0, "s_add_u32", "s_add_co_u32", kAlu, kSame<u32, Scc::kOwn, kAddCarry>, 1, k11, kW},
    {kSop2, 1, 1, "s_sub_u32", "s_sub_co_u32", kAlu, kSame<u32, Scc::kOwn, kSubBorrow>, 1, k11, kW},
    {kSop2, 2, 2, "s_add_i32", "s_add_co_i32", kAlu, kSame<i32, Scc::kOwn, kAddSigned>, 1, k11, kW},
    {kSop2, 3, 3, "s_sub_i32", "s_sub_co_i32", kAlu, kSame<i32, Scc::kOwn, kSubSigned>, 1, k11, kW},
    {kSop2, 4, 4, "s_addc_u32", "s_add_co_ci_u32", kAlu, kSame<u32, Scc::kOwn, kAddWithCarry>, 1,
     k11, kRW},
    {kSop2, 5, 5, "s_subb_u32", "s_sub_co_ci_u32", kAlu, kSame<u32, Scc::kOwn, kSubWithBorrow>, 1,
     k11, kRW},
    {kSop2, 6, 18, "s_min_i32", nullptr, kAlu, kSame<i32, Scc::kOwn, kMin<i32>>, 1, k11, kW},
    {kSop2, 7, 19, "s_min_u32", nullptr, kAlu, kSame<u32, Scc::kOwn, kMin<u32>>, 1, k11, kW},
    {kSop2, 8, 20, "s_max_i32", nullptr, kAlu, kSame<i32, Scc::kOwn, kMax<i32>>, 1, k11, kW},
    {kSop2, 9, 21, "s_max_u32", nullptr, kAlu, kSame<u32, Scc::kOwn, kMax<u32>>, 1, k11, kW},
    {kSop2, 10, 48, "s_cselect_b32", nullptr, kAlu, kSame<u32, Scc::kOwn, kSelect<u32>>, 1, k11,
     kReadsScc},
    {kSop2, 11, 49, "s_cselect_b64", nullptr, kAlu, kSame<u64, Scc::kOwn, kSelect<u64>>, 2, k22,
     kReadsScc},
    BITWISE(12, 22, "and", "s_and", a& b),
    BITWISE(14, 24, "or", "s_or", a | b),
    BITWISE(16, 26, "xor", "s_xor", a ^ b),
    BITWISE(18, 34, "andn2", "s_and_not1", a & ~b),
    BITWISE(20, 36, "orn2", "s_or_not1", a | ~b),
    BITWISE(22, 28, "nand", "s_nand", ~(a& b)),
    BITWISE(24, 30, "nor", "s_nor", ~(a | b)),
    BITWISE(26, 32, "xnor", "s_xnor", ~(a ^ b)),
    {kSop2, 28, 8, "s_lshl_b32", nullptr, kAlu,
     kShift<u32, [](u32 a, u32 b) { return a << (b & 31); }>, 1, k11, kW},
    {kSop2, 29, 9, "s_lshl_b64", nullptr, kAlu,
     kShift<u64, [](u64 a, u32 b) { return a << (b & 63); }>, 2, k21, kW},
    {kSop2, 30, 10, "s_lshr_b32", nullptr, kAlu,
     kShift<u32, [](u32 a, u32 b) { return (a >> (b & 31)); }>, 1, k11, kW},
    {kSop2, 31, 11, "s_lshr_b64", nullptr, kAlu,
     kShift<u64, [](u64 a, u32 b) { return (a >> (b & 63)); }>, 2, k21, kW},
    {kSop2, 32, 12, "s_ashr_i32", nullptr, kAlu,
     kShift<i32, [](i32 a, u32 b) { return (a >> (b & 31)); }>, 1, k11, kW},
    {kSop2, 33, 13, "s_ashr_i64", nullptr, kAlu,
     kShift<i64, [](i64 a, u32 b) { return (a >> (b & 63)); }>, 2, k21, kW},
    {kSop2, 34, 42, "s_bfm_b32", nullptr, kAlu,
     ScalarBinary<u32, u32, u32, Scc::kKeep, kFieldMask<u32>>, 1, k11, 0},
    {kSop2, 35, 43, "s_bfm_b64", nullptr, kAlu,
     ScalarBinary<u64, u32, u32, Scc::kKeep, kFieldMask<u64>>, 2, k11, 0},
    {kSop2, 36, 44, "s_mul_i32", nullptr, kAlu,
     kSame<u32, Scc::kKeep, [](u32 a, u32 b) { return a * b; }>, 1, k11, 0},
    {kSop2, 37, 38, "s_bfe_u32", nullptr, kAlu, kShift<u32, kExtractUnsigned<u32>>, 1, k11, kW},
    {kSop2, 38, 39, "s_bfe_i32", nullptr, kAlu, kShift<i32, kExtractSigned<i32, u32>>, 1, k11, kW},
    {kSop2, 39, 40, "s_bfe_u64", nullptr, kAlu, kShift<u64, kExtractUnsigned<u64>>, 2, k21, kW},
    {kSop2, 40, 41, "s_bfe_i64", nullptr, kAlu, kShift<i64, kExtractSigned<i64, u64>>, 2, k21, kW},
    {kSop2, 42, 6, "s_absdiff_i32", nullptr, kAlu,
     kSame<u32, Scc::kNonZero,
           [](u32 a, u32 b) {
             const u32 difference = a - b;
             return (difference >> 31) != 0 ? 0 - difference : difference;
           }>,
     1, k11, kW},
    {kSop2, 44, 45, "s_mul_hi_u32", nullptr, kAlu,
     kSame<u32, Scc::kKeep,
           [](u32 a, u32 b) { return static_cast<u32>((u64{a} * b) / (u64{1} << 32)); }>,
     1, k11, 0},
    {kSop2, 45, 46, "s_mul_hi_i32", nullptr, kAlu,
     kSame<i32, Scc::kKeep, [](i32 a, i32 b) { return static_cast<i32>(((i64{a} * b) >> 32)); }>, 1,
     k11, 0},
    {kSop2, 46, 14, "s_lshl1_add_u32", nullptr, kAlu, kSame<u32, Scc::kOwn, kShiftAdd<1>>, 1, k11,
     kW},
    {kSop2, 47, 15, "s_lshl2_add_u32", nullptr, kAlu, kSame<u32, Scc::kOwn, kShiftAdd<2>>, 1, k11,
     kW},
    {kSop2, 48, 16, "s_lshl3_add_u32", nullptr, kAlu, kSame<u32, Scc::kOwn, kShiftAdd<3>>, 1, k11,
     kW},
    {kSop2, 49, 17, "s_lshl4_add_u32", nullptr, kAlu, kSame<u32, Scc::kOwn, kShiftAdd<4>>, 1, k11,
     kW},
    {kSop2, 50, 50, "s_pack_ll_b32_b16", nullptr, kAlu, kSame<u32, Scc::kKeep, kPack<0, 0>>, 1, k11,
     0},
    {kSop2, 51, 51, "s_pack_lh_b32_b16", nullptr, kAlu, kSame<u32, Scc::kKeep, kPack<0, 1>>, 1, k11,
     0},
    {kSop2, 52, 52, "s_pack_hh_b32_b16", nullptr, kAlu, kSame<u32, Scc::kKeep, kPack<1, 1>>, 1, k11,
     0},
    {kSop2, kAbsent, 53, "s_pack_hl_b32_b16", nullptr, kAlu, kSame<u32, Scc::kKeep, kPack<1, 0>>, 1,
     k11, 0},
    {kSop2, kAbsent, 83, "s_add_nc_u64", nullptr, kAlu,
     kSame<u64, Scc::kKeep, [](u64 a, u64 b) { return a + b; }>, 2, k22, 0},
    {kSop2, kAbsent, 84, "s_sub_nc_u64", nullptr, kAlu,
     kSame<u64, Scc::kKeep, [](u64 a, u64 b) { return a - b; }>, 2, k22, 0},
    {kSop2, kAbsent, 85, "s_mul_u64", nullptr, kAlu,
     kSame<u64, Scc::kKeep, [](u64 a, u64 b) { return a * b; }>, 2, k22, 0},

    COMPARE(0, "eq_i32", i32, kEq),
    COMPARE(1, "lg_i32", i32, kNe),
    COMPARE(2, "gt_i32", i32, kGt),
    COMPARE(3, "ge_i32", i32, kGe),
    COMPARE(4, "lt_i32", i32, kLt),
    COMPARE(5, "le_i32", i32, kLe),
    COMPARE(6, "eq_u32", u32, kEq),
    COMPARE(7, "lg_u32", u32, kNe),
    COMPARE(8, "gt_u32", u32, kGt),
    COMPARE(9, "ge_u32", u32, kGe),
    COMPARE(10, "lt_u32", u32, kLt),
    COMPARE(11, "le_u32", u32, kLe),
    {kSopc, 12, 12, "s_bitcmp0_b32", nullptr, kAlu, ScalarCompare<u32, u32, kTestBit<u32, false>>,
     0, k11, kW},
    {kSopc, 13, 13, "s_bitcmp1_b32", nullptr, kAlu, ScalarCompare<u32, u32, kTestBit<u32, true>>, 0,
     k11, kW},
    {kSopc, 14, 14, "s_bitcmp0_b64", nullptr, kAlu, ScalarCompare<u64, u32, kTestBit<u64, false>>,
     0, k21, kW},
    {kSopc, 15, 15, "s_bitcmp1_b64", nullptr, kAlu, ScalarCompare<u64, u32, kTestBit<u64, true>>, 0,
     k21, kW},
    {kSopc, 18, 16, "s_cmp_eq_u64", nullptr, kAlu, ScalarCompare<u64, u64, kEq<u64>>, 0, k22, kW},
    {kSopc, 19, 17, "s_cmp_lg_u64", nullptr, kAlu, ScalarCompare<u64, u64, kNe<u64>>, 0, k22, kW},

    {kSopk, 0, 0, "s_movk_i32", nullptr, kAlu, MoveImmediate, 1, {}, 0},
    {kSopk, 1, 2, "s_cmovk_i32", nullptr, kAlu, MoveImmediateIfScc, 1, {}, kReadsScc | kReadsDst},
    COMPARE_IMMEDIATE(2, "eq_i32", i32, kEq),
    COMPARE_IMMEDIATE(3, "lg_i32", i32, kNe),
    COMPARE_IMMEDIATE(4, "gt_i32", i32, kGt),
    COMPARE_IMMEDIATE(5, "ge_i32", i32, kGe),
    COMPARE_IMMEDIATE(6, "lt_i32", i32, kLt),
    COMPARE_IMMEDIATE(7, "le_i32", i32, kLe),
    COMPARE_IMMEDIATE(8, "eq_u32", u32, kEq),
    COMPARE_IMMEDIATE(9, "lg_u32", u32, kNe),
    COMPARE_IMMEDIATE(10, "gt_u32", u32, kGt),
    COMPARE_IMMEDIATE(11, "ge_u32", u32, kGe),
    COMPARE_IMMEDIATE(12, "lt_u32", u32, kLt),
    COMPARE_IMMEDIATE(13, "le_u32", u32, kLe),
    {kSopk, 14, 15, "s_addk_i32", "s_addk_co_i32", kAlu, AddImmediate, 1, {}, kW | kReadsDst},
    {kSopk, 15, 16, "s_mulk_i32", nullptr, kAlu, MultiplyImmediate, 1, {}, kReadsDst},
};

}  // namespace

std::span<const ScalarOp> ScalarAluOps() { return kOps; }

}  // namespace jax_fa::emulator
