// Dot products of short vectors within a register, added to a 32-bit accumulator.
//
// Floating point products are exact in single precision (bfloat16: unless they under- or overflow
// it); each is added by a fused multiply-add, the lower element first.
#include "emulator/simd/level.h"
#include "emulator/simd/math.h"
#include "emulator/simd/valu_rows.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

inline float HalfOf(uint32_t v, int i) {
  return ToFloat(Half{static_cast<uint16_t>(v >> (16 * i))});
}
inline float DotF16(uint32_t a, uint32_t b, float c) {
  return Fma(HalfOf(a, 1), HalfOf(b, 1), Fma(HalfOf(a, 0), HalfOf(b, 0), c));
}
inline float DotBf16(uint32_t a, uint32_t b, float c) {
  return Fma(AsFloat(a & 0xffff0000u), AsFloat(b & 0xffff0000u),
             Fma(AsFloat(a << 16), AsFloat(b << 16), c));
}
template <int kBits>
inline int32_t SignedField(uint32_t v, int i) {
  return static_cast<int32_t>(v << (32 - kBits * (i + 1))) >> (32 - kBits);
}
template <int kBits>
inline uint32_t DotSigned(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t sum = c;
  for (int i = 0; i < 32 / kBits; ++i) {
    sum += static_cast<uint32_t>(SignedField<kBits>(a, i) * SignedField<kBits>(b, i));
  }
  return sum;
}
template <int kBits>
inline uint32_t DotUnsigned(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t sum = c;
  for (int i = 0; i < 32 / kBits; ++i) {
    constexpr uint32_t kMask = (1u << kBits) - 1;
    sum += ((a >> (kBits * i)) & kMask) * ((b >> (kBits * i)) & kMask);
  }
  return sum;
}
using U = uint32_t;

constexpr auto kDotF16 = [](U a, U b, float c) { return DotF16(a, b, c); };
constexpr auto kDotBf16 = [](U a, U b, float c) { return DotBf16(a, b, c); };
constexpr auto kDotI16 = [](U a, U b, U c) { return DotSigned<16>(a, b, c); };
constexpr auto kDotI8 = [](U a, U b, U c) { return DotSigned<8>(a, b, c); };
constexpr auto kDotI4 = [](U a, U b, U c) { return DotSigned<4>(a, b, c); };

template <auto Fn, auto Clamped = kNoClamp, uint32_t kOptions = kPlain>
constexpr Opcode Dot(const char* mnemonic) {
  return With(Lanes<Fn, Clamped, kOptions>(mnemonic), HazardClass::kDot);
}

constexpr Opcode kValuDotRows[] = {
    Dot<kDotF16>("v_dot2_f32_f16"),
    Dot<kDotF16, kNoClamp, kAccumulates>("v_dot2c_f32_f16"),
    Dot<kDotBf16>("v_dot2_f32_bf16"),
    Dot<kDotBf16, kNoClamp, kAccumulates>("v_dot2c_f32_bf16"),
    Dot<kDotI16>("v_dot2_i32_i16"),
    Dot<kDotI16, kNoClamp, kAccumulates>("v_dot2c_i32_i16"),
    Dot<[](U a, U b, U c) { return DotUnsigned<16>(a, b, c); }>("v_dot2_u32_u16"),
    Dot<kDotI8>("v_dot4_i32_i8"),
    Dot<kDotI8, kNoClamp, kAccumulates>("v_dot4c_i32_i8"),
    Dot<[](U a, U b, U c) { return DotUnsigned<8>(a, b, c); }>("v_dot4_u32_u8"),
    Dot<kDotI4>("v_dot8_i32_i4"),
    Dot<kDotI4, kNoClamp, kAccumulates>("v_dot8c_i32_i4"),
    Dot<[](U a, U b, U c) { return DotUnsigned<4>(a, b, c); }>("v_dot8_u32_u4"),
};

}  // namespace

std::span<const Opcode> ValuDotRows() { return kValuDotRows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
