// Conversions between number formats.
#include "emulator/simd/level.h"
#include "emulator/simd/math.h"
#include "emulator/simd/narrow.h"
#include "emulator/simd/valu_rows.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

template <class Narrow>
inline uint64_t PairOfFloats(uint32_t v) {
  const uint64_t high = AsBits(Narrow::Value(v >> 8 & 0xff));
  return AsBits(Narrow::Value(v & 0xff)) | high << 32;
}
inline uint16_t ToUint16(float v) {
  const float bounded = v > 65535.0f ? 65535.0f : v > 0 ? v : 0.0f;
  return static_cast<uint16_t>(static_cast<int32_t>(bounded));
}
inline int16_t ToInt16(float v) {
  const float bounded = v > 32767.0f ? 32767.0f : v < -32768.0f ? -32768.0f : v == v ? v : 0.0f;
  return static_cast<int16_t>(static_cast<int32_t>(bounded));
}
// [-1, 1] to the whole range of the integer, to nearest.
inline uint32_t SignedNorm(float v) {
  const float bounded = v > 1.0f ? 1.0f : v < -1.0f ? -1.0f : v == v ? v : 0.0f;
  return static_cast<uint32_t>(static_cast<int32_t>(RoundEven(bounded * 32767.0f)));
}
inline uint32_t UnsignedNorm(float v) {
  const float bounded = v > 1.0f ? 1.0f : v > 0.0f ? v : 0.0f;
  return static_cast<uint32_t>(static_cast<int32_t>(RoundEven(bounded * 65535.0f)));
}
inline uint32_t ClampTo(int32_t v, int32_t low, int32_t high) {
  return static_cast<uint32_t>(v < low ? low : v > high ? high : v);
}
inline float Nibble(uint32_t v) {
  // A signed 4-bit number in sixteenths.
  const int32_t value = static_cast<int32_t>(v << 28) >> 28;
  return static_cast<float>(value) * 0.0625f;
}
inline float ByteOf(uint32_t v, int byte) {
  return static_cast<float>(static_cast<int32_t>((v >> (8 * byte)) & 0xff));
}
inline uint32_t InsertByte(float v, uint32_t byte, uint32_t into) {
  const float bounded = v > 255.0f ? 255.0f : v > 0.0f ? v : 0.0f;
  const uint32_t value = static_cast<uint32_t>(static_cast<int32_t>(bounded));
  const uint32_t shift = 8 * (byte & 3);
  return (into & ~(0xffu << shift)) | (value << shift);
}

// Scales of v_cvt_scalef32_*: 2 to the exponent of a float32, of which nothing else counts.
inline float PowerOfTwo(float scale) {
  const uint32_t exponent = (AsBits(scale) >> 23) & 255;
  return AsFloat(exponent == 255 ? 0x7fc00000u : exponent == 0 ? 1u << 22 : exponent << 23);
}
template <class Narrow>
inline float ScaledByte(uint16_t pair, int byte, float scale) {
  return Narrow::Value((uint32_t{pair} >> (8 * byte)) & 0xff) * PowerOfTwo(scale);
}
template <class Narrow>
inline uint32_t ScaledBfloats(uint16_t pair, float scale) {
  return ToBfloat(ScaledByte<Narrow>(pair, 0, scale)) | ToBfloat(ScaledByte<Narrow>(pair, 1, scale))
                                                            << 16;
}
template <class Narrow>
inline uint32_t ScaledHalves(uint16_t pair, float scale) {
  return Pair(ToHalf(ScaledByte<Narrow>(pair, 0, scale)),
              ToHalf(ScaledByte<Narrow>(pair, 1, scale)));
}

