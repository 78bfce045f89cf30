// Which workgroup makes which rows.
//
// The grid is one-dimensional: AttentionGrid() workgroups. Those that share K and V (all query
// tiles and splits of all query heads of one key head of one sequence: a unit) get ids that are
// equal modulo the number of dies, since ids go round the dies and each die has its own L2: id %
// kDies picks the die, consecutive rounds stay within a unit. Units left over when their number is
// no multiple of kDies are spread over all dies. Within a unit the last query tiles come first:
// under a causal mask they are the longest. There the ids are divided into passes, too, each
// through all units: of n tiles that a unit has left, a pass makes the last 2^floor(log2(n / 2)). A
// chip that ends with the first tiles of many units is idle for less time than one that ends with
// all tiles of some, and the tiles of a pass still share keys and values. Every id has exactly one
// (query tile, head, sequence, split), whatever the numbers; locality is all that depends on how
// ids are placed.
//
// Packed sequences. How many tiles a sequence takes is known on the device alone, so the grid is
// made from the packed total: sequence b owns the slots from floor(cu[b] G / kBlockQ) + b + 1 on
// (G: rows that a token has in a tile), and
//   floor(y / q) - floor(x / q) + 1 >= ceil((y - x) / q)
// so that it owns enough of them; surplus slots find no row. The rows before cu[0] and those past
// cu[n] are two more sequences, -1 and n, without keys. First slots grow with b, so a slot finds
// its sequence by search. All sequences of a key head are one unit. A grid made for fewer sequences
// than there are goes round: a workgroup makes the slots whole grids after its own, too.
#ifndef JAX_FA_KERNELS_ATTENTION_SCHEDULER_H_
#define JAX_FA_KERNELS_ATTENTION_SCHEDULER_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/division.h"
#include "kernels/attention/seqlen.h"
#include "kernels/device.h"
#include "kernels/params.h"

// Whether causal grids are divided into passes: a switch, to measure what that is worth.
#ifndef JAX_FA_CAUSAL_PASSES
#define JAX_FA_CAUSAL_PASSES 1
#endif

