// Attention from raw pointers and sizes: chooses kernel, splits and grid, fills the argument block.
#ifndef JAX_FA_LAUNCH_ATTENTION_H_
#define JAX_FA_LAUNCH_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "launch/catalogue.h"
#include "runtime/runtime.h"

namespace jax_fa {

// Row-major operands. B batch, T query length, S key length, N query heads, K key/value heads, H.
// Queries are dense or packed; keys and values dense, packed or paged, independently.
struct AttentionProblem {
  const void* query = nullptr;             // [B, T, N, H]; packed: [T, N, H]
  const void* key = nullptr;               // [B, S, K, H]; packed: [S, K, H]; paged: see head_major
  const void* value = nullptr;             // as key
  const int32_t* query_lengths = nullptr;  // [B], or null: T
  const int32_t* key_lengths = nullptr;    // [B], or null: S
  const int32_t* cu_seqlens_q = nullptr;   // [B + 1]: the queries are packed; null: dense
  const int32_t* cu_seqlens_k = nullptr;   // [B + 1]: keys and values are packed
  const int32_t* num_sequences = nullptr;  // [1], or null: B. Packed sequences past it are empty
  const int32_t* block_tables = nullptr;   // [B, max_pages] where paged
  void* out = nullptr;                     // as query
  float* lse = nullptr;                    // as query without H, natural logarithm
  void* workspace = nullptr;
  size_t workspace_bytes = 0;

  DataType dtype = DataType::kBfloat16;
  int64_t batch = 0;                   // sequences
  int64_t grid_sequences = 0;          // of the packed ones, how many the launch is made for
  int64_t seqlen_q = 0, seqlen_k = 0;  // T and S; totals where packed; S means nothing where paged
  int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0;

  bool paged = false;
  bool head_major =
      false;  // pages are [num_pages, K, page_size, H], else [num_pages, page_size, K, H]
  int64_t num_pages = 0, page_size = 0, max_pages = 0;

  float scale = 1;
  float soft_cap = 0;         // 0: none
  int64_t window_left = -1;   // keys before the diagonal; -1: open
  int64_t window_right = -1;  // keys after it; -1: open
  bool top_left = false;      // the diagonal is s = t rather than s = t + S_b - T_b
  int64_t num_splits = 1;     // at most this many; the workspace holds that many partial results
};

// Enqueues the work. Rows without a key come out as 0 with lse -inf, also where S == 0.
Status LaunchAttention(Runtime& runtime, const Target& target, const AttentionProblem& problem);

}  // namespace jax_fa

#endif  // JAX_FA_LAUNCH_ATTENTION_H_
