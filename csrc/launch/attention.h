// Attention from raw pointers and sizes: chooses kernel, splits and grid, fills the argument block.
#ifndef JAX_FA_LAUNCH_ATTENTION_H_
#define JAX_FA_LAUNCH_ATTENTION_H_

#include "launch/problem.h"
#include "runtime/runtime.h"

namespace jax_fa {

// Enqueues the work. Rows without a key come out as 0 with lse -inf, also where S == 0.
Status LaunchAttention(Runtime& runtime, const Target& target, const AttentionProblem& problem);

}  // namespace jax_fa

#endif  // JAX_FA_LAUNCH_ATTENTION_H_