namespace jax_fa {

struct Work {
  u32 wave;        // number of this wave in the workgroup
  int slot;        // number among the slots of all packed sequences
  int query_tile;  // number in the sequence
  int head;        // query head; with packed heads the first of the key head's
  int kv_head;
  int sequence;
  RowRange rows;  // the sequence's, among packed ones
  int split;
};

// Rows that a token has in a tile.
template <class Config>
JAX_FA_DEVICE u32 rows_per_token(const AttentionParams& params) {
  return Config::kPackHeads ? params.group : 1;
}

// Finds the sequence that owns the slot, its rows, and the tile there; false where the slot is
// surplus.
// All lanes probe at once. While there are more sequences than lanes, a probe leaves one of as many
// parts; the last has a lane for each sequence and one past them. Entries that do not grow give a
// wrong sequence, nothing worse.
template <class Config>
JAX_FA_DEVICE bool find_sequence(const AttentionParams& params, Work& work) {
  const auto first_row = [&](int sequence) {
    const int start = arch::opaque(
        arch::load_4_bytes(params.cu_seqlens_q + max_int(0, min_int(sequence, params.batch))));
    const int least = sequence > params.batch ? params.seqlen_q : 0;
    const int most = sequence < 0 ? 0 : params.seqlen_q;
    return max_int(least, min_int(start, most));
  };
  const auto first_slot = [&](int sequence, int row) {
    const u32 tiles = row * rows_per_token<Config>(params) / Config::kBlockQ;
    return static_cast<int>(tiles) + sequence + 1;
  };
  const int lane = static_cast<int>(arch::lane_id());
  int first = -1;
  int count = params.batch + 2;
  while (__builtin_expect(count >= target::kWaveSize, 0)) {
    const int step = ceil_div(count, target::kWaveSize);
    const int probe = lane * step;
    const int sequence = first + min_int(probe, count - 1);
    // & and not &&: the mask of a branch would be combined with one that was never written.
    const bool owns = (probe < count) & (first_slot(sequence, first_row(sequence)) <= work.slot);
    const int skipped = max_int(0, arch::count_lanes(owns) - 1) * step;
    first += skipped;
    count = min_int(step, count - skipped);
  }
  const int row = first_row(first + lane);
  const int slot = first_slot(first + lane, row);
  const u32 next = arch::count_lanes(slot <= work.slot);
  work.sequence = first + next - 1;
  work.rows.first = arch::read_lane(row, next - 1);
  work.rows.end = arch::read_lane(row, next);
  work.query_tile = work.slot - arch::read_lane(slot, next - 1);
  // The unsigned comparison drops whatever nonsense in cu_seqlens_q led to, negative tiles too.
  const u32 tiles = ceil_div(work.rows.count() * rows_per_token<Config>(params), Config::kBlockQ);
  return static_cast<u32>(work.query_tile) < tiles;
}

// Finds the rows of the workgroup; false where there are none to make.
template <class Config>
JAX_FA_DEVICE bool find_rows(const AttentionParams& params, Work& work) {
  if (params.cu_seqlens_q) return find_sequence<Config>(params, work);
  work.rows = {0, params.seqlen_q};
  return true;
}

JAX_FA_DEVICE int count_sequences(const int* num_sequences, int batch) {
  if (!num_sequences) return batch;
  return clamp_length(arch::load_uniform(num_sequences), batch);
}
// Slots of `sequences` packed sequences.
template <class Config>
JAX_FA_DEVICE u32 count_slots(const AttentionParams& params, u32 sequences) {
  return ceil_div(params.seqlen_q * rows_per_token<Config>(params), Config::kBlockQ) + sequences +
         1;
}

// Whether keys end at a diagonal and begin at none. Slots of packed sequences say nothing of that.
JAX_FA_DEVICE bool later_tiles_are_longer(const AttentionParams& params) {
  // & and not &&: one wait for all that is loaded.
  return (params.cu_seqlens_q == nullptr) & (params.window_right < params.seqlen_k) &
         (params.window_left >= params.seqlen_k);
}

template <class Config>
JAX_FA_DEVICE Work assign_work(const AttentionParams& params, u32 wave) {
  constexpr u32 kDies = target::kDies;
  const WorkGrid& grid = params.grid;
  u32 id = arch::workgroup_id();
  u32 even_ids = grid.even_ids;
  u32 first_tile = 0;   // of the pass, counted from the last tile,
  u32 tiles_log2 = 32;  // and how many it has; 32: there are no passes
  if constexpr (JAX_FA_CAUSAL_PASSES && !Config::kSplits && kDies > 1) {
    if (later_tiles_are_longer(params)) {
      const u32 units = params.num_kv_heads * params.batch;
      for (u32 left = grid.slots;; left -= 1u << tiles_log2) {
        tiles_log2 = left > 1 ? 30 - __builtin_clz(left) : 0;
        const u32 ids = (units * params.group) << tiles_log2;
        if (id < ids) break;
        id -= ids;
        first_tile += 1u << tiles_log2;
      }
      even_ids = ((units - grid.rest) * params.group) << tiles_log2;
    }
  }
  u32 unit, member;
  if (id < even_ids) {
    Quotient round;
    if (tiles_log2 < 32) {
      round.quotient = divide(id / kDies, grid.heads_divisor) >> tiles_log2;
      round.remainder = id / kDies - (round.quotient << tiles_log2) * params.group;
    } else {
      round = divide(id / kDies, grid.unit_size_divisor, grid.unit_size);
    }
    unit = round.quotient * kDies + id % kDies;
    member = round.remainder;
  } else {
    const Quotient round = divide(id - even_ids, grid.rest_divisor, grid.rest);
    const u32 units = params.num_kv_heads * (params.cu_seqlens_q ? 1 : params.batch);
    unit = units - grid.rest + round.remainder;
    member = round.quotient;
  }

  Work work;
  work.wave = wave;
  work.split = 0;
  if constexpr (Config::kSplits) {
    const Quotient split = divide(member, grid.splits_divisor, params.num_splits);
    work.split = split.remainder;
    member = split.quotient;
  }
  Quotient head = {member, 0};
  if constexpr (!Config::kPackHeads) head = divide(member, grid.heads_divisor, params.group);
  const Quotient sequence = divide(unit, grid.kv_heads_divisor, params.num_kv_heads);
  work.query_tile = grid.slots - 1 - first_tile - head.quotient;
  work.sequence = sequence.quotient;  // 0 of packed ones
  work.kv_head = sequence.remainder;
  work.head = work.kv_head * params.group + head.remainder;
  work.slot = work.query_tile;
  return work;
}

// Calls make(params, work) for all that a workgroup is to make, in its wave `wave`. Only launches
// with dense keys go round; they make everything afresh each time: kept, it would lie in registers
// through the main loop.
template <class Config, class Make>
JAX_FA_DEVICE void for_each_work(const AttentionParams& params, u32 wave, Make make) {
  Work work = assign_work<Config>(params, wave);
  if constexpr (Config::kPaged) {
    if (find_rows<Config>(params, work)) make(params, work);
    return;
  }
  int slots = 0;
  const int* num_sequences = params.num_sequences;  // known before the others, as a branch wants it
#pragma nounroll
  do {
    AttentionParams again = arch::reload_params<AttentionParams>();
    again.batch = count_sequences(num_sequences, again.batch);
    const bool found = find_rows<Config>(again, work);
    if (!num_sequences) work.slot = kOpenWindow;  // past all slots: the grid is for all of them
    if (found) make(again, work);
    if (work.slot == kOpenWindow) break;

    const AttentionParams late = arch::reload_params<AttentionParams>();
    num_sequences = late.num_sequences;
    slots = count_slots<Config>(late, count_sequences(num_sequences, late.batch));
    work.slot += late.grid.slots;
    arch::share_lds();  // all waves have read LDS before it is filled again
  } while (work.slot < slots);
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_SCHEDULER_H_
