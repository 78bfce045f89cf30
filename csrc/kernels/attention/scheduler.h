// Which workgroup makes which rows.
//
// The grid is one-dimensional: FlashGrid(tile, B, T, N) workgroups. Those that share K and V (all
// query tiles of all query heads of one key head of one sequence: a unit) get ids that are equal
// modulo the number of dies, since ids go round the dies and each die has its own L2: id % kXcds
// picks the die, consecutive rounds stay within a unit. Units left over when their number is no
// multiple of kXcds are spread over all dies. Within a unit the last query tiles come first: under
// a causal mask they are the longest. Every id has exactly one (query tile, head, sequence),
// whatever the numbers; locality is all that depends on how ids are placed.
#ifndef JAX_FA_KERNELS_ATTENTION_SCHEDULER_H_
#define JAX_FA_KERNELS_ATTENTION_SCHEDULER_H_

#include "kernels/arch/arch.h"
#include "kernels/device.h"
#include "kernels/params.h"

namespace jax_fa {

struct Work {
  int query_tile;
  int head;
  int kv_head;
  int batch;
};

template <class Config>
JAX_FA_DEVICE Work assign_work(const AttentionParams& params) {
  constexpr u32 kDies = arch::kXcds;
  const u32 query_tiles = ceil_div(params.seqlen_q, Config::kBlockQ);
  const u32 kv_heads = params.num_kv_heads;
  const u32 group = static_cast<u32>(params.num_heads) / kv_heads;  // query heads per key head
  const u32 unit_size = query_tiles * group;
  const u32 units = kv_heads * params.batch;
  const u32 even_units = units / kDies * kDies;

  u32 id = arch::workgroup_id();
  u32 unit, member;
  if (id < even_units * unit_size) {
    const u32 round = id / kDies;
    unit = round / unit_size * kDies + id % kDies;
    member = round % unit_size;
  } else {
    id -= even_units * unit_size;
    const u32 rest = units - even_units;
    unit = even_units + id % rest;
    member = id / rest;
  }

  Work work;
  work.query_tile = query_tiles - 1 - member / group;
  work.batch = unit / kv_heads;
  work.kv_head = unit % kv_heads;
  work.head = work.kv_head * group + member % group;
  return work;
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_SCHEDULER_H_
