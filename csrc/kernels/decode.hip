// Attention forward for few query rows (decode, speculative decode), and for split keys: what
// flash.hip computes, with the work divided in another way.
//
// The query heads that share a key head are rows of one tile: row r of a sequence and key head is
// token r / G, head r % G of the group of G, so that K and V are read once for the whole group. The
// key tiles that a workgroup's rows see are divided evenly, in order, over num_splits workgroups.
// With more than one, each writes a float32 partial output and lse, which merge.hip puts together.
//
//   kernels        rows  waves  keys of a wave                LDS bytes, H = 64, 128, 256
//   gfx950          64    4     all of the workgroup's        33792, 67584, 67584: 2 stages of K, V
//   gfx1201         16    4     a quarter of the workgroup's  12672, 24960, 49536: combine.h
//   gfx1201, wide   64    4     all of the workgroup's        32768, 32768, 65536: 2 stages; with
//                                                             H = 256 the queries too
//
// On gfx950, and in wide kernels of gfx1201, the waves share the copying of K and V; those without
// rows do nothing else. Two workgroups fit a CU, but one wide one with H = 256. In the other
// kernels of gfx1201 the four waves, each with its loads under way, are put together at the end.
// Wide kernels are for sequences of more than 16 rows. Beyond what a tile holds, K and V are read
// once per tile. Main loops and register tables are those of mainloop/<target>/mainloop.h, with 16
// rows a wave, and for wide kernels mainloop/gfx1201/staged_mainloop.h.
#include "kernels/mainloop/forward.h"

namespace jax_fa {

#define JAX_FA_DECODE_KERNEL(name, dtype, tile, waves_per_simd, paged)                \
  extern "C" JAX_FA_GLOBAL                                                            \
      __attribute__((amdgpu_flat_work_group_size((tile).threads(), (tile).threads()), \
                     amdgpu_waves_per_eu(waves_per_simd, waves_per_simd))) void       \
      name(const AttentionParams params) {                                            \
    forward<DecodeConfig<dtype, tile, paged>>(params);                                \
  }

#define JAX_FA_DECODE(name, dtype, head_dim_tile, paged)                \
  JAX_FA_DECODE_KERNEL(name, dtype, target::decode_tile(head_dim_tile), \
                       target::decode_waves_per_simd(head_dim_tile), paged)
#if JAX_FA_HAS_WIDE_DECODE
#define JAX_FA_WIDE_DECODE(name, dtype, head_dim_tile, paged)                \
  JAX_FA_DECODE_KERNEL(name, dtype, target::wide_decode_tile(head_dim_tile), \
                       target::wide_decode_waves_per_simd(head_dim_tile), paged)
#endif
#include "kernels/variants.def"

}  // namespace jax_fa
