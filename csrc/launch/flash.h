// Dense attention from raw pointers and sizes: chooses kernel and grid, fills the argument block.
#ifndef JAX_FA_LAUNCH_FLASH_H_
#define JAX_FA_LAUNCH_FLASH_H_

#include <cstddef>
#include <cstdint>

#include "launch/catalogue.h"
#include "runtime/runtime.h"

namespace jax_fa {

// Row-major operands. B batch, T query length, S key length, N query heads, K key/value heads, H.
struct FlashProblem {
  const void* query = nullptr;             // [B, T, N, H]
  const void* key = nullptr;               // [B, S, K, H]
  const void* value = nullptr;             // [B, S, K, H]
  const int32_t* query_lengths = nullptr;  // [B], or null: T
  const int32_t* key_lengths = nullptr;    // [B], or null: S
  void* out = nullptr;                     // [B, T, N, H]
  float* lse = nullptr;                    // [B, T, N], natural logarithm
  void* workspace = nullptr;
  size_t workspace_bytes = 0;

  DataType dtype = DataType::kBfloat16;
  int64_t batch = 0, seqlen_q = 0, seqlen_k = 0;
  int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0;

  float scale = 1;
  float soft_cap = 0;         // 0: none
  int64_t window_left = -1;   // keys before the diagonal; -1: open
  int64_t window_right = -1;  // keys after it; -1: open
  bool top_left = false;      // the diagonal is s = t rather than s = t + S_b - T_b
  int64_t num_splits = 1;     // at most this many; the workspace holds that many partial results
};

// Bytes of workspace with which `num_splits` splits can run.
int64_t FlashWorkspaceBytes(const FlashProblem& problem);

// Enqueues the work. Rows without a key come out as 0 with lse -inf, also where S == 0.
Status LaunchFlash(Runtime& runtime, Target target, const FlashProblem& problem);

}  // namespace jax_fa

#endif  // JAX_FA_LAUNCH_FLASH_H_
