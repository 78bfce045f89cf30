// The argument block of every attention kernel: filled by the launcher, read by device code.
//
// Plain data, the same layout on host and device. Legend: B batch, T query length, S key length,
// N query heads, K key/value heads, H head size. Strides count elements and are 64-bit, so that
// operands past 2^31 elements and 4 GiB are addressed rightly.
#ifndef JAX_FA_KERNELS_PARAMS_H_
#define JAX_FA_KERNELS_PARAMS_H_

namespace jax_fa {

// A window side that is open, in either direction: wider than any sequence.
inline constexpr int kOpenWindow = 0x3fffffff;

// Element strides of a [batch, row, head, H] operand; H itself is contiguous.
struct Strides {
  long long batch;
  long long row;
  long long head;
};

// Division of 0 <= n < 2^31 by a divisor that is known before the launch:
// n / d = (2 n * magic >> 32) >> shift,
// with shift = ceil(log2 d) and magic = floor(2^(31 + shift) / d) + 1.
struct Divisor {
  unsigned int magic;
  unsigned int shift;
};

constexpr Divisor MakeDivisor(int divisor) {
  unsigned int shift = 0;
  while ((1ll << shift) < divisor) ++shift;
  return {static_cast<unsigned int>((1ull << (31 + shift)) / divisor + 1), shift};
}

// How a grid is divided (scheduler.h), with the divisors, since integer division takes many
// instructions.
struct WorkGrid {
  unsigned int slots;      // query tiles of a sequence, or slots of all packed sequences
  unsigned int unit_size;  // workgroups that share keys and values
  unsigned int even_ids;   // ids below it go round the dies
  unsigned int rest;       // units past those, over which the other ids go round
  Divisor unit_size_divisor;
  Divisor rest_divisor;  // divides by 1 where there is no rest
  Divisor kv_heads_divisor;
  Divisor heads_divisor;  // query heads of a key head that take workgroups each
  Divisor splits_divisor;
};

struct AttentionParams {
  // Operands.
  const void* query;  // [B, T, N, H], or packed [total_q, N, H] with cu_seqlens_q
  const void* key;    // [B, S, K, H]; packed [total_k, K, H] with cu_seqlens_k; or pages
  const void* value;  // as key
  void* out;          // as query
  float* lse;         // [B, T, N], natural logarithm

  // With num_splits > 1, what each split makes of its keys: [num_splits, *query.shape] and
  // [num_splits, *query.shape[:-1]], row-major.
  float* partial_out;
  float* partial_lse;
  long long partial_rows;  // rows of one split: query rows x heads, those of all sequences

  // Per-sequence extents; a null pointer means "not given".
  const int* query_lengths;  // [B]
  const int* key_lengths;    // [B]
  const int* cu_seqlens_q;   // [B + 1]: the queries are packed
  const int* cu_seqlens_k;   // [B + 1]: the keys are packed
  const int* num_sequences;  // [1]: of the packed sequences, those that are not empty come first
  const int* block_tables;   // [B, max_pages], logical page -> physical page: the keys are paged

  Strides query_stride;
  Strides key_stride;  // values too; paged: batch = stride of a page, row = stride of a token in it
  Strides out_stride;
  Strides lse_stride;  // head stride is the distance between heads of one row

  int batch;
  // Packed sequences that the grid has room for; its workgroups go round for more.
  int grid_sequences;
  int seqlen_q;  // T, or total_q when packed
  int seqlen_k;  // S, total_k when packed, or the keys that a block table's row can hold
  int num_heads;
  int num_kv_heads;
  int group;     // N / K
  int head_dim;  // run-time H: a multiple of 8 up to the kernel's tile; the rest is zero-filled
  int page_size;
  int max_pages;
  int num_pages;
  Divisor page_divisor;  // of page_size
  int num_splits;
  WorkGrid grid;

  // Query t sees key s when t + d - window_left <= s <= t + d + window_right, where the diagonal d
  // is S_b - T_b (bottom-right) or 0 (top-left). Causal is window_right = 0.
  int window_left;
  int window_right;
  int top_left;

  float scale;     // natural: the kernel multiplies log2(e) in
  float soft_cap;  // 0: none
};

// The arguments of the merge of splits: row r is one query row of one head.
struct MergeParams {
  const float* partial_out;  // [num_splits, rows, H]
  const float* partial_lse;  // [num_splits, rows]
  void* out;                 // [rows, H]
  float* lse;                // [rows]
  long long rows;
  int head_dim;
  int num_splits;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_PARAMS_H_
