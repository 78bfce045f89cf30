#include "launch/params.h"

#include <algorithm>
#include <string>

namespace jax_fa {
namespace {

Strides RowMajor(int64_t rows, int64_t heads, int64_t head_dim) {
  return {.batch = rows * heads * head_dim, .row = heads * head_dim, .head = head_dim};
}

Strides KeyStrides(const AttentionProblem& problem) {
  if (!problem.paged()) return RowMajor(problem.seqlen_k, problem.num_kv_heads, problem.head_dim);
  if (!problem.heads_first) {
    return RowMajor(problem.page_size, problem.num_kv_heads, problem.head_dim);
  }
  const int64_t head = problem.page_size * problem.head_dim;
  return {.batch = problem.num_kv_heads * head, .row = problem.head_dim, .head = head};
}

// The most keys that a row of the block table can hold, limited to what a position can count.
int64_t KeyRoom(const AttentionProblem& problem) {
  if (!problem.paged()) return problem.seqlen_k;
  if (problem.page_size == 0 || problem.max_pages == 0) return 0;
  const int64_t most = kOpenWindow - 1;
  return problem.max_pages > most / problem.page_size ? most
                                                      : problem.max_pages * problem.page_size;
}

int Window(int64_t keys) {
  return keys < 0 ? kOpenWindow : static_cast<int>(std::min<int64_t>(keys, kOpenWindow));
}

}  // namespace

Status CheckLimits(const AttentionProblem& problem, const AttentionTile& tile) {
  const auto check = [](const std::string& what, int64_t value, int64_t limit) {
    if (value >= 0 && value <= limit) return Status::Ok();
    return Status::Error(what + " must be between 0 and " + std::to_string(limit) + "; got " +
                         std::to_string(value));
  };
  constexpr int64_t kMaxInt = 0x7fffffff;
  // Offsets within a tile are 32-bit, and one at 2^31 stands for "out of range".
  const auto span = [&](const char* what, int64_t rows, int64_t row_stride_bytes) {
    return check("what " + std::to_string(rows) + " consecutive rows of " + what +
                     " span in memory, in bytes,",
                 rows * row_stride_bytes, kMaxInt);
  };
  const int64_t query_row = problem.num_heads * problem.head_dim;
  const int64_t page_bytes = problem.paged() ? KeyStrides(problem).batch * kElementBytes : 0;
  const int64_t key_row_bytes = KeyStrides(problem).row * kElementBytes;
  // Positions are compared as t + d + window, each below kOpenWindow, in 32 bits.
  for (const Status& status :
       {check("the number of sequences", problem.batch, kOpenWindow - 1),
        check("the query length", problem.seqlen_q, kOpenWindow - 1),
        check("the key length", KeyRoom(problem), kOpenWindow - 1),
        check("the number of query heads", problem.num_heads, kMaxInt),
        check("the number of key/value heads", problem.num_kv_heads, kMaxInt),
        check("the page size", problem.page_size, kOpenWindow - 1),
        check("the number of pages", problem.num_pages, kMaxInt),
        check("the number of pages of a sequence", problem.max_pages, kMaxInt),
        check("the size of a page in bytes", page_bytes, 0xffffffffll),
        span("query", tile.rows_per_wave(), query_row * kElementBytes),
        span("the partial output", problem.options.num_splits > 1 ? tile.rows_per_wave() : 0,
             query_row * static_cast<int64_t>(sizeof(float))),
        span("key", tile.block_kv, key_row_bytes)}) {
    if (!status.ok) return status;
  }
  return Status::Ok();
}

AttentionParams MakeParams(const AttentionProblem& problem, int num_splits) {
  AttentionParams params = {};
  params.query = problem.data<const void>(Role::kQuery);
  params.key = problem.data<const void>(Role::kKey);
  params.value = problem.data<const void>(Role::kValue);
  params.out = problem.data<void>(Role::kOut);
  params.lse = problem.data<float>(Role::kLse);
  params.query_lengths = problem.data<const int>(Role::kQueryLengths);
  params.key_lengths = problem.data<const int>(Role::kKeyLengths);
  params.cu_seqlens_q = problem.data<const int>(Role::kCuSeqlensQ);
  params.cu_seqlens_k = problem.data<const int>(Role::kCuSeqlensK);
  params.num_sequences = problem.data<const int>(Role::kNumSequences);
  params.block_tables = problem.data<const int>(Role::kBlockTables);
  params.query_stride = RowMajor(problem.seqlen_q, problem.num_heads, problem.head_dim);
  params.key_stride = KeyStrides(problem);
  params.out_stride = params.query_stride;
  params.lse_stride = RowMajor(problem.seqlen_q, problem.num_heads, 1);
  params.batch = static_cast<int>(problem.batch);
  params.grid_sequences = static_cast<int>(problem.grid_sequences);
  params.seqlen_q = static_cast<int>(problem.seqlen_q);
  params.seqlen_k = static_cast<int>(KeyRoom(problem));
  params.num_heads = static_cast<int>(problem.num_heads);
  params.num_kv_heads = static_cast<int>(problem.num_kv_heads);
  params.group = params.num_heads / params.num_kv_heads;
  params.head_dim = static_cast<int>(problem.head_dim);
  params.page_size = static_cast<int>(problem.page_size);
  params.max_pages = static_cast<int>(problem.max_pages);
  params.num_pages = static_cast<int>(problem.num_pages);
  if (problem.paged()) params.page_divisor = MakeDivisor(params.page_size);
  params.num_splits = num_splits;
  params.window_left = Window(problem.options.window_left);
  params.window_right = Window(problem.options.window_right);
  params.top_left = problem.options.top_left ? 1 : 0;
  params.scale = problem.options.scale;
  params.soft_cap = problem.options.soft_cap;
  if (num_splits > 1) {
    params.partial_rows = problem.query_rows();
    params.partial_out = problem.data<float>(Role::kWorkspace);
    params.partial_lse = params.partial_out + num_splits * problem.query_elements();
  }
  return params;
}

WorkGrid MakeWorkGrid(const AttentionParams& params, const AttentionTile& tile, bool packs_heads,
                      int dies) {
  const bool packed = params.cu_seqlens_q != nullptr;
  const int heads = packs_heads ? 1 : params.group;
  const int units = params.num_kv_heads * (packed ? 1 : params.batch);
  const int rest = units % dies;
  const auto slots = static_cast<int>(QuerySlots(tile, packed, params.grid_sequences,
                                                 params.seqlen_q, packs_heads ? params.group : 1));
  const int unit_size = slots * heads * params.num_splits;
  return {.slots = static_cast<unsigned>(slots),
          .unit_size = static_cast<unsigned>(unit_size),
          .even_ids = static_cast<unsigned>((units - rest) * unit_size),
          .rest = static_cast<unsigned>(rest),
          .unit_size_divisor = MakeDivisor(unit_size),
          .rest_divisor = MakeDivisor(std::max(1, rest)),
          .kv_heads_divisor = MakeDivisor(params.num_kv_heads),
          .heads_divisor = MakeDivisor(heads),
          .splits_divisor = MakeDivisor(params.num_splits)};
}

AttentionParams SelectSequences(const AttentionParams& params, int first, int count) {
  const auto advance = [first](const void* base, const Strides& stride) -> const void* {
    return static_cast<const std::byte*>(base) + first * stride.batch * kElementBytes;
  };
  const auto advance_lengths = [first](const int* lengths, int64_t stride) {
    return lengths != nullptr ? lengths + first * stride : nullptr;
  };
  AttentionParams part = params;
  part.query = advance(params.query, params.query_stride);
  part.out = const_cast<void*>(advance(params.out, params.out_stride));
  part.lse = params.lse + first * params.lse_stride.batch;
  if (params.block_tables == nullptr && params.cu_seqlens_k == nullptr) {
    part.key = advance(params.key, params.key_stride);
    part.value = advance(params.value, params.key_stride);
  }
  part.query_lengths = advance_lengths(params.query_lengths, 1);
  part.key_lengths = advance_lengths(params.key_lengths, 1);
  part.cu_seqlens_k = advance_lengths(params.cu_seqlens_k, 1);
  part.block_tables = advance_lengths(params.block_tables, params.max_pages);
  if (params.num_splits > 1) {
    part.partial_lse = params.partial_lse + first * params.lse_stride.batch;
    part.partial_out = params.partial_out + first * params.lse_stride.batch * params.head_dim;
  }
  part.batch = count;
  return part;
}

MergeParams MakeMergeParams(const AttentionProblem& problem, const AttentionParams& params) {
  return {.partial_out = params.partial_out,
          .partial_lse = params.partial_lse,
          .out = problem.data<void>(Role::kOut),
          .lse = problem.data<float>(Role::kLse),
          .rows = params.partial_rows,
          .head_dim = params.head_dim,
          .num_splits = params.num_splits};
}

}  // namespace jax_fa
