// Division by numbers that the launcher knows, which it turned into divisors (params.h).
#ifndef JAX_FA_KERNELS_ATTENTION_DIVISION_H_
#define JAX_FA_KERNELS_ATTENTION_DIVISION_H_

#include "kernels/device.h"
#include "kernels/params.h"

namespace jax_fa {

JAX_FA_DEVICE u32 divide(u32 dividend, const Divisor& divisor) {
  const u64 product = static_cast<u64>(dividend << 1) * divisor.magic;
  return static_cast<u32>(product >> 32) >> divisor.shift;
}

struct Quotient {
  u32 quotient, remainder;
};

// Quotient and remainder; `number` is what `divisor` was made of.
JAX_FA_DEVICE Quotient divide(u32 dividend, const Divisor& divisor, u32 number) {
  const u32 quotient = divide(dividend, divisor);
  return {quotient, dividend - quotient * number};
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_DIVISION_H_
