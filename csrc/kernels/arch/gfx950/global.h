// gfx950: global memory through buffer resources, and the copy from there to LDS.
//
// A resource bounds what it reaches: an access is out of range when offsets + size pass its bytes.
// Out-of-range loads and copies give 0, stores are dropped. This is how the kernels zero-fill tails
// and never touch what lies past a length. The base is moved with 64-bit arithmetic, the offsets
// are 32-bit: one resource spans less than 2 GiB.
#ifndef JAX_FA_KERNELS_ARCH_GFX950_GLOBAL_H_
#define JAX_FA_KERNELS_ARCH_GFX950_GLOBAL_H_

#include "kernels/arch/common.h"
#include "kernels/arch/gfx950/lane.h"
#include "kernels/device.h"

namespace jax_fa::arch {

using Buffer = __amdgpu_buffer_rsrc_t;

// An offset that is out of range of every resource, also after a scalar offset is added.
inline constexpr u32 kOutOfRange = 0x80000000u;

inline constexpr int kRawDwords = 0x00020000;  // the last word of a resource without a structure

JAX_FA_DEVICE Buffer make_buffer(const void* base, u32 bytes) {
  return __builtin_amdgcn_make_buffer_rsrc(const_cast<void*>(base), /*stride=*/0, bytes,
                                           kRawDwords);
}

JAX_FA_DEVICE Vector<u32, 4> load_16_bytes(Buffer buffer, u32 offset) {
  return __builtin_amdgcn_raw_buffer_load_b128(buffer, offset, 0, 0);
}
// Stores what a lane has of one accumulator fragment: 4 elements, of 16 bits when rounded.
template <class Element>
JAX_FA_DEVICE void store_accumulator(Vector<Element, 4> data, Buffer buffer, u32 offset) {
  __builtin_amdgcn_raw_buffer_store_b64(__builtin_bit_cast(Vector<u32, 2>, data), buffer, offset, 0,
                                        0);
}
JAX_FA_DEVICE void store_accumulator(Vector<float, 4> data, Buffer buffer, u32 offset) {
  __builtin_amdgcn_raw_buffer_store_b128(__builtin_bit_cast(Vector<u32, 4>, data), buffer, offset,
                                         0, 0);
}
JAX_FA_DEVICE void store_4_bytes(u32 data, Buffer buffer, u32 offset) {
  __builtin_amdgcn_raw_buffer_store_b32(data, buffer, offset, 0, 0);
}

// Lane l's 16 bytes at offset + scalar_offset go to LDS at lds_address + 16 l. One statement: clang
// does not see that M0 needs a wait state before its use, and the builtin form of the copy makes it
// wait for all copies at every later LDS read. M0 may not be named as clobbered; the compiler keeps
// nothing in it from one instruction to another.
JAX_FA_DEVICE void copy_16_bytes_to_lds(Buffer buffer, u32 lds_address, u32 offset,
                                        u32 scalar_offset) {
  asm volatile(
      "s_mov_b32 m0, %0\n\t"
      "s_nop 0\n\t"
      "buffer_load_dwordx4 %1, %2, %3 offen lds"
      :
      : "s"(lds_address), "v"(offset), "s"(buffer), "s"(scalar_offset)
      : "memory");
}

// A resource as its words, for schedules that move its base from tile to tile: offsets of lanes
// alone are then checked against its bytes, whether or not a chip counts the scalar offset too, and
// no operand is too large.
using BufferWords = Vector<u32, 4>;

JAX_FA_DEVICE BufferWords make_buffer_words(const void* base, u32 bytes) {
  const u64 address = reinterpret_cast<u64>(base);
  BufferWords words = {static_cast<u32>(address), static_cast<u32>(address >> 32) & 0xffff, bytes,
                       kRawDwords};
  asm volatile("" : "+s"(words));  // two resources would share words, with copies at every use
  return words;
}

JAX_FA_DEVICE u64 base_of(const BufferWords& buffer) {
  return static_cast<u64>(buffer[1]) << 32 | buffer[0];
}
JAX_FA_DEVICE void set_base(BufferWords& buffer, u64 base) {
  base = opaque_uniform(base);
  buffer[0] = static_cast<u32>(base);
  buffer[1] = static_cast<u32>(base >> 32);
}
// Moves the base on, where it is written: the addition lies between two statements that stay.
JAX_FA_DEVICE void move_base(BufferWords& buffer, u32 bytes) {
  set_base(buffer, opaque_uniform(base_of(buffer)) + bytes);
}
// Moves it to so many bytes past that of `from`, in the same way.
JAX_FA_DEVICE void move_base(BufferWords& buffer, BufferWords& from, u64 bytes) {
  set_base(from, base_of(from));
  set_base(buffer, base_of(from) + bytes);
}

// The copy of copy_16_bytes_to_lds(), to lds_address + kOffset.
template <u32 kOffset>
JAX_FA_DEVICE void copy_16_bytes_to_lds(BufferWords buffer, u32 lds_address, u32 offset) {
  asm volatile(
      "s_add_u32 m0, %0, %3\n\t"
      "s_nop 0\n\t"
      "buffer_load_dwordx4 %1, %2, 0 offen lds"
      :
      : "s"(lds_address), "v"(offset), "s"(buffer), "i"(kOffset)
      : "memory", "scc");
}

// Lane l's 16 bytes at an address of its own, without a range check, go to LDS at
// lds_address + 16 l.
JAX_FA_DEVICE void copy_16_bytes_to_lds(const char* address, u32 lds_address) {
  asm volatile(
      "s_mov_b32 m0, %0\n\t"
      "s_nop 0\n\t"
      "global_load_lds_dwordx4 %1, off"
      :
      : "s"(lds_address), "v"(address)
      : "memory");
}

// A scalar load under way, 0 past the buffer's bytes: its result is there after end_uniform_load(),
// and not to be touched before.
JAX_FA_DEVICE u32 begin_uniform_load(BufferWords buffer, u32 offset) {
  u32 value;
  asm volatile("s_buffer_load_dword %0, %1, %2" : "=s"(value) : "s"(buffer), "s"(offset));
  return value;
}
JAX_FA_DEVICE void end_uniform_load(u32& value) {
  asm volatile("s_waitcnt lgkmcnt(0)" : "+s"(value));
}

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX950_GLOBAL_H_
