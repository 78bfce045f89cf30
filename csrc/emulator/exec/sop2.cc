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

#define BITWISE(op, expression)                                                               \
  {kSop2, "s_" op "_b32",                                                                     \
   kAlu,  kSame<u32, Scc::kNonZero, [](u32 a, u32 b) -> u32 { return expression; }>,                             \
   1,     k11,                                                                                \
   kW},                                                                                       \
  {                                                                                           \
    kSop2, "s_" op "_b64", kAlu,                                                              \
        kSame<u64, Scc::kNonZero, [](u64 a, u64 b) -> u64 { return expression; }>, 2, k22, kW \
  }

#define COMPARE(name, T, fn) {kSopc, "s_cmp_" name, kAlu, ScalarCompare<T, T, fn<T>>, 0, k11, kW}
#define COMPARE_IMMEDIATE(name, T, fn) \
  {kSopk, "s_cmpk_" name, kAlu, CompareImmediate<T, fn<T>>, 0, k1, kW}

constexpr ScalarOp kScalarAluOps[] = {
    {kSop2, "s_add_u32", kAlu, kSame<u32, Scc::kOwn, kAddCarry>, 1, k11, kW},
    {kSop2, "s_sub_u32", kAlu, kSame<u32, Scc::kOwn, kSubBorrow>, 1, k11, kW},
    {kSop2, "s_add_i32", kAlu, kSame<i32, Scc::kOwn, kAddSigned>, 1, k11, kW},
    {kSop2, "s_sub_i32", kAlu, kSame<i32, Scc::kOwn, kSubSigned>, 1, k11, kW},
    {kSop2, "s_addc_u32", kAlu, kSame<u32, Scc::kOwn, kAddWithCarry>, 1, k11, kRW},
    {kSop2, "s_subb_u32", kAlu, kSame<u32, Scc::kOwn, kSubWithBorrow>, 1, k11, kRW},
    {kSop2, "s_min_i32", kAlu, kSame<i32, Scc::kOwn, kMin<i32>>, 1, k11, kW},
    {kSop2, "s_min_u32", kAlu, kSame<u32, Scc::kOwn, kMin<u32>>, 1, k11, kW},
    {kSop2, "s_max_i32", kAlu, kSame<i32, Scc::kOwn, kMax<i32>>, 1, k11, kW},
    {kSop2, "s_max_u32", kAlu, kSame<u32, Scc::kOwn, kMax<u32>>, 1, k11, kW},
    {kSop2, "s_cselect_b32", kAlu, kSame<u32, Scc::kOwn, kSelect<u32>>, 1, k11, kReadsScc},
    {kSop2, "s_cselect_b64", kAlu, kSame<u64, Scc::kOwn, kSelect<u64>>, 2, k22, kReadsScc},
    BITWISE("and", a& b),
    BITWISE("or", a | b),
    BITWISE("xor", a ^ b),
    BITWISE("andn2", a & ~b),
    BITWISE("orn2", a | ~b),
    BITWISE("nand", ~(a& b)),
    BITWISE("nor", ~(a | b)),
    BITWISE("xnor", ~(a ^ b)),
    {kSop2, "s_lshl_b32", kAlu, kShift<u32, [](u32 a, u32 b) { return a << (b & 31); }>, 1, k11,
     kW},
    {kSop2, "s_lshl_b64", kAlu, kShift<u64, [](u64 a, u32 b) { return a << (b & 63); }>, 2, k21,
     kW},
    {kSop2, "s_lshr_b32", kAlu, kShift<u32, [](u32 a, u32 b) { return (a >> (b & 31)); }>, 1, k11,
     kW},
    {kSop2, "s_lshr_b64", kAlu, kShift<u64, [](u64 a, u32 b) { return (a >> (b & 63)); }>, 2, k21,
     kW},
    {kSop2, "s_ashr_i32", kAlu, kShift<i32, [](i32 a, u32 b) { return (a >> (b & 31)); }>, 1, k11,
     kW},
    {kSop2, "s_ashr_i64", kAlu, kShift<i64, [](i64 a, u32 b) { return (a >> (b & 63)); }>, 2, k21,
     kW},
    {kSop2, "s_bfm_b32", kAlu, ScalarBinary<u32, u32, u32, Scc::kKeep, kFieldMask<u32>>, 1, k11, 0},
    {kSop2, "s_bfm_b64", kAlu, ScalarBinary<u64, u32, u32, Scc::kKeep, kFieldMask<u64>>, 2, k11, 0},
    {kSop2, "s_mul_i32", kAlu, kSame<u32, Scc::kKeep, [](u32 a, u32 b) { return a * b; }>, 1, k11,
     0},
    {kSop2, "s_bfe_u32", kAlu, kShift<u32, kExtractUnsigned<u32>>, 1, k11, kW},
    {kSop2, "s_bfe_i32", kAlu, kShift<i32, kExtractSigned<i32, u32>>, 1, k11, kW},
    {kSop2, "s_bfe_u64", kAlu, kShift<u64, kExtractUnsigned<u64>>, 2, k21, kW},
    {kSop2, "s_bfe_i64", kAlu, kShift<i64, kExtractSigned<i64, u64>>, 2, k21, kW},
    {kSop2, "s_absdiff_i32", kAlu,
     kSame<u32, Scc::kNonZero,
           [](u32 a, u32 b) {
             const u32 difference = a - b;
             return (difference >> 31) != 0 ? 0 - difference : difference;
           }>,
     1, k11, kW},
    {kSop2, "s_mul_hi_u32", kAlu,
     kSame<u32, Scc::kKeep,
           [](u32 a, u32 b) { return static_cast<u32>((u64{a} * b) / (u64{1} << 32)); }>,
     1, k11, 0},
    {kSop2, "s_mul_hi_i32", kAlu,
     kSame<i32, Scc::kKeep, [](i32 a, i32 b) { return static_cast<i32>(((i64{a} * b) >> 32)); }>, 1,
     k11, 0},
    {kSop2, "s_lshl1_add_u32", kAlu, kSame<u32, Scc::kOwn, kShiftAdd<1>>, 1, k11, kW},
    {kSop2, "s_lshl2_add_u32", kAlu, kSame<u32, Scc::kOwn, kShiftAdd<2>>, 1, k11, kW},
    {kSop2, "s_lshl3_add_u32", kAlu, kSame<u32, Scc::kOwn, kShiftAdd<3>>, 1, k11, kW},
    {kSop2, "s_lshl4_add_u32", kAlu, kSame<u32, Scc::kOwn, kShiftAdd<4>>, 1, k11, kW},
    {kSop2, "s_pack_ll_b32_b16", kAlu, kSame<u32, Scc::kKeep, kPack<0, 0>>, 1, k11, 0},
    {kSop2, "s_pack_lh_b32_b16", kAlu, kSame<u32, Scc::kKeep, kPack<0, 1>>, 1, k11, 0},
    {kSop2, "s_pack_hh_b32_b16", kAlu, kSame<u32, Scc::kKeep, kPack<1, 1>>, 1, k11, 0},
    {kSop2, "s_pack_hl_b32_b16", kAlu, kSame<u32, Scc::kKeep, kPack<1, 0>>, 1, k11, 0},
    {kSop2, "s_add_nc_u64", kAlu, kSame<u64, Scc::kKeep, [](u64 a, u64 b) { return a + b; }>, 2,
     k22, 0},
    {kSop2, "s_sub_nc_u64", kAlu, kSame<u64, Scc::kKeep, [](u64 a, u64 b) { return a - b; }>, 2,
     k22, 0},
    {kSop2, "s_mul_u64", kAlu, kSame<u64, Scc::kKeep, [](u64 a, u64 b) { return a * b; }>, 2, k22,
     0},

    COMPARE("eq_i32", i32, kEq),
    COMPARE("lg_i32", i32, kNe),
    COMPARE("gt_i32", i32, kGt),
    COMPARE("ge_i32", i32, kGe),
    COMPARE("lt_i32", i32, kLt),
    COMPARE("le_i32", i32, kLe),
    COMPARE("eq_u32", u32, kEq),
    COMPARE("lg_u32", u32, kNe),
    COMPARE("gt_u32", u32, kGt),
    COMPARE("ge_u32", u32, kGe),
    COMPARE("lt_u32", u32, kLt),
    COMPARE("le_u32", u32, kLe),
    {kSopc, "s_bitcmp0_b32", kAlu, ScalarCompare<u32, u32, kTestBit<u32, false>>, 0, k11, kW},
    {kSopc, "s_bitcmp1_b32", kAlu, ScalarCompare<u32, u32, kTestBit<u32, true>>, 0, k11, kW},
    {kSopc, "s_bitcmp0_b64", kAlu, ScalarCompare<u64, u32, kTestBit<u64, false>>, 0, k21, kW},
    {kSopc, "s_bitcmp1_b64", kAlu, ScalarCompare<u64, u32, kTestBit<u64, true>>, 0, k21, kW},
    {kSopc, "s_cmp_eq_u64", kAlu, ScalarCompare<u64, u64, kEq<u64>>, 0, k22, kW},
    {kSopc, "s_cmp_lg_u64", kAlu, ScalarCompare<u64, u64, kNe<u64>>, 0, k22, kW},

    {kSopk, "s_movk_i32", kAlu, MoveImmediate, 1, {}, 0},
    {kSopk, "s_cmovk_i32", kAlu, MoveImmediateIfScc, 1, {}, kReadsScc | kReadsDst},
    COMPARE_IMMEDIATE("eq_i32", i32, kEq),
    COMPARE_IMMEDIATE("lg_i32", i32, kNe),
    COMPARE_IMMEDIATE("gt_i32", i32, kGt),
    COMPARE_IMMEDIATE("ge_i32", i32, kGe),
    COMPARE_IMMEDIATE("lt_i32", i32, kLt),
    COMPARE_IMMEDIATE("le_i32", i32, kLe),
    COMPARE_IMMEDIATE("eq_u32", u32, kEq),
    COMPARE_IMMEDIATE("lg_u32", u32, kNe),
    COMPARE_IMMEDIATE("gt_u32", u32, kGt),
    COMPARE_IMMEDIATE("ge_u32", u32, kGe),
    COMPARE_IMMEDIATE("lt_u32", u32, kLt),
    COMPARE_IMMEDIATE("le_u32", u32, kLe),
    {kSopk, "s_addk_i32", kAlu, AddImmediate, 1, {}, kW | kReadsDst},
    {kSopk, "s_mulk_i32", kAlu, MultiplyImmediate, 1, {}, kReadsDst},
};

}  // namespace

std::span<const ScalarOp> ScalarAluOps() { return kScalarAluOps; }

}  // namespace jax_fa::emulator
