// gfx950: matrix fragments and v_mfma_f32_16x16x32.
//
// Lane l of a fragment, element e, accumulator register r (wave64):
//   A operand  row l%16, depth 8(l/16)+e      B operand  column l%16, depth 8(l/16)+e
//   accumulator  row 4(l/16)+r, column l%16
// Depth labels need only agree between A and B. So P^T as it leaves the accumulators of S^T = K.Q^T
// is a B operand of O^T = V^T.P^T: two 16-key score fragments pack into one operand of 32 keys in
// which lane l holds keys 4(l/16)+e of the first (e < 4) and 4(l/16)+e-4 of the second.
#ifndef JAX_FA_KERNELS_ARCH_GFX950_MATRIX_H_
#define JAX_FA_KERNELS_ARCH_GFX950_MATRIX_H_

#include "kernels/arch/gfx950/lane.h"
#include "kernels/device.h"

namespace jax_fa::arch {

inline constexpr int kFragmentDim = 16;      // rows and columns of a fragment
inline constexpr int kFragmentDepth = 32;    // head elements, or keys, summed by one instruction
inline constexpr int kAccumulatorRows = 4;   // consecutive rows of its column that a lane holds
inline constexpr int kOperandElements = 8;   // consecutive depths that a lane holds
inline constexpr int kScoresPerOperand = 2;  // score fragments that make one P operand

template <class Element>
using Operand = Vector<Element, kOperandElements>;
using Accumulator = Vector<float, kAccumulatorRows>;

// Column of a fragment that this lane holds, as A row, B column or accumulator column.
JAX_FA_DEVICE u32 fragment_column() { return lane_id() % kFragmentDim; }
// First depth of this lane in an operand, and first row of this lane in an accumulator.
JAX_FA_DEVICE u32 operand_depth() { return lane_id() / kFragmentDim * kOperandElements; }
JAX_FA_DEVICE u32 accumulator_row() { return lane_id() / kFragmentDim * kAccumulatorRows; }

JAX_FA_DEVICE Accumulator multiply_add(Operand<bfloat16> a, Operand<bfloat16> b, Accumulator c) {
  return __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, c, 0, 0, 0);
}
JAX_FA_DEVICE Accumulator multiply_add(Operand<float16> a, Operand<float16> b, Accumulator c) {
  return __builtin_amdgcn_mfma_f32_16x16x32_f16(a, b, c, 0, 0, 0);
}

// The same in place. The compiler likes to give the result other registers, and then an LDS read
// the freed ones, which takes wait states; or has to copy the accumulators of a rare path back to
// where the common one has them. It does not see that the instruction itself needs wait states, so
// begin_in_place() comes between it and what wrote `c` just before, and end_in_place() before
// anything but another such instruction uses `c`.
JAX_FA_DEVICE void multiply_add_in_place(Operand<bfloat16> a, Operand<bfloat16> b, Accumulator& c) {
  asm volatile("v_mfma_f32_16x16x32_bf16 %0, %1, %2, %0" : "+v"(c) : "v"(a), "v"(b));
}
JAX_FA_DEVICE void multiply_add_in_place(Operand<float16> a, Operand<float16> b, Accumulator& c) {
  asm volatile("v_mfma_f32_16x16x32_f16 %0, %1, %2, %0" : "+v"(c) : "v"(a), "v"(b));
}
JAX_FA_DEVICE void begin_in_place() { asm volatile("s_nop 3"); }
JAX_FA_DEVICE void end_in_place() { asm volatile("s_nop 15"); }

// log2 of what a sum of probabilities loses by rounding, in the middle of the range: nothing, since
// rounding is to nearest.
template <class Element, int kHeadDim>
inline constexpr float kPackingLossLog2 = 0.0f;

// Rounds (to nearest even) the probabilities of kScoresPerOperand fragments into one P^T operand.
template <class Element, int kHeadDim>
JAX_FA_DEVICE Operand<Element> pack_probabilities(const Accumulator* scores) {
  Operand<Element> packed;
  JAX_FA_UNROLL for (int e = 0; e < kOperandElements; ++e) {
    packed[e] = static_cast<Element>(scores[e / kAccumulatorRows][e % kAccumulatorRows]);
  }
  return packed;
}

