// The argument blocks of kernels, from a problem.
#ifndef JAX_FA_LAUNCH_PARAMS_H_
#define JAX_FA_LAUNCH_PARAMS_H_

#include "kernels/params.h"
#include "launch/problem.h"

namespace jax_fa {

// What the kernels' 32-bit arithmetic cannot hold is refused. `tile` is of the kernel to be
// launched.
Status CheckLimits(const AttentionProblem& problem, const AttentionTile& tile);

AttentionParams MakeParams(const AttentionProblem& problem, int num_splits);

// How the grid of `params`, sequences of which are packed or not, goes to workgroups.
WorkGrid MakeWorkGrid(const AttentionParams& params, const AttentionTile& tile, bool packs_heads,
                      int dies);

// The sequences [first, first + count) of `params` alone, whose queries are not packed.
AttentionParams SelectSequences(const AttentionParams& params, int first, int count);

MergeParams MakeMergeParams(const AttentionProblem& problem, const AttentionParams& params);

}  // namespace jax_fa

#endif  // JAX_FA_LAUNCH_PARAMS_H_
