// Sums of two halves, or two bfloat16, in one dword, as packed atomics make them.
#include "emulator/exec/transfer.h"

// The helpers of the SIMD families, in a copy of their own: this file exists once.
#define JAX_FA_SIMD general
#include "emulator/simd/math.h"

namespace jax_fa::emulator {
namespace {

using namespace general;  // NOLINT: the copy above, private to this file

// Sums of numbers with 11 or 8 bits are rounded innocuously to single precision first.
uint32_t AddHalf(uint32_t a, uint32_t b) {
  const float sum =
      ToFloat(Half{static_cast<uint16_t>(a)}) + ToFloat(Half{static_cast<uint16_t>(b)});
  return ToHalf(sum).bits;
}
uint32_t AddBfloat(uint32_t a, uint32_t b) {
  const uint32_t bits = AsBits(AsFloat(a << 16) + AsFloat(b << 16));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;  // a quiet NaN
  return (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
}

}  // namespace

uint32_t AddHalves(uint32_t a, uint32_t b) {
  return AddHalf(a & 0xffff, b & 0xffff) | AddHalf(a >> 16, b >> 16) << 16;
}
uint32_t AddBfloats(uint32_t a, uint32_t b) {
  return AddBfloat(a & 0xffff, b & 0xffff) | AddBfloat(a >> 16, b >> 16) << 16;
}

}  // namespace jax_fa::emulator
