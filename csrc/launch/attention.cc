#include "launch/attention.h"

#include <algorithm>
#include <array>
#include <string>

#include "launch/grid.h"
#include "launch/params.h"

namespace jax_fa {
namespace {

constexpr uint32_t kMinusInfinityBits = 0xff800000;

int64_t SplitBytes(const AttentionProblem& problem) {
  return QueryRows(problem) * (problem.head_dim + 1) * static_cast<int64_t>(sizeof(float));
}

int64_t Group(const AttentionProblem& problem) { return problem.num_heads / problem.num_kv_heads; }

// Packed rows are counted in 32 bits.
bool CanPackHeads(const AttentionProblem& problem) {
  return problem.seqlen_q <= (kOpenWindow - 1) / Group(problem);
}

// No more than asked for, than the workspace holds, and than there are key tiles.
int64_t ChooseSplits(const AttentionProblem& problem, const AttentionTile& tile) {
  if (problem.num_splits <= 1 || !CanPackHeads(problem)) return 1;
  const int64_t room = static_cast<int64_t>(problem.workspace_bytes) / SplitBytes(problem);
  const int64_t keys = problem.paged ? problem.max_pages * problem.page_size : problem.seqlen_k;
  const int64_t tiles = (keys + tile.block_kv - 1) / tile.block_kv;
  return std::max<int64_t>(1, std::min({problem.num_splits, room, tiles}));
}

// The operands by name, so that the emulator can bound accesses, count them and name what was
// missed.
struct Operands {
  static constexpr size_t kOut = 9, kLse = 10;
  std::array<Buffer, 12> buffers;

