// The device vocabulary of the chip that is compiled for: the same names in every arch/<target>/.
//
// Shared code (tile/, attention/, mainloop/*.h) sees a chip only through these names: those of
// limits.h in jax_fa::target, all others in jax_fa::arch.
//   limits.h  kWaveSize, kMaxLdsBytes, kDies
//   ../common.h  (one for all) workgroup_id, workgroup_lane; uniform, opaque, opaque_uniform,
//             read_lane; maximum, maximum3 (a NaN operand is the result), maximum_number (it is
//             not); exp2, log2, reciprocal;
//             load_4_bytes (a lane's own address), load_uniform, reload_params
//   lane.h    wave_id, lane_id; any_lane, count_lanes; row_maximum
//   wait.h    fence_schedule, share_lds
//   global.h  Buffer, make_buffer, kOutOfRange; load_16_bytes, store_4_bytes, store_accumulator
//   matrix.h  kFragmentDim, kFragmentDepth, kAccumulatorRows, kOperandElements, kScoresPerOperand;
//             Operand, Accumulator; fragment_column, operand_depth, accumulator_row; multiply_add,
//             pack_probabilities and kPackingLossLog2, RowSums
// What else a chip's headers have (other waits, copies to LDS, transposing loads), only the
// schedules made for it use: mainloop/<target>/.
// Shared code assumes of every chip: a lane's column of a fragment is one query row; in an operand
// the lane holds consecutive depths from operand_depth(), in an accumulator consecutive rows from
// accumulator_row(), and kScoresPerOperand score accumulators pack into one P operand as they are.
#ifndef JAX_FA_KERNELS_ARCH_ARCH_H_
#define JAX_FA_KERNELS_ARCH_ARCH_H_

#include "kernels/target.h"

#include JAX_FA_TARGET_HEADER(arch, global.h)
#include JAX_FA_TARGET_HEADER(arch, lane.h)
#include JAX_FA_TARGET_HEADER(arch, limits.h)
#include JAX_FA_TARGET_HEADER(arch, matrix.h)
#include JAX_FA_TARGET_HEADER(arch, wait.h)

#endif  // JAX_FA_KERNELS_ARCH_ARCH_H_
