// The device vocabulary of the chip being compiled for: the same names in every arch/<target>/.
//
// Shared code (tile/, attention/) sees a chip only through these names of jax_fa::arch:
//   limits.h  kWaveSize, kMaxLdsBytes, kDies; flash_tile(H) and decode_tile(H), the tile numbers
//             chosen for the chip, and their waves_per_simd; gfx1201: wide_decode_tile(H) too
//   ../common.h  (one for all) workgroup_id, workgroup_lane; uniform, opaque, opaque_uniform,
//             read_lane; maximum, maximum3 (a NaN operand is the result); exp2, log2, reciprocal;
//             load_4_bytes (a lane's own address), load_uniform, reload_params
//   lane.h    wave_id, lane_id; any_lane, count_lanes; row_maximum
//   wait.h    fence_schedule, share_lds (other waits and barriers are between a chip's own headers)
//   global.h  Buffer, make_buffer, kOutOfRange; load_16_bytes, store_4_bytes, store_accumulator
//   matrix.h  kFragmentDim, kFragmentDepth, kAccumulatorRows, kOperandElements, kScoresPerOperand;
//             Operand, Accumulator; fragment_column, operand_depth, accumulator_row; multiply_add,
//             pack_probabilities and kPackingLossLog2, RowSums
//   lds.h     nothing: how K and V reach the matrix core is between it and mainloop.h
// What they assume of every chip: a lane's column of a fragment is one query row; in an operand it
// holds consecutive depths from operand_depth(), in an accumulator consecutive rows from
// accumulator_row(), and kScoresPerOperand score accumulators pack into one P operand as they are.
// arch/<target>/mainloop.h is included by attention/forward.h only: Mainloop<Config, Keys> and,
// before the first of them, stage_query.
#ifndef JAX_FA_KERNELS_ARCH_ARCH_H_
#define JAX_FA_KERNELS_ARCH_ARCH_H_

#if defined(__gfx950__)
#include "kernels/arch/gfx950/global.h"
#include "kernels/arch/gfx950/lane.h"
#include "kernels/arch/gfx950/lds.h"
#include "kernels/arch/gfx950/limits.h"
#include "kernels/arch/gfx950/matrix.h"
#include "kernels/arch/gfx950/wait.h"
#elif defined(__gfx1201__)
#include "kernels/arch/gfx1201/global.h"
#include "kernels/arch/gfx1201/lane.h"
#include "kernels/arch/gfx1201/lds.h"
#include "kernels/arch/gfx1201/limits.h"
#include "kernels/arch/gfx1201/matrix.h"
#include "kernels/arch/gfx1201/wait.h"
#else
#error "device code is compiled for gfx950 or gfx1201"
#endif

#endif  // JAX_FA_KERNELS_ARCH_ARCH_H_