  explicit Operands(const AttentionProblem& problem) {
    const auto buffer = [](const char* name, const void* data, int64_t bytes, bool writable) {
      return Buffer{name, const_cast<void*>(data), data != nullptr ? static_cast<size_t>(bytes) : 0,
                    writable};
    };
    constexpr int64_t kInt = sizeof(int32_t);
    const int64_t query_bytes = QueryElems(problem) * kElementBytes;
    const int64_t key_bytes = KeyElems(problem) * kElementBytes;
    buffers = {
        buffer("query", problem.query, query_bytes, false),
        buffer(problem.paged ? "k_pages" : "key", problem.key, key_bytes, false),
        buffer(problem.paged ? "v_pages" : "value", problem.value, key_bytes, false),
        buffer("query_lengths", problem.query_lengths, problem.batch * kInt, false),
        buffer("key_lengths", problem.key_lengths, problem.batch * kInt, false),
        buffer("cu_seqlens_q", problem.cu_seqlens_q, (problem.batch + 1) * kInt, false),
        buffer("cu_seqlens_k", problem.cu_seqlens_k, (problem.batch + 1) * kInt, false),
        buffer("num_sequences", problem.num_sequences, kInt, false),
        buffer("block_tables", problem.block_tables, problem.batch * problem.max_pages * kInt,
               false),
        buffer("out", problem.out, query_bytes, true),
        buffer("lse", problem.lse, QueryRows(problem) * static_cast<int64_t>(sizeof(float)), true),
        buffer("workspace", problem.workspace, static_cast<int64_t>(problem.workspace_bytes), true),
    };
  }
};

template <class Params>
Status LaunchKernel(Runtime& runtime, const Target& target, const char* kernel, int64_t grid,
                    int threads, const Params& params, const Operands& operands) {
  struct Launch launch;
  launch.kernel = kernel;
  launch.grid.x = static_cast<uint32_t>(grid);
  launch.block.x = static_cast<uint32_t>(threads);
  launch.arguments = std::as_bytes(std::span(&params, 1));
  launch.buffers = operands.buffers;
  return runtime.Launch(target, launch);
}

Status LaunchMerge(Runtime& runtime, const Target& target, const AttentionProblem& problem,
                   const AttentionParams& params, const Operands& operands) {
  const MergeParams merge = MakeMergeParams(problem, params);
  const int64_t rows_per_workgroup = kMergeThreads / (problem.head_dim / 4);
  const int64_t grid = (merge.rows + rows_per_workgroup - 1) / rows_per_workgroup;
  if (grid > MaxGrid(kMergeThreads)) {
    return Status::Error("merging splits of " + std::to_string(merge.rows) + " rows takes " +
                         std::to_string(grid) + " workgroups; a launch holds " +
                         std::to_string(MaxGrid(kMergeThreads)));
  }
  return LaunchKernel(runtime, target, MergeKernelName(problem.dtype), grid, kMergeThreads, merge,
                      operands);
}

// Query tokens of a sequence; the mean when packed.
int64_t TokensOfSequence(const AttentionProblem& problem) {
  if (problem.cu_seqlens_q == nullptr) return problem.seqlen_q;
  const int64_t sequences = std::max<int64_t>(problem.grid_sequences, 1);
  return (problem.seqlen_q + sequences - 1) / sequences;
}

// Null when no kernel holds the head. Splits are decode's alone.
const AttentionKernel* ChooseKernel(const Target& target, const AttentionProblem& problem) {
  const auto find = [&](KernelFamily family) {
    return FindAttentionKernel(target, family, problem.dtype, problem.head_dim,
                               problem.soft_cap != 0, problem.paged);
  };
  if (!CanPackHeads(problem)) return find(KernelFamily::kFlash);
  const int64_t rows = TokensOfSequence(problem) * Group(problem);
  if (problem.num_splits <= 1 && rows > target.packed_rows) return find(KernelFamily::kFlash);

  const AttentionKernel* decode = find(KernelFamily::kDecode);
  if (decode == nullptr ||
      rows <= GetTile(target, decode->family, decode->head_dim_tile).block_q()) {
    return decode;
  }
  const AttentionKernel* wide = find(KernelFamily::kWideDecode);
  return wide != nullptr ? wide : decode;
}

}  // namespace

Status LaunchAttention(Runtime& runtime, const Target& target, const AttentionProblem& problem) {
  if (QueryRows(problem) == 0) return Status::Ok();
  const Operands operands(problem);
  if (KeyElems(problem) == 0 || (problem.paged && problem.max_pages == 0)) {
    if (Status status = runtime.MemsetD8(operands.buffers[Operands::kOut], 0); !status.ok) {
      return status;
    }
    return runtime.MemsetD32(operands.buffers[Operands::kLse], kMinusInfinityBits);
  }

  const AttentionKernel* kernel = ChooseKernel(target, problem);
  if (kernel == nullptr) {
    return Status::Error("there is no kernel for a head size of " +
                         std::to_string(problem.head_dim));
  }
  const AttentionTile tile = GetTile(target, kernel->family, kernel->head_dim_tile);
  if (Status status = CheckLimits(problem, tile); !status.ok) return status;

  const bool packed = problem.cu_seqlens_q != nullptr;
  const bool packs_heads = kernel->family != KernelFamily::kFlash;
  const int64_t splits = ChooseSplits(problem, tile);
  const auto grid = [&](int64_t batch) {
    return AttentionGrid(tile, packed, batch, problem.seqlen_q, packs_heads ? Group(problem) : 1,
                         packs_heads ? problem.num_kv_heads : problem.num_heads, splits);
  };
  // One launch, but where the grid would pass the device's limit: then a run of sequences at a
  // time. Packed sequences are one run.
  const int64_t limit = MaxGrid(tile.threads());
  const int64_t indivisible = packed ? grid(problem.grid_sequences) : grid(1);
  if (indivisible > limit) {
    return Status::Error((packed ? "the packed sequences take " : "one sequence takes ") +
                         std::to_string(indivisible) + " workgroups; a launch holds " +
                         std::to_string(limit));
  }
  const AttentionParams params = MakeParams(problem, static_cast<int>(splits));
  const auto launch = [&](AttentionParams part, int64_t workgroups) {
    part.grid = MakeWorkGrid(part, tile, packs_heads, target.dies);
    return LaunchKernel(runtime, target, kernel->name, workgroups, tile.threads(), part, operands);
  };
  if (packed) {
    if (Status status = launch(params, indivisible); !status.ok) return status;
  } else {
    const int64_t sequences = limit / indivisible;
    for (int64_t first = 0; first < problem.batch; first += sequences) {
      const int count = static_cast<int>(std::min(sequences, problem.batch - first));
      const AttentionParams part = SelectSequences(params, static_cast<int>(first), count);
      if (Status status = launch(part, grid(count)); !status.ok) return status;
    }
  }
  return splits > 1 ? LaunchMerge(runtime, target, problem, params, operands) : Status::Ok();
}

}  // namespace jax_fa
