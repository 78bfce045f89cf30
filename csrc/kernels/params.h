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

struct AttentionParams {
  // Operands.
  const void* query;  // [B, T, N, H], or packed [total_q, N, H] with cu_seqlens_q
  const void* key;    // [B, S, K, H]; packed with cu_seqlens_k; or pages with block_tables
  const void* value;  // as key
  void* out;          // as query
  float* lse;         // [B, T, N], natural logarithm
  void* workspace;    // float32 partials when num_splits > 1

  // Per-sequence extents; a null pointer means "not given".
  const int* query_lengths;  // [B]
  const int* key_lengths;    // [B]
  const int* cu_seqlens_q;   // [B + 1]
  const int* cu_seqlens_k;   // [B + 1]
  const int* block_tables;   // [B, max_pages]: logical page -> physical page

  Strides query_stride;
  Strides key_stride;  // paged: batch = stride of a page, row = stride of a token in it
  Strides value_stride;
  Strides out_stride;
  Strides lse_stride;  // head stride is the distance between heads of one row

  int batch;
  int seqlen_q;  // T, or total_q when packed
  int seqlen_k;  // S, or total_k when packed
  int num_heads;
  int num_kv_heads;
  int head_dim;  // run-time H: a multiple of 8 up to the kernel's tile; the rest is zero-filled
  int page_size;
  int max_pages;
  int num_pages;
  int num_splits;

  // Query t sees key s when t + d - window_left <= s <= t + d + window_right, where the diagonal d
  // is S_b - T_b (bottom-right) or 0 (top-left). Causal is window_right = 0.
  int window_left;
  int window_right;
  int top_left;

  float scale;     // natural: the kernel multiplies log2(e) in
  float soft_cap;  // 0: none
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_PARAMS_H_
