// The argument blocks of kernels, from a problem.
#ifndef JAX_FA_LAUNCH_PARAMS_H_
#define JAX_FA_LAUNCH_PARAMS_H_

#include "kernels/params.h"
#include "launch/attention.h"

namespace jax_fa {

// Both types are two bytes wide.
inline constexpr int64_t kElementBytes = 2;

int64_t QueryRows(const AttentionProblem& problem);  // query rows x heads
int64_t QueryElems(const AttentionProblem& problem);
int64_t KeyElems(const AttentionProblem& problem);

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
