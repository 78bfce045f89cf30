// The main loops of the target that is compiled for: the same names in every mainloop/<target>/.
//
//   tiles.h          flash_tile(H), decode_tile(H), wide_decode_tile(H): the tile numbers chosen
//   for
//                    the chip, all zero where it has none; and their waves_per_simd(H)
//   buffered_keys.h  how the rows of DenseKeys and FarPageKeys reach the matrix core,
//   near_keys.h      those of NearPageKeys, NearTwoPageKeys and NearRowKeys,
//   far_row_keys.h   and those of FarRowKeys (attention/paged_keys.h says what these are)
//   mainloop.h       Mainloop<Config, Keys> and, before the first of them, stage_query; whether
//                    there are wide decode kernels; OwnBody<Config> of those that have one
// Files that only one target has are included by its own.
#ifndef JAX_FA_KERNELS_MAINLOOP_MAINLOOP_H_
#define JAX_FA_KERNELS_MAINLOOP_MAINLOOP_H_

#include "kernels/target.h"

#include JAX_FA_TARGET_HEADER(mainloop, mainloop.h)

#ifndef JAX_FA_HAS_WIDE_DECODE
#error "mainloop/<target>/mainloop.h must define JAX_FA_HAS_WIDE_DECODE, 0 or 1"
#endif

#endif  // JAX_FA_KERNELS_MAINLOOP_MAINLOOP_H_
