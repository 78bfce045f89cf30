// What a call of attention is to compute: operands, sizes and options.
#ifndef JAX_FA_LAUNCH_PROBLEM_H_
#define JAX_FA_LAUNCH_PROBLEM_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "launch/catalogue.h"
#include "runtime/runtime.h"

namespace jax_fa {

// The bytes of an element; both types are two bytes wide.
inline constexpr int64_t kElementBytes = 2;

// What an operand or result is to the problem, all row-major. B batch, T query length, S key
// length, N query heads, K key/value heads, H head size. Queries are dense or packed; keys and
// values dense, packed or paged, independently.
enum class Role {
  kQuery,         // [B, T, N, H]; packed: [T, N, H]
  kKey,           // [B, S, K, H]; packed: [S, K, H]; paged: see heads_first
  kValue,         // as key
  kQueryLengths,  // [B], or absent: T
  kKeyLengths,    // [B], or absent: S
  kCuSeqlensQ,    // [B + 1]: the queries are packed; absent: dense
  kCuSeqlensK,    // [B + 1]: keys and values are packed
  kNumSequences,  // [1], or absent: B. Packed sequences past it are empty
  kBlockTables,   // [B, max_pages]: keys and values are paged
  kOut,           // as query
  kLse,           // as query without H, natural logarithm
  kWorkspace,     // bytes for the partial results of splits
  kCount
};

// The options of every call, as the custom call's attributes have them.
struct AttentionOptions {
  float scale = 1;
  float soft_cap = 0;         // 0: none
  int64_t window_left = -1;   // keys before the diagonal; -1: open
  int64_t window_right = -1;  // keys after it; -1: open
  bool top_left = false;      // the diagonal is s = t rather than s = t + S_b - T_b
  int64_t num_splits = 1;     // at most this many; the workspace holds that many partial results
};

struct AttentionProblem {
  // Operands and results by Role, under the names that the emulator reports. One that is absent has
  // no data.
  std::array<Buffer, static_cast<size_t>(Role::kCount)> operands;

  DataType dtype = DataType::kBfloat16;
  int64_t batch = 0;                   // sequences
  int64_t grid_sequences = 0;          // the launch is made for so many packed sequences
  int64_t seqlen_q = 0, seqlen_k = 0;  // T and S; totals where packed; S means nothing where paged
  int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0;

  // Pages are [num_pages, K, page_size, H] where heads_first, else [num_pages, page_size, K, H].
  bool heads_first = false;
  int64_t num_pages = 0, page_size = 0, max_pages = 0;

  AttentionOptions options;

  Buffer& operator[](Role role) { return operands[static_cast<size_t>(role)]; }
  const Buffer& operator[](Role role) const { return operands[static_cast<size_t>(role)]; }
  template <class T>
  T* data(Role role) const {
    return static_cast<T*>((*this)[role].data);
  }
  bool has(Role role) const { return (*this)[role].data != nullptr; }

  bool packed() const { return has(Role::kCuSeqlensQ); }
  bool packed_keys() const { return has(Role::kCuSeqlensK); }
  bool paged() const { return page_size != 0; }
  int64_t group() const { return num_heads / num_kv_heads; }
  // Query rows of all sequences, times heads.
  int64_t query_rows() const { return (packed() ? 1 : batch) * seqlen_q * num_heads; }
  int64_t query_elements() const { return query_rows() * head_dim; }
  int64_t key_elements() const {
    const int64_t row = num_kv_heads * head_dim;
    if (paged()) return num_pages * page_size * row;
    return (packed_keys() ? 1 : batch) * seqlen_k * row;
  }
  // The most keys that a sequence may have; its actual number may stand on the device alone.
  int64_t max_keys() const { return paged() ? max_pages * page_size : seqlen_k; }
  // Query tokens of a sequence; the mean when packed.
  int64_t tokens_of_sequence() const {
    if (!packed()) return seqlen_q;
    const int64_t sequences = grid_sequences > 1 ? grid_sequences : 1;
    return (seqlen_q + sequences - 1) / sequences;
  }
  // Bytes of one split's partial results: out and lse of every row.
  int64_t split_bytes() const {
    return query_rows() * (head_dim + 1) * static_cast<int64_t>(sizeof(float));
  }
};

}  // namespace jax_fa

#endif  // JAX_FA_LAUNCH_PROBLEM_H_
