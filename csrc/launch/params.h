// The argument blocks of kernels, from a problem.
#ifndef JAX_FA_LAUNCH_PARAMS_H_
#define JAX_FA_LAUNCH_PARAMS_H_

#include "kernels/params.h"
#include "launch/problem.h"

namespace jax_fa {

// Refuses a problem that the kernels' 32-bit arithmetic cannot hold. `tile` is that of the kernel
// to be launched.
Status CheckLimits(const AttentionProblem& problem, const AttentionTile& tile);

AttentionParams MakeParams(const AttentionProblem& problem, int num_splits);

// How the workgroups of a launch divide the work, for packed sequences and others.
WorkGrid MakeWorkGrid(const AttentionParams& params, const AttentionTile& tile, bool packs_heads,
                      int dies);

// `params` for the sequences [first, first + count) alone; its queries are not packed.
AttentionParams SelectSequences(const AttentionParams& params, int first, int count);

MergeParams MakeMergeParams(const AttentionProblem& problem, const AttentionParams& params);

}  // namespace jax_fa

#endif  // JAX_FA_LAUNCH_PARAMS_H_
