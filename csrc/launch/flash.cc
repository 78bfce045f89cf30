#include "launch/flash.h"

#include <algorithm>
#include <string>

#include "kernels/params.h"
#include "launch/grid.h"

namespace jax_fa {
namespace {

constexpr uint32_t kMinusInfinityBits = 0xff800000;

// Both types are two bytes wide.
constexpr int64_t kElementBytes = 2;

int64_t QueryElems(const FlashProblem& problem) {
  return problem.batch * problem.seqlen_q * problem.num_heads * problem.head_dim;
}

int64_t KeyElems(const FlashProblem& problem) {
  return problem.batch * problem.seqlen_k * problem.num_kv_heads * problem.head_dim;
}

Strides DenseStrides(int64_t rows, int64_t heads, int64_t head_dim) {
  return {.batch = rows * heads * head_dim, .row = heads * head_dim, .head = head_dim};
}

Status CheckLimits(const FlashProblem& problem) {
  const auto check = [](const char* what, int64_t value, int64_t limit) {
    if (value >= 0 && value <= limit) return Status::Ok();
    return Status::Error(std::string(what) + " must be between 0 and " + std::to_string(limit) +
                         "; got " + std::to_string(value));
  };
  constexpr int64_t kMaxInt = 0x7fffffff;
  // Positions are compared as t + d + window, each below kOpenWindow, in 32 bits.
  for (Status status : {check("the batch", problem.batch, kMaxInt),
                        check("the query length", problem.seqlen_q, kOpenWindow - 1),
                        check("the key length", problem.seqlen_k, kOpenWindow - 1),
                        check("the number of query heads", problem.num_heads, kMaxInt),
                        check("the number of key/value heads", problem.num_kv_heads, kMaxInt)}) {
    if (!status.ok) return status;
  }
  return Status::Ok();
}

int Window(int64_t keys) {
  return keys < 0 ? kOpenWindow : static_cast<int>(std::min<int64_t>(keys, kOpenWindow));
}

AttentionParams MakeParams(const FlashProblem& problem) {
  AttentionParams params = {};
  params.query = problem.query;
  params.key = problem.key;
  params.value = problem.value;
  params.out = problem.out;
  params.lse = problem.lse;
  params.workspace = problem.workspace;
  params.query_lengths = problem.query_lengths;
  params.key_lengths = problem.key_lengths;
  params.query_stride = DenseStrides(problem.seqlen_q, problem.num_heads, problem.head_dim);
  params.key_stride = DenseStrides(problem.seqlen_k, problem.num_kv_heads, problem.head_dim);
  params.value_stride = params.key_stride;
  params.out_stride = params.query_stride;
  params.lse_stride = DenseStrides(problem.seqlen_q, problem.num_heads, 1);
  params.batch = static_cast<int>(problem.batch);
  params.seqlen_q = static_cast<int>(problem.seqlen_q);
  params.seqlen_k = static_cast<int>(problem.seqlen_k);
  params.num_heads = static_cast<int>(problem.num_heads);
  params.num_kv_heads = static_cast<int>(problem.num_kv_heads);
  params.head_dim = static_cast<int>(problem.head_dim);
  params.num_splits = 1;
  params.window_left = Window(problem.window_left);
  params.window_right = Window(problem.window_right);
  params.top_left = problem.top_left ? 1 : 0;
  params.scale = problem.scale;
  params.soft_cap = problem.soft_cap;
  return params;
}

// The sequences [first, first + count) of `params` alone.
AttentionParams SelectSequences(const AttentionParams& params, int first, int count) {
  const auto advance = [first](const void* base, const Strides& stride) -> const void* {
    return static_cast<const std::byte*>(base) + first * stride.batch * kElementBytes;
  };
  AttentionParams part = params;
  part.query = advance(params.query, params.query_stride);
  part.key = advance(params.key, params.key_stride);
  part.value = advance(params.value, params.value_stride);
  part.out = const_cast<void*>(advance(params.out, params.out_stride));
  part.lse = params.lse + first * params.lse_stride.batch;
  if (params.query_lengths != nullptr) part.query_lengths = params.query_lengths + first;
  if (params.key_lengths != nullptr) part.key_lengths = params.key_lengths + first;
  part.batch = count;
  return part;
}

}  // namespace

int64_t FlashWorkspaceBytes(const FlashProblem& problem) {
  if (problem.num_splits <= 1) return 0;
  // Per split and row: the float32 partial output and its lse.
  const int64_t rows = problem.batch * problem.seqlen_q * problem.num_heads;
  return problem.num_splits * rows * (problem.head_dim + 1) * static_cast<int64_t>(sizeof(float));
}

Status LaunchFlash(Runtime& runtime, Target target, const FlashProblem& problem) {
  if (Status status = CheckLimits(problem); !status.ok) return status;

  const int64_t rows = problem.batch * problem.seqlen_q * problem.num_heads;
  if (rows == 0) return Status::Ok();

  const auto lengths_bytes = [&](const int32_t* lengths) {
    return lengths != nullptr ? problem.batch * sizeof(int32_t) : 0;
  };
  const auto buffer = [](const char* name, const void* data, size_t bytes, bool writable) {
    return Buffer{name, const_cast<void*>(data), bytes, writable};
  };
  const size_t query_bytes = QueryElems(problem) * kElementBytes;
  const size_t key_bytes = KeyElems(problem) * kElementBytes;
  const Buffer buffers[] = {
      buffer("query", problem.query, query_bytes, false),
      buffer("key", problem.key, key_bytes, false),
      buffer("value", problem.value, key_bytes, false),
      buffer("query_lengths", problem.query_lengths, lengths_bytes(problem.query_lengths), false),
      buffer("key_lengths", problem.key_lengths, lengths_bytes(problem.key_lengths), false),
      buffer("out", problem.out, query_bytes, true),
      buffer("lse", problem.lse, rows * sizeof(float), true),
      buffer("workspace", problem.workspace, problem.workspace_bytes, true),
  };

  if (problem.seqlen_k == 0) {
    if (Status status = runtime.MemsetD8(buffers[5], 0); !status.ok) return status;
    return runtime.MemsetD32(buffers[6], kMinusInfinityBits);
  }

  const FlashKernel* kernel =
      FindFlashKernel(problem.dtype, problem.head_dim, problem.soft_cap != 0);
  if (kernel == nullptr) {
    return Status::Error("there is no kernel for a head size of " +
                         std::to_string(problem.head_dim));
  }
  const FlashTile tile = GetFlashTile(target, *kernel);
  const auto grid = [&](int batch) {
    return FlashGrid(tile, batch, static_cast<int>(problem.seqlen_q),
                     static_cast<int>(problem.num_heads));
  };
  // One launch, but where the grid would pass the device's limit: then a run of sequences at a
  // time.
  const int64_t sequences = MaxGrid(tile.threads()) / grid(1);
  if (sequences == 0) {
    return Status::Error("one sequence takes " + std::to_string(grid(1)) +
                         " workgroups; a launch holds " + std::to_string(MaxGrid(tile.threads())));
  }
  const AttentionParams params = MakeParams(problem);
  for (int64_t first = 0; first < problem.batch; first += sequences) {
    const int count = static_cast<int>(std::min(sequences, problem.batch - first));
    const AttentionParams part = SelectSequences(params, static_cast<int>(first), count);
    struct Launch launch;
    launch.kernel = kernel->name;
    launch.grid.x = static_cast<uint32_t>(grid(count));
    launch.block.x = static_cast<uint32_t>(tile.threads());
    launch.arguments = std::as_bytes(std::span(&part, 1));
    launch.buffers = buffers;
    if (Status status = runtime.Launch(target, launch); !status.ok) return status;
  }
  return Status::Ok();
}

}  // namespace jax_fa
