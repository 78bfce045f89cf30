// Lane functions of 32-bit integers and bit patterns: moves, sums with and without carry, shifts,
// fields, byte selection, counting.
#include "emulator/simd/level.h"
#include "emulator/simd/valu_rows.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

inline int32_t Signed24(uint32_t v) { return static_cast<int32_t>(v << 8) >> 8; }
inline uint32_t AsUnsigned(int32_t v) { return static_cast<uint32_t>(v); }

constexpr auto kAddSaturating = [](uint32_t a, uint32_t b) {
  const uint32_t sum = a + b;
  return sum < a ? ~0u : sum;
};
constexpr auto kSubSaturating = [](uint32_t a, uint32_t b) { return a < b ? 0u : a - b; };
constexpr auto kSubrevSaturating = [](uint32_t a, uint32_t b) { return b < a ? 0u : b - a; };
inline int32_t SaturateInt32(int64_t v) {
  return static_cast<int32_t>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}

inline uint32_t ReverseBits(uint32_t v) {
  v = ((v >> 1) & 0x55555555u) | ((v & 0x55555555u) << 1);
  v = ((v >> 2) & 0x33333333u) | ((v & 0x33333333u) << 2);
  v = ((v >> 4) & 0x0f0f0f0fu) | ((v & 0x0f0f0f0fu) << 4);
  v = ((v >> 8) & 0x00ff00ffu) | ((v & 0x00ff00ffu) << 8);
  return (v >> 16) | (v << 16);
}

// One byte of v_perm_b32. Selects 0..3 are bytes of b, 4..7 of a, 8..11 the sign of every second
// byte, 12 zero, above it 0xff.
inline uint32_t PermuteByte(uint32_t a, uint32_t b, uint32_t select) {
  const uint32_t word = (select & 4) != 0 ? a : b;
  const uint32_t byte = (word >> (8 * (select & 3))) & 0xff;
  const uint32_t sign_word = (select & 2) != 0 ? a : b;
  const uint32_t sign = ((sign_word >> ((select & 1) != 0 ? 31 : 15)) & 1) != 0 ? 0xffu : 0u;
  return select < 8 ? byte : select < 12 ? sign : select == 12 ? 0u : 0xffu;
}
inline uint32_t Permute(uint32_t a, uint32_t b, uint32_t selects) {
  return PermuteByte(a, b, selects & 0xff) | PermuteByte(a, b, (selects >> 8) & 0xff) << 8 |
         PermuteByte(a, b, (selects >> 16) & 0xff) << 16 | PermuteByte(a, b, selects >> 24) << 24;
}

inline uint32_t BitFieldUnsigned(uint32_t v, uint32_t offset, uint32_t width) {
  return (v >> (offset & 31)) & ((1u << (width & 31)) - 1);
}
inline int32_t BitFieldSigned(int32_t v, uint32_t offset, uint32_t width) {
  const uint32_t bits = width & 31;
  const uint32_t field = AsUnsigned(v >> (offset & 31)) & ((1u << bits) - 1);
  const uint32_t sign = bits == 0 ? 0 : 1u << (bits - 1);
  return static_cast<int32_t>((field ^ sign) - sign);
}
// -1 (no such bit) or its distance from the end.
inline uint32_t LeadingZeros(uint32_t v) {
  return v == 0 ? ~0u : static_cast<uint32_t>(std::countl_zero(v));
}
inline uint32_t LeadingSigns(int32_t v) { return LeadingZeros(AsUnsigned(v < 0 ? ~v : v)); }
inline uint32_t TrailingZeros(uint32_t v) {
  return v == 0 ? ~0u : static_cast<uint32_t>(std::countr_zero(v));
}
inline uint32_t PopulationCount(uint32_t v) {
  v = v - ((v >> 1) & 0x55555555u);
  v = (v & 0x33333333u) + ((v >> 2) & 0x33333333u);
  v = (v + (v >> 4)) & 0x0f0f0f0fu;
  return (v * 0x01010101u) >> 24;
}
inline uint32_t ByteDifferences(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    const int32_t x = static_cast<int32_t>((a >> (8 * i)) & 0xff);
    const int32_t y = static_cast<int32_t>((b >> (8 * i)) & 0xff);
    sum += AsUnsigned(x > y ? x - y : y - x);
  }
  return sum;
}

// Lanes below this one whose bit is set in the mask's low or high dword, added to source 1.
template <bool kHigh>
void MbcntRows(uint32_t* const* out, const uint32_t* const* in, int lanes) {
  const uint32_t* const mask = in[0];
  const uint32_t* const base = in[2];
  uint32_t* const result = out[0];
  for (int l = 0; l < lanes; ++l) {
    const uint64_t below = (uint64_t{1} << l) - 1;
    const uint32_t part = static_cast<uint32_t>(kHigh ? below >> 32 : below);
    result[l] = PopulationCount(mask[l] & part) + base[l];
  }
}
template <bool kHigh>
constexpr ValuOp kMbcnt = {.rows = &MbcntRows<kHigh>,
                           .clamped = nullptr,
                           .result = LaneType::kU32,
                           .sources = {LaneType::kU32, LaneType::kU32, LaneType::kNone},
                           .lane_bits = false,
                           .accumulates = false,
                           .ignores_mode = true,
                           .reads_vcc = false};

