// gfx950: the copies of K and V to LDS for the schedule of two groups: rings of kStages tiles, of
// which every wave fills its own pieces (lds_tile.h).
//
// The tile that is copied next is one further in K than in V. Its base moves from tile to tile, in
// 64 bits, so operands may be of any size (two_groups_pages.h); past the last key the buffer ends,
// so a tail is zeros whether or not a chip counts the scalar offset in its range check.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_COPIES_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_COPIES_H_

#include "kernels/arch/arch.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx950/buffered_keys.h"
#include "kernels/mainloop/gfx950/two_groups_pages.h"

namespace jax_fa {

// The ring slots of one operand, as byte offsets.
template <class Tile, u32 kStages>
struct Ring {
  static constexpr u32 kLast = (kStages - 1) * Tile::kBytes;
  JAX_FA_DEVICE static u32 after(u32 slot) { return slot == kLast ? 0 : slot + Tile::kBytes; }
  JAX_FA_DEVICE static u32 placed_after(u32 slot) {
    return arch::placed_step<Tile::kBytes, kStages * Tile::kBytes>(slot);
  }
};

// What is the same for all lanes, but for NextTile. State of lanes is apart (LaneSource): in one
// structure, neighbouring words would become vectors that mix both.
struct CopyState {
  arch::BufferWords keys, values;  // from the first row of the next tile on
  u32 key_lds, value_lds;  // LDS of this wave's first piece of it, that of V less its ring's
  u32 wave_lds;            // that of slot 0
  u32 row_bytes;           // from row to row
  u32 next_bytes;          // the key buffer's from its last tile on
  int last_tile;           // that holds the last key
};

// Where the lanes' 16 bytes of this wave's pieces lie in a tile.
template <int kPieces>
struct LaneSource {
  u32 piece[kPieces];
};

template <class Config, u32 kStages>
class TileCopies {
  using Tile = typename Share<Config>::Tile;
  static constexpr u32 kValueLds = kStages * Tile::kBytes;

 public:
  static constexpr int kPieces = Share<Config>::kPieces;
  static constexpr int kCopies = 2 * kPieces;  // of a wave, for a tile of K and one of V
  using Source = LaneSource<kPieces>;
  using Next = NextTile<Config::kPaged>;
  using Keys = typename Next::Keys;

  // Aims at tile `first` of both, in slot 0.
  JAX_FA_DEVICE static void aim(CopyState& state, Next& next, Source& source, const Keys& keys,
                                u32 wave, u32 lds, int first) {
    const u32 first_piece = Share<Config>::first_piece(wave);
    state.row_bytes = keys.row_stride_bytes();
    source.piece[0] =
        Tile::source_offset(state.row_bytes, keys.head_bytes()) + first_piece * state.row_bytes;
    JAX_FA_UNROLL for (int i = 1; i < kPieces; ++i) {
      source.piece[i] = source.piece[i - 1] + state.row_bytes;
    }
    state.last_tile = (keys.end() - 1) / Config::kBlockKv;
    const auto bytes_of = [&](int rows) {
      return rows > 0 ? (rows - 1) * state.row_bytes + keys.head_bytes() : 0;
    };
    const u32 tail_bytes = bytes_of(keys.end() - state.last_tile * Config::kBlockKv);
    const bool whole = first < state.last_tile;
    const u32 bytes = whole ? bytes_of(Config::kBlockKv) : tail_bytes;
    state.next_bytes = whole ? tail_bytes : 0;
    next.start(keys, first * Config::kBlockKv, Config::kBlockKv * state.row_bytes, state.keys,
               state.values);
    state.keys[2] = bytes;
    state.values[2] = bytes;
    state.wave_lds = arch::opaque_uniform(lds + first_piece * Tile::kPitch);
    state.key_lds = state.wave_lds;
    state.value_lds = state.wave_lds;
  }

  // Starts copy kIndex of kCopies: those of K, then those of V.
  template <int kIndex>
  JAX_FA_DEVICE static void copy(const CopyState& state, const Source& source) {
    constexpr int kPiece = kIndex % kPieces;
    if constexpr (kIndex < kPieces) {
      arch::copy_16_bytes_to_lds<kPiece * Tile::kPitch>(state.keys, state.key_lds,
                                                        source.piece[kPiece]);
    } else {
      arch::copy_16_bytes_to_lds<kPiece * Tile::kPitch + kValueLds>(state.values, state.value_lds,
                                                                    source.piece[kPiece]);
    }
  }
  // Starts copies 0 .. kCount-1.
  template <int kCount>
  JAX_FA_DEVICE static void copy_first(const CopyState& state, const Source& source) {
    if constexpr (kCount > 0) {
      copy_first<kCount - 1>(state, source);
      copy<kCount - 1>(state, source);
    }
  }

  // Aims at the next tile of K, and of V at that which K was at.
  JAX_FA_DEVICE static void advance(CopyState& state, Next& next, int key_tile) {
    move_values(state, next);
    move_keys(state, next, key_tile);
    state.value_lds = state.key_lds;
    state.key_lds = state.wave_lds + Ring<Tile, kStages>::after(state.key_lds - state.wave_lds);
  }
  JAX_FA_DEVICE static void move_values(CopyState& state, const Next& next) {
    next.move_values(state.values, state.keys);
    state.values[2] = arch::placed_copy(state.keys[2]);
  }
  // Of the tile `key_tile`, which is now next, what there is.
  JAX_FA_DEVICE static void move_keys(CopyState& state, Next& next, int key_tile) {
    next.begin_fetch();
    next.end_fetch();
    next.find();
    next.move_keys(state.keys);
    next.turn();
    bound_keys(state, key_tile);
  }
  JAX_FA_DEVICE static void bound_keys(CopyState& state, int key_tile) {
    u32 bytes = state.keys[2];
    arch::placed_shift_from(key_tile, state.last_tile, bytes, state.next_bytes);
    state.keys[2] = bytes;
  }
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_TWO_GROUPS_COPIES_H_
