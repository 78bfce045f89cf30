// gfx1201: global memory through buffer resources, and the transposing load.
//
// A resource bounds what it reaches: an access is out of range when offset + size pass its bytes.
// Out-of-range loads give 0, stores are dropped. This is how the kernels zero-fill tails and never
// touch what lies past a length. The base is moved with 64-bit arithmetic, the offsets are 32-bit:
// one resource spans less than 2 GiB. The transposing load has no such check.
#ifndef JAX_FA_KERNELS_ARCH_GFX1201_GLOBAL_H_
#define JAX_FA_KERNELS_ARCH_GFX1201_GLOBAL_H_

#include "kernels/arch/common.h"
#include "kernels/arch/gfx1201/lane.h"
#include "kernels/device.h"

namespace jax_fa::arch {

using Buffer = __amdgpu_buffer_rsrc_t;

// An offset that is out of range of every resource.
inline constexpr u32 kOutOfRange = 0x80000000u;

JAX_FA_DEVICE Buffer make_buffer(const void* base, u32 bytes) {
  // 32-bit elements, range check of raw buffers (OOB_SELECT 3).
  constexpr int kRawDwords = 0x31014000;
  return __builtin_amdgcn_make_buffer_rsrc(const_cast<void*>(base), /*stride=*/0, bytes,
                                           kRawDwords);
}

JAX_FA_DEVICE Vector<u32, 4> load_16_bytes(Buffer buffer, u32 offset) {
  return __builtin_amdgcn_raw_buffer_load_b128(buffer, offset, 0, 0);
}
JAX_FA_DEVICE Vector<u32, 4> load_16_bytes(Buffer buffer, u32 offset, u32 scalar_offset) {
  return __builtin_amdgcn_raw_buffer_load_b128(buffer, offset, scalar_offset, 0);
}
// Stores what a lane has of one accumulator fragment: 8 elements, of 16 bits when rounded.
template <class Element>
JAX_FA_DEVICE void store_accumulator(Vector<Element, 8> data, Buffer buffer, u32 offset) {
  using Dwords = Vector<u32, 4>;
  __builtin_amdgcn_raw_buffer_store_b128(__builtin_bit_cast(Dwords, data), buffer, offset, 0, 0);
}
JAX_FA_DEVICE void store_accumulator(Vector<float, 8> data, Buffer buffer, u32 offset) {
  const Vector<float, 4> low = data.lo, high = data.hi;
  const auto store = [&](Vector<float, 4> half, u32 at) {
    __builtin_amdgcn_raw_buffer_store_b128(__builtin_bit_cast(Vector<u32, 4>, half), buffer, at, 0,
                                           0);
  };
  store(low, offset);
  store(high, offset + 16);
}
JAX_FA_DEVICE void store_4_bytes(u32 data, Buffer buffer, u32 offset) {
  __builtin_amdgcn_raw_buffer_store_b32(data, buffer, offset, 0, 0);
}

// Transposes, in every eight lanes, the 8 x 8 matrix of 16-bit elements of which each lane
// addresses a row: lane l receives element l%8 of the rows of lanes 8(l/8) .. +7. All lanes must be
// active. `base` and `constant` are the same for all lanes.
JAX_FA_DEVICE Vector<u32, 4> load_transposed(const char* base, u32 offset, u32 constant) {
  using Storage = Vector<short, 8>;
  const auto* address = (const JAX_FA_IN_GLOBAL char*)base + offset + constant;
  using Dwords = Vector<u32, 4>;
  return __builtin_bit_cast(
      Dwords, __builtin_amdgcn_global_load_tr_b128_v8i16((JAX_FA_IN_GLOBAL Storage*)address));
}

// Loads 16 bytes without a range check; `base` and `constant` are the same for all lanes.
JAX_FA_DEVICE Vector<u32, 4> load_16_bytes(const char* base, u32 offset, u32 constant) {
  const auto* address = (const JAX_FA_IN_GLOBAL char*)base + offset + constant;
  return *(const JAX_FA_IN_GLOBAL Vector<u32, 4>*)address;
}
// These load from an address of the lane's own, without a range check.
JAX_FA_DEVICE Vector<u32, 4> load_16_bytes(const char* address) {
  return *(const JAX_FA_IN_GLOBAL Vector<u32, 4>*)address;
}
JAX_FA_DEVICE Vector<u32, 4> load_transposed(const char* address) {
  using Storage = Vector<short, 8>;
  using Dwords = Vector<u32, 4>;
  return __builtin_bit_cast(
      Dwords, __builtin_amdgcn_global_load_tr_b128_v8i16((JAX_FA_IN_GLOBAL Storage*)address));
}

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX1201_GLOBAL_H_