// To e2m1, which has neither infinity nor NaN: what is too large becomes the largest.
inline uint32_t ToFp4(float value) {
  constexpr uint32_t kLargest = 7;
  const uint32_t magnitude = NarrowMagnitude<1, Fp4::kBias>(value);
  return (AsBits(value) >> 31) << 3 | (magnitude > kLargest ? kLargest : magnitude);
}
// Two floats, divided by a scale, to the byte of the destination that op_sel[3:2] picks.
void ExecPackFp4(Wave& wave, const Instruction& instruction) {
  const Modifiers& mod = instruction.mod;
  if ((mod.neg | mod.abs | mod.omod | (mod.op_sel & 3)) != 0 || mod.clamp) {
    Fail(wave, instruction, "modifiers of a conversion to floats of 4 bits");
  }
  uint32_t scratch[3][kLaneStride];
  const uint32_t* in[3];
  for (size_t i = 0; i < 3; ++i) in[i] = SourceRow(wave, instruction.src[i], 0, scratch[i]);
  const int shift = 8 * (mod.op_sel >> 2);
  uint32_t* const out = wave.Row(instruction.dst.index);
  for (uint64_t lanes = wave.exec; lanes != 0; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    const float scale = PowerOfTwo(AsFloat(in[2][l]));
    const uint32_t byte = ToFp4(AsFloat(in[0][l]) / scale) | ToFp4(AsFloat(in[1][l]) / scale) << 4;
    out[l] = (out[l] & ~(0xffu << shift)) | byte << shift;
  }
}
constexpr Opcode PackFp4(const char* mnemonic) {
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kValu;
  row.exec = &ExecPackFp4;
  row.dst_dwords = 1;
  row.src_dwords = {1, 1, 1};
  return row;
}