constexpr Opcode kValuIntRows[] = {
    Lanes<[](Bits32 v) { return v; }>("v_mov_b32"),
    Lanes<[](uint32_t v) { return v; }>("v_accvgpr_read_b32"),
    Lanes<[](uint32_t v) { return v; }>("v_accvgpr_write_b32"),
    Lanes<[](uint32_t v) { return v; }>("v_accvgpr_mov_b32"),
    With(Lanes<[](Bits32 a, Bits32 b, LaneBit c) { return c ? b : a; }>("v_cndmask_b32"),
         HazardClass::kReadMask),
    Lanes<[](uint32_t v) { return ~v; }>("v_not_b32"),
    Lanes<[](uint32_t v) { return ReverseBits(v); }>("v_bfrev_b32"),
    Lanes<[](uint32_t v) { return LeadingZeros(v); }>("v_ffbh_u32"),
    Lanes<[](int32_t v) { return LeadingSigns(v); }>("v_ffbh_i32"),
    Lanes<[](uint32_t v) { return TrailingZeros(v); }>("v_ffbl_b32"),
    Lanes<[](uint32_t a, uint32_t b) { return a & b; }>("v_and_b32"),
    Lanes<[](uint32_t a, uint32_t b) { return a | b; }>("v_or_b32"),
    Lanes<[](uint32_t a, uint32_t b) { return a ^ b; }>("v_xor_b32"),
    Lanes<[](uint32_t a, uint32_t b) { return ~(a ^ b); }>("v_xnor_b32"),
    Lanes<[](uint32_t a, uint32_t b) { return a + b; }, kAddSaturating>("v_add_u32"),
    Lanes<[](uint32_t a, uint32_t b) { return a - b; }, kSubSaturating>("v_sub_u32"),
    Lanes<[](uint32_t a, uint32_t b) { return b - a; }, kSubrevSaturating>("v_subrev_u32"),
    Lanes<[](int32_t a, int32_t b) { return static_cast<int32_t>(AsUnsigned(a) + AsUnsigned(b)); },
          [](int32_t a, int32_t b) { return SaturateInt32(int64_t{a} + b); }>("v_add_i32"),
    Lanes<[](int32_t a, int32_t b) { return static_cast<int32_t>(AsUnsigned(a) - AsUnsigned(b)); },
          [](int32_t a, int32_t b) { return SaturateInt32(int64_t{a} - b); }>("v_sub_i32"),
    Lanes<[](uint32_t a, uint32_t b) { return WithBit<uint32_t>{a + b, a + b < a}; }>(
        "v_add_co_u32"),
    Lanes<[](uint32_t a, uint32_t b) { return WithBit<uint32_t>{a - b, a < b}; }>("v_sub_co_u32"),
    Lanes<[](uint32_t a, uint32_t b) { return WithBit<uint32_t>{b - a, b < a}; }>(
        "v_subrev_co_u32"),
    With(Lanes<[](uint32_t a, uint32_t b, LaneBit c) {
           const uint32_t one = c.bits & 1;
           return WithBit<uint32_t>{a + b + one, a + b < a || a + b + one < one};
         }>("v_addc_co_u32"),
         HazardClass::kReadMask),
    With(Lanes<[](uint32_t a, uint32_t b, LaneBit c) {
           const uint32_t one = c.bits & 1;
           return WithBit<uint32_t>{a - b - one, a < b || a - b < one};
         }>("v_subb_co_u32"),
         HazardClass::kReadMask),
    With(Lanes<[](uint32_t a, uint32_t b, LaneBit c) {
           const uint32_t one = c.bits & 1;
           return WithBit<uint32_t>{b - a - one, b < a || b - a < one};
         }>("v_subbrev_co_u32"),
         HazardClass::kReadMask),
    Lanes<[](int32_t a, int32_t b) { return Smaller(a, b); }>("v_min_i32"),
    Lanes<[](int32_t a, int32_t b) { return Larger(a, b); }>("v_max_i32"),
    Lanes<[](uint32_t a, uint32_t b) { return Smaller(a, b); }>("v_min_u32"),
    Lanes<[](uint32_t a, uint32_t b) { return Larger(a, b); }>("v_max_u32"),
    Lanes<[](int32_t a, int32_t b, int32_t c) { return Smaller(Smaller(a, b), c); }>("v_min3_i32"),
    Lanes<[](int32_t a, int32_t b, int32_t c) { return Larger(Larger(a, b), c); }>("v_max3_i32"),
    Lanes<[](int32_t a, int32_t b, int32_t c) { return Middle(a, b, c); }>("v_med3_i32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return Smaller(Smaller(a, b), c); }>(
        "v_min3_u32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return Larger(Larger(a, b), c); }>("v_max3_u32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return Middle(a, b, c); }>("v_med3_u32"),
    Lanes<[](int32_t a, int32_t b, int32_t c) { return Smaller(Larger(a, b), c); }>("v_maxmin_i32"),
    Lanes<[](int32_t a, int32_t b, int32_t c) { return Larger(Smaller(a, b), c); }>("v_minmax_i32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return Smaller(Larger(a, b), c); }>(
        "v_maxmin_u32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return Larger(Smaller(a, b), c); }>(
        "v_minmax_u32"),
    Lanes<[](uint32_t a, uint32_t b) { return b << (a & 31); }>("v_lshlrev_b32"),
    Lanes<[](uint32_t a, uint32_t b) { return (b >> (a & 31)); }>("v_lshrrev_b32"),
    Lanes<[](uint32_t a, int32_t b) { return (b >> (a & 31)); }>("v_ashrrev_i32"),
    Lanes<[](uint32_t a, uint32_t b) { return AsUnsigned(Signed24(a)) * AsUnsigned(Signed24(b)); }>(
        "v_mul_i32_i24"),
    With(Lanes<[](uint32_t a, uint32_t b) {
           return static_cast<int32_t>((int64_t{Signed24(a)} * Signed24(b)) >> 32);
         }>("v_mul_hi_i32_i24"),
         TimingClass::kQuarterRate),
    Lanes<[](uint32_t a, uint32_t b) { return (a & 0xffffff) * (b & 0xffffff); }>("v_mul_u32_u24"),
    With(Lanes<[](uint32_t a, uint32_t b) {
           return static_cast<uint32_t>((uint64_t{a & 0xffffff} * (b & 0xffffff)) >> 32);
         }>("v_mul_hi_u32_u24"),
         TimingClass::kQuarterRate),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) {
      return AsUnsigned(Signed24(a)) * AsUnsigned(Signed24(b)) + c;
    }>("v_mad_i32_i24"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return (a & 0xffffff) * (b & 0xffffff) + c; }>(
        "v_mad_u32_u24"),
    With(Lanes<[](uint32_t a, uint32_t b) { return a * b; }>("v_mul_lo_u32"),
         TimingClass::kQuarterRate),
    With(Lanes<[](uint32_t a, uint32_t b) {
           return static_cast<uint32_t>((uint64_t{a} * b) >> 32);
         }>("v_mul_hi_u32"),
         TimingClass::kQuarterRate),
    With(Lanes<[](int32_t a, int32_t b) { return static_cast<int32_t>((int64_t{a} * b) >> 32); }>(
             "v_mul_hi_i32"),
         TimingClass::kQuarterRate),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return BitFieldUnsigned(a, b, c); }>(
        "v_bfe_u32"),
    Lanes<[](int32_t a, uint32_t b, uint32_t c) { return BitFieldSigned(a, b, c); }>("v_bfe_i32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return (a & b) | (~a & c); }>("v_bfi_b32"),
    Lanes<[](uint32_t a, uint32_t b) { return ((1u << (a & 31)) - 1) << (b & 31); }>("v_bfm_b32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) {
      return static_cast<uint32_t>(((uint64_t{a} << 32) | b) >> (c & 31));
    }>("v_alignbit_b32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) {
      return static_cast<uint32_t>(((uint64_t{a} << 32) | b) >> (8 * (c & 3)));
    }>("v_alignbyte_b32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return Permute(a, b, c); }>("v_perm_b32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return (a << (b & 31)) + c; }>("v_lshl_add_u32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return (a + b) << (c & 31); }>("v_add_lshl_u32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return (a << (b & 31)) | c; }>("v_lshl_or_b32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return (a & b) | c; }>("v_and_or_b32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return a | b | c; }>("v_or3_b32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return a ^ b ^ c; }>("v_xor3_b32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return (a ^ b) + c; }>("v_xad_u32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return a + b + c; }>("v_add3_u32"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return ByteDifferences(a, b) + c; }>("v_sad_u8"),
    Lanes<[](uint32_t a, uint32_t b, uint32_t c) { return (a > b ? a - b : b - a) + c; }>(
        "v_sad_u32"),
    Lanes<[](uint32_t a, uint32_t b) { return PopulationCount(a) + b; }>("v_bcnt_u32_b32"),
    OpRow(kMbcnt<false>, &ExecOp<kMbcnt<false>>, "v_mbcnt_lo_u32_b32", OpClass::kValu, 0),
    OpRow(kMbcnt<true>, &ExecOp<kMbcnt<true>>, "v_mbcnt_hi_u32_b32", OpClass::kValu, 0),
};

}  // namespace

std::span<const Opcode> ValuIntRows() { return kValuIntRows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
