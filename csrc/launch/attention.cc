#include "launch/attention.h"

#include <algorithm>
#include <string>

#include "launch/grid.h"
#include "launch/params.h"

namespace jax_fa {
namespace {

constexpr uint32_t kMinusInfinityBits = 0xff800000;

// Whether the rows of a key head, all heads of its group together, can be counted in 32 bits.
bool CanPackHeads(const AttentionProblem& problem) {
  return problem.seqlen_q <= (kOpenWindow - 1) / problem.group();
}

// As many splits as are asked for, the workspace holds and key tiles there are.
int64_t ChooseSplits(const AttentionProblem& problem, const AttentionTile& tile) {
  if (problem.options.num_splits <= 1 || !CanPackHeads(problem)) return 1;
  const int64_t room =
      static_cast<int64_t>(problem[Role::kWorkspace].bytes) / problem.split_bytes();
  const int64_t tiles = (problem.max_keys() + tile.block_kv - 1) / tile.block_kv;
  return std::max<int64_t>(1, std::min({problem.options.num_splits, room, tiles}));
}

template <class Params>
Status LaunchKernel(Runtime& runtime, const Target& target, const char* kernel, int64_t grid,
                    int threads, const Params& params, const AttentionProblem& problem) {
  struct Launch launch;
  launch.kernel = kernel;
  launch.grid.x = static_cast<uint32_t>(grid);
  launch.block.x = static_cast<uint32_t>(threads);
  launch.arguments = std::as_bytes(std::span(&params, 1));
  launch.buffers = problem.operands;
  return runtime.Launch(target, launch);
}

Status LaunchMerge(Runtime& runtime, const Target& target, const AttentionProblem& problem,
                   const AttentionParams& params) {
  const MergeParams merge = MakeMergeParams(problem, params);
  const int64_t rows_per_workgroup = kMergeThreads / (problem.head_dim / 4);
  const int64_t grid = (merge.rows + rows_per_workgroup - 1) / rows_per_workgroup;
  if (grid > MaxGrid(kMergeThreads)) {
    return Status::Error("merging splits of " + std::to_string(merge.rows) + " rows takes " +
                         std::to_string(grid) + " workgroups; a launch holds " +
                         std::to_string(MaxGrid(kMergeThreads)));
  }
  return LaunchKernel(runtime, target, MergeKernelName(problem.dtype), grid, kMergeThreads, merge,
                      problem);
}

// The kernel for a problem; null when none holds the head. Decode kernels alone can split the keys.
const AttentionKernel* ChooseKernel(const Target& target, const AttentionProblem& problem) {
  const auto find = [&](KernelFamily family) {
    return FindAttentionKernel(target, family, problem.dtype, problem.head_dim,
                               problem.options.soft_cap != 0, problem.paged());
  };
  if (!CanPackHeads(problem)) return find(KernelFamily::kFlash);
  const int64_t rows = problem.tokens_of_sequence() * problem.group();
  if (problem.options.num_splits <= 1 && rows > target.packed_rows)
    return find(KernelFamily::kFlash);

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
  if (problem.query_rows() == 0) return Status::Ok();
  if (problem.key_elements() == 0 || (problem.paged() && problem.max_pages == 0)) {
    if (Status status = runtime.MemsetD8(problem[Role::kOut], 0); !status.ok) {
      return status;
    }
    return runtime.MemsetD32(problem[Role::kLse], kMinusInfinityBits);
  }

  const AttentionKernel* kernel = ChooseKernel(target, problem);
  if (kernel == nullptr) {
    return Status::Error("there is no kernel for a head size of " +
                         std::to_string(problem.head_dim));
  }
  const AttentionTile tile = GetTile(target, kernel->family, kernel->head_dim_tile);
  if (Status status = CheckLimits(problem, tile); !status.ok) return status;

  const bool packed = problem.packed();
  const bool packs_heads = kernel->family != KernelFamily::kFlash;
  const int64_t splits = ChooseSplits(problem, tile);
  const auto grid = [&](int64_t batch) {
    return AttentionGrid(tile, packed, batch, problem.seqlen_q, packs_heads ? problem.group() : 1,
                         packs_heads ? problem.num_kv_heads : problem.num_heads, splits);
  };
  // One launch serves all sequences, unless its grid would pass the device's limit: then each
  // launch takes a run of them. Packed sequences are never divided.
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
    return LaunchKernel(runtime, target, kernel->name, workgroups, tile.threads(), part, problem);
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
  return splits > 1 ? LaunchMerge(runtime, target, problem, params) : Status::Ok();
}

}  // namespace jax_fa