constexpr Opcode kValuConvertRows[] = {
    Lanes<[](int32_t v) { return static_cast<float>(v); }>("v_cvt_f32_i32"),
    Lanes<[](uint32_t v) { return static_cast<float>(v); }>("v_cvt_f32_u32"),
    Lanes<[](float v) { return ToInt32(v); }, kNoClamp, kIgnoresMode>("v_cvt_i32_f32"),
    Lanes<[](float v) { return ToUint32(v); }, kNoClamp, kIgnoresMode>("v_cvt_u32_f32"),
    Lanes<[](float v) { return ToInt32(Floor(v + 0.5f)); }, kNoClamp, kIgnoresMode>(
        "v_cvt_rpi_i32_f32"),
    Lanes<[](float v) { return ToInt32(Floor(v)); }, kNoClamp, kIgnoresMode>("v_cvt_flr_i32_f32"),
    Lanes<[](uint32_t v) { return Nibble(v); }>("v_cvt_off_f32_i4"),
    Lanes<[](uint32_t v) { return ByteOf(v, 0); }>("v_cvt_f32_ubyte0"),
    Lanes<[](uint32_t v) { return ByteOf(v, 1); }>("v_cvt_f32_ubyte1"),
    Lanes<[](uint32_t v) { return ByteOf(v, 2); }>("v_cvt_f32_ubyte2"),
    Lanes<[](uint32_t v) { return ByteOf(v, 3); }>("v_cvt_f32_ubyte3"),
    // Half precision and bfloat16.
    Lanes<[](float v) { return ToHalf(v); }>("v_cvt_f16_f32"),
    Lanes<[](Half v) { return ToFloat(v); }>("v_cvt_f32_f16"),
    Lanes<[](uint16_t v) { return FromBfloat(v); }>("v_cvt_f32_bf16"),
    Lanes<[](uint16_t v) { return ToHalf(static_cast<float>(static_cast<int32_t>(v))); }>(
        "v_cvt_f16_u16"),
    Lanes<[](int16_t v) { return ToHalf(static_cast<float>(static_cast<int32_t>(v))); }>(
        "v_cvt_f16_i16"),
    Lanes<[](Half v) { return ToUint16(ToFloat(v)); }, kNoClamp, kIgnoresMode>("v_cvt_u16_f16"),
    Lanes<[](Half v) { return ToInt16(ToFloat(v)); }, kNoClamp, kIgnoresMode>("v_cvt_i16_f16"),
    Lanes<[](Half v) { return static_cast<int16_t>(SignedNorm(ToFloat(v))); }>(
        "v_cvt_norm_i16_f16"),
    Lanes<[](Half v) { return static_cast<uint16_t>(UnsignedNorm(ToFloat(v))); }>(
        "v_cvt_norm_u16_f16"),
    Lanes<[](float a, float b) { return ToBfloat(a) | ToBfloat(b) << 16; }>("v_cvt_pk_bf16_f32"),
    Lanes<[](float a, float b) { return Pair(ToHalf(a), ToHalf(b)); }>("v_cvt_pk_f16_f32"),
    Lanes<[](float a, float b) { return Pair(ToHalfTowardZero(a), ToHalfTowardZero(b)); }, kNoClamp,
          kIgnoresMode>("v_cvt_pkrtz_f16_f32"),
    // Floats of 8 bits.
    Lanes<[](uint32_t v) { return Fp8::Value(v & 0xff); }>("v_cvt_f32_fp8"),
    Lanes<[](uint32_t v) { return Bf8::Value(v & 0xff); }>("v_cvt_f32_bf8"),
    Lanes<[](uint32_t v) { return PairOfFloats<Fp8>(v); }>("v_cvt_pk_f32_fp8"),
    Lanes<[](uint32_t v) { return PairOfFloats<Bf8>(v); }>("v_cvt_pk_f32_bf8"),
    Lanes<[](float a, float b) { return static_cast<uint16_t>(ToFp8(a) | ToFp8(b) << 8); },
          kNoClamp, kIgnoresMode>("v_cvt_pk_fp8_f32"),
    Lanes<[](float a, float b) { return static_cast<uint16_t>(ToBf8(a) | ToBf8(b) << 8); },
          kNoClamp, kIgnoresMode>("v_cvt_pk_bf8_f32"),
    Lanes<[](uint16_t v, float scale) { return ScaledBfloats<Fp8>(v, scale); }, kNoClamp,
          kIgnoresMode>("v_cvt_scalef32_pk_bf16_fp8"),
    Lanes<[](uint16_t v, float scale) { return ScaledBfloats<Bf8>(v, scale); }, kNoClamp,
          kIgnoresMode>("v_cvt_scalef32_pk_bf16_bf8"),
    Lanes<[](uint16_t v, float scale) { return ScaledHalves<Fp8>(v, scale); }, kNoClamp,
          kIgnoresMode>("v_cvt_scalef32_pk_f16_fp8"),
    Lanes<[](uint16_t v, float scale) { return ScaledHalves<Bf8>(v, scale); }, kNoClamp,
          kIgnoresMode>("v_cvt_scalef32_pk_f16_bf8"),
    PackFp4("v_cvt_scalef32_pk_fp4_f32"),
    Lanes<[](float a, float b) { return Pair(SignedNorm(a), SignedNorm(b)); }>(
        "v_cvt_pknorm_i16_f32"),
    Lanes<[](float a, float b) { return Pair(UnsignedNorm(a), UnsignedNorm(b)); }>(
        "v_cvt_pknorm_u16_f32"),
    Lanes<[](Half a, Half b) { return Pair(SignedNorm(ToFloat(a)), SignedNorm(ToFloat(b))); }>(
        "v_cvt_pknorm_i16_f16"),
    Lanes<[](Half a, Half b) { return Pair(UnsignedNorm(ToFloat(a)), UnsignedNorm(ToFloat(b))); }>(
        "v_cvt_pknorm_u16_f16"),
    Lanes<[](uint32_t a, uint32_t b) {
      return Pair(a > 0xffffu ? 0xffffu : a, b > 0xffffu ? 0xffffu : b);
    }>("v_cvt_pk_u16_u32"),
    Lanes<[](int32_t a, int32_t b) {
      return Pair(ClampTo(a, -32768, 32767), ClampTo(b, -32768, 32767));
    }>("v_cvt_pk_i16_i32"),
    Lanes<[](float v, uint32_t byte, uint32_t into) { return InsertByte(v, byte, into); }, kNoClamp,
          kIgnoresMode>("v_cvt_pk_u8_f32"),
    Lanes<[](uint32_t v) {
      const int32_t low = static_cast<int16_t>(v & 0xffffu);
      const int32_t high = static_cast<int16_t>(v >> 16);
      return ClampTo(low, 0, 255) | ClampTo(high, 0, 255) << 8;
    }>("v_sat_pk_u8_i16"),
    Lanes<[](Half a, Half b) { return Pair(a, b); }, kNoClamp, kIgnoresMode>("v_pack_b32_f16"),
    // Double precision.
    Lanes<[](double v) { return ToInt32(v); }, kNoClamp, kIgnoresMode>("v_cvt_i32_f64"),
    Lanes<[](double v) { return ToUint32(v); }, kNoClamp, kIgnoresMode>("v_cvt_u32_f64"),
    Lanes<[](int32_t v) { return static_cast<double>(v); }>("v_cvt_f64_i32"),
    Lanes<[](uint32_t v) { return static_cast<double>(v); }>("v_cvt_f64_u32"),
    Lanes<[](double v) { return static_cast<float>(v); }>("v_cvt_f32_f64"),
    Lanes<[](float v) { return static_cast<double>(v); }>("v_cvt_f64_f32"),
};

}  // namespace

std::span<const Opcode> ValuConvertRows() { return kValuConvertRows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
