// gfx950: a K or V tile in LDS, how copies fill it and how matrix operands are read from it.
//
// A tile of kRows rows of H = kHeadDim elements is cut into pieces of 1024 B, what one LDS-DMA
// instruction of a wave delivers (16 B per lane, contiguous). Piece p holds rows p, p + kPieces,
// p + 2 kPieces, ...; pieces lie gfx950::kPiecePitch apart. The 32 B between pieces spread 8
// neighbouring rows over all banks, which makes both the 16-byte reads of K and the transposing
// reads of V free of bank conflicts, provided that rows r and r + 8 do not differ by half of the
// banks: where they share a piece of 128-byte rows, its slots 1 and 2 are exchanged (and 5 and 6).
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_LDS_TILE_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_LDS_TILE_H_

#include "kernels/arch/arch.h"
#include "kernels/device.h"
#include "kernels/mainloop/gfx950/tiles.h"

namespace jax_fa {

template <class Element, int kRows, int kHeadDim>
struct LdsTile {
  static constexpr u32 kRowBytes = sizeof(Element) * kHeadDim;
  static constexpr u32 kPitch = gfx950::kPiecePitch;
  static constexpr u32 kPieces = kRows * kRowBytes / gfx950::kPieceBytes;
  static constexpr u32 kBytes = kPieces * kPitch;
  static constexpr u32 kRowsPerPiece = gfx950::kPieceBytes / kRowBytes;
  static constexpr u32 kLanesPerRow = kRowBytes / 16;
  static_assert(kPieces * kRowsPerPiece == kRows && kPieces <= arch::kFragmentDim,
                "the 16 rows of a fragment fill the same slots of every piece");

  // Place in a piece of its `index`th row, and the row of a place.
  JAX_FA_DEVICE static constexpr u32 slot(u32 index) {
    if constexpr (kPieces == 8 && kRowBytes == 128) {
      return (index & ~3u) | (index & 1) << 1 | (index >> 1 & 1);
    } else {
      return index;
    }
  }
  // Byte address of `row` < 16 in the tile, and distance from there to row + 16 fragment.
  JAX_FA_DEVICE static u32 row_address(u32 row) {
    return row % kPieces * kPitch + slot(row / kPieces) * kRowBytes;
  }
  JAX_FA_DEVICE static constexpr u32 fragment_offset(u32 fragment) {
    return slot(fragment * (arch::kFragmentDim / kPieces)) * kRowBytes;
  }

  // --- Filling -----------------------------------------------------------------------------------
  // The row that this lane copies a part of, counted from the first row of the piece.
  JAX_FA_DEVICE static u32 source_row(u32 lane) { return slot(lane / kLanesPerRow) * kPieces; }
  JAX_FA_DEVICE static u32 source_column_bytes(u32 lane) { return lane % kLanesPerRow * 16; }
  // This lane's byte offset in memory, from the first row of a piece: which row of the piece, and
  // which 16 bytes of it. Bytes past the run-time head size are out of range and become zero.
  JAX_FA_DEVICE static u32 source_offset(u32 row_stride_bytes, u32 head_bytes) {
    const u32 column_bytes = source_column_bytes(arch::lane_id());
    const u32 offset = source_row(arch::lane_id()) * row_stride_bytes + column_bytes;
    return column_bytes < head_bytes ? offset : arch::kOutOfRange;
  }

  // --- Reading -----------------------------------------------------------------------------------
  // This lane's base address for operands with rows as A rows (K in S^T = K.Q^T).
  JAX_FA_DEVICE static u32 row_operand_base() {
    return row_address(arch::fragment_column()) + arch::operand_depth() * sizeof(Element);
  }
  // Rows 16 fragment .. +15, head elements 32 step .. +31.
  JAX_FA_DEVICE static arch::Operand<Element> read_rows(u32 base, int fragment, int step) {
    const u32 offset = fragment_offset(fragment) + step * arch::kFragmentDepth * sizeof(Element);
    return *reinterpret_cast<JAX_FA_IN_LDS arch::Operand<Element>*>(base + offset);
  }

  // This lane's base address for operands with rows as depth (V^T in O^T = V^T.P^T). One
  // ds_read_b64_tr_b16 takes, per 16 lanes, a block of 4 rows by 16 elements: lane c addresses
  // elements 4(c%4).. of row c/4 and receives column c.
  JAX_FA_DEVICE static u32 column_operand_base() {
    const u32 c = arch::fragment_column();
    return row_address(arch::accumulator_row() + c / 4) + c % 4 * 8;
  }
  // Head elements 16 column .. +15 as A rows, keys 32 step .. +31 in the order of a P operand.
  JAX_FA_DEVICE static arch::Operand<Element> read_columns(u32 base, int step, int column) {
    const u32 first = base + column * arch::kFragmentDim * sizeof(Element);
    const auto low = read_transposed(first + fragment_offset(2 * step), Element{});
    const auto high = read_transposed(first + fragment_offset(2 * step + 1), Element{});
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
  }

 private:
  JAX_FA_DEVICE static Vector<bfloat16, 4> read_transposed(u32 address, bfloat16) {
    return __builtin_amdgcn_ds_read_tr16_b64_v4bf16(
        reinterpret_cast<JAX_FA_IN_LDS Vector<bfloat16, 4>*>(address));
  }
  JAX_FA_DEVICE static Vector<float16, 4> read_transposed(u32 address, float16) {
    using Storage = Vector<__fp16, 4>;  // the builtin's spelling of the same bits
    return __builtin_bit_cast(
        Vector<float16, 4>,
        __builtin_amdgcn_ds_read_tr16_b64_v4f16(reinterpret_cast<JAX_FA_IN_LDS Storage*>(address)));
  }
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_LDS_TILE_H_