// Sums of rounded probabilities over keys, one per query row, made by the matrix core so that the
// vector unit is left to the exponentials.
//
// An even number of operands goes through v_smfmac_f32_16x16x64 with a 2:4 sparse A of ones: even
// rows take positions 0 and 1 of every four depths, odd rows 2 and 3, so accumulator registers 0
// and 1 add up to all depths for any order of B that keeps groups of four together. A single
// operand goes through a dense instruction with A all ones.
template <class Element, int kQueryTiles, int kOperands>
class RowSums {
 public:
  JAX_FA_DEVICE RowSums() {
    JAX_FA_UNROLL for (auto& sum : sums_) sum = 0.0f;
    ones_ = opaque(Operand<Element>(static_cast<Element>(1.0f)));
    if constexpr (kSparse) positions_ = lane_id() % 2 ? 0xeeeeeeee : 0x44444444;
  }

  JAX_FA_DEVICE void add(int query_tile, const Operand<Element> (&p)[kOperands]) {
    Accumulator& sum = sums_[query_tile];
    if constexpr (kSparse) {
      JAX_FA_UNROLL for (int i = 0; i < kOperands; i += 2) sum = add_pair(p[i], p[i + 1], sum);
    } else {
      JAX_FA_UNROLL for (int i = 0; i < kOperands; ++i) sum = multiply_add(ones_, p[i], sum);
    }
  }
  JAX_FA_DEVICE void rescale(int query_tile, float factor) { sums_[query_tile] *= factor; }
  // The whole row's sum, in every lane that holds the row.
  JAX_FA_DEVICE float total(int query_tile) const {
    const Accumulator& sum = sums_[query_tile];
    return kSparse ? sum[0] + sum[1] : sum[0];
  }
  // As LaneSums.
  JAX_FA_DEVICE float so_far(int query_tile) const { return total(query_tile); }
  JAX_FA_DEVICE void gather() {}

 private:
  static constexpr bool kSparse = kOperands % 2 == 0;

  JAX_FA_DEVICE Accumulator add_pair(Operand<bfloat16> low, Operand<bfloat16> high,
                                     Accumulator sum) const {
    return __builtin_amdgcn_smfmac_f32_16x16x64_bf16(ones_, join(low, high), sum, positions_, 0, 0);
  }
  JAX_FA_DEVICE Accumulator add_pair(Operand<float16> low, Operand<float16> high,
                                     Accumulator sum) const {
    return __builtin_amdgcn_smfmac_f32_16x16x64_f16(ones_, join(low, high), sum, positions_, 0, 0);
  }
  JAX_FA_DEVICE static Vector<Element, 16> join(Operand<Element> low, Operand<Element> high) {
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }

  Accumulator sums_[kQueryTiles];
  Operand<Element> ones_;
  int positions_;
};

// The same by the vector unit, two weights to an instruction. Where a tile has a single operand the
// matrix core has less time to spare than the vector unit.
template <class Element, int kQueryTiles, int kOperands>
class LaneSums {
 public:
  JAX_FA_DEVICE LaneSums() { JAX_FA_UNROLL for (float& sum : sums_) sum = 0.0f; }

  JAX_FA_DEVICE void add(int query_tile, const Operand<Element> (&p)[kOperands]) {
    JAX_FA_UNROLL for (const Operand<Element>& operand : p) {
      JAX_FA_UNROLL for (int e = 0; e < kOperandElements; e += 2) {
        const Vector<Element, 2> pair = {operand[e], operand[e + 1]};
        sums_[query_tile] = add_pair(pair, sums_[query_tile]);
      }
    }
  }
  JAX_FA_DEVICE void rescale(int query_tile, float factor) { sums_[query_tile] *= factor; }
  // The whole row's sum so far, in every lane that holds the row; total() is that after gather().
  JAX_FA_DEVICE float so_far(int query_tile) const { return row_sum(sums_[query_tile]); }
  JAX_FA_DEVICE void gather() { JAX_FA_UNROLL for (float& sum : sums_) sum = row_sum(sum); }
  JAX_FA_DEVICE float total(int query_tile) const { return sums_[query_tile]; }

 private:
  JAX_FA_DEVICE static float add_pair(Vector<bfloat16, 2> pair, float sum) {
    const bfloat16 one = 1.0f;
    return __builtin_amdgcn_fdot2_f32_bf16(pair, Vector<bfloat16, 2>{one, one}, sum, false);
  }
  JAX_FA_DEVICE static float add_pair(Vector<float16, 2> pair, float sum) {
    const float16 one = 1.0f;
    return __builtin_amdgcn_fdot2(pair, Vector<float16, 2>{one, one}, sum, false);
  }

  float sums_[kQueryTiles];  // of what the lane holds
};

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX950_MATRIX_H_
