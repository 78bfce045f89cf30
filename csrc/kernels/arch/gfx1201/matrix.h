// gfx1201: matrix fragments and v_wmma_f32_16x16x16.
//
// Lane l of a fragment, element e, accumulator register r (wave32):
//   A operand  row l%16, depth 8(l/16)+e      B operand  column l%16, depth 8(l/16)+e
//   accumulator  row 8(l/16)+r, column l%16
// Depth labels need only agree between A and B. So P^T as it leaves an accumulator of S^T = K.Q^T
// is, packed, the B operand of O^T = V^T.P^T.
#ifndef JAX_FA_KERNELS_ARCH_GFX1201_MATRIX_H_
#define JAX_FA_KERNELS_ARCH_GFX1201_MATRIX_H_

#include "kernels/arch/gfx1201/lane.h"
#include "kernels/device.h"

namespace jax_fa::arch {

inline constexpr int kFragmentDim = 16;      // rows and columns of a fragment
inline constexpr int kFragmentDepth = 16;    // head elements, or keys, summed by one instruction
inline constexpr int kAccumulatorRows = 8;   // consecutive rows of its column that a lane holds
inline constexpr int kOperandElements = 8;   // consecutive depths that a lane holds
inline constexpr int kScoresPerOperand = 1;  // score fragments that make one P operand

template <class Element>
using Operand = Vector<Element, kOperandElements>;
using Accumulator = Vector<float, kAccumulatorRows>;

// Column of a fragment that this lane holds, as A row, B column or accumulator column.
JAX_FA_DEVICE u32 fragment_column() { return lane_id() % kFragmentDim; }
// First depth of this lane in an operand, and first row of this lane in an accumulator.
JAX_FA_DEVICE u32 operand_depth() { return lane_id() / kFragmentDim * kOperandElements; }
JAX_FA_DEVICE u32 accumulator_row() { return lane_id() / kFragmentDim * kAccumulatorRows; }

JAX_FA_DEVICE Accumulator multiply_add(Operand<bfloat16> a, Operand<bfloat16> b, Accumulator c) {
  using Storage = Vector<short, kOperandElements>;  // the builtin's spelling of the same bits
  return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(__builtin_bit_cast(Storage, a),
                                                           __builtin_bit_cast(Storage, b), c);
}
JAX_FA_DEVICE Accumulator multiply_add(Operand<float16> a, Operand<float16> b, Accumulator c) {
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c);
}

// Probabilities are rounded towards zero, a pair by one instruction: gfx1201 has no conversion to
// bfloat16, and to nearest even it would take eleven. The row sums take the rounded values, so that
// what is lost of numerator and denominator cancels in the output.
JAX_FA_DEVICE u32 pack_pair(float low, float high, bfloat16) {
  return __builtin_amdgcn_perm(__builtin_bit_cast(u32, high), __builtin_bit_cast(u32, low),
                               /*upper halves*/ 0x07060302);
}
JAX_FA_DEVICE u32 pack_pair(float low, float high, float16) {
  return __builtin_bit_cast(u32, __builtin_amdgcn_cvt_pkrtz(low, high));
}

// log2 of what half a unit in the last place adds to 1: with it, a sum of probabilities rounded
// towards zero is off by as much either way as one of probabilities rounded to nearest.
template <class Element, int kHeadDim>
inline constexpr float kPackingLossLog2 = __is_same(Element, bfloat16) ? 0.00562455f : 0.00070428f;

// Rounds the probabilities of one score fragment into one P^T operand.
template <class Element, int kHeadDim>
JAX_FA_DEVICE Operand<Element> pack_probabilities(const Accumulator* scores) {
  Vector<u32, kOperandElements / 2> packed;
  JAX_FA_UNROLL for (int e = 0; e < kOperandElements; e += 2) {
    const float low = scores[0][e], high = scores[0][e + 1];
    packed[e / 2] = pack_pair(low, high, Element{});
  }
  return __builtin_bit_cast(Operand<Element>, packed);
}

JAX_FA_DEVICE float add_pair(u32 pair, float sum, bfloat16) {
  using Pair = Vector<bfloat16, 2>;
  return __builtin_amdgcn_fdot2_f32_bf16(__builtin_bit_cast(Pair, pair),
                                         __builtin_bit_cast(Pair, 0x3f803f80u), sum, false);
}
JAX_FA_DEVICE float add_pair(u32 pair, float sum, float16) {
  using Pair = Vector<float16, 2>;
  return __builtin_amdgcn_fdot2(__builtin_bit_cast(Pair, pair),
                                __builtin_bit_cast(Pair, 0x3c003c00u), sum, false);
}
// `sum` and the elements of operands that this lane holds, pairwise by v_dot2 with ones.
template <class Element, int kOperands>
JAX_FA_DEVICE float add_elements(const Operand<Element> (&p)[kOperands], float sum) {
  using Pairs = Vector<u32, kOperandElements / 2>;
  JAX_FA_UNROLL for (int i = 0; i < kOperands; ++i) {
    const auto pairs = __builtin_bit_cast(Pairs, p[i]);
    JAX_FA_UNROLL for (int e = 0; e < kOperandElements / 2; ++e) {
      const u32 pair = pairs[e];
      sum = add_pair(pair, sum, Element{});
    }
  }
  return sum;
}

// Sums of rounded probabilities over keys, one per query row: each lane sums its own half of the
// row's keys; the two halves meet once, in total().
template <class Element, int kQueryTiles, int kOperands>
class RowSums {
 public:
  JAX_FA_DEVICE RowSums() { JAX_FA_UNROLL for (float& sum : sums_) sum = 0.0f; }

  JAX_FA_DEVICE void add(int query_tile, const Operand<Element> (&p)[kOperands]) {
    sums_[query_tile] = add_elements(p, sums_[query_tile]);
  }
  JAX_FA_DEVICE void rescale(int query_tile, float factor) { sums_[query_tile] *= factor; }
  // The whole row's sum, in every lane that holds the row.
  JAX_FA_DEVICE float total(int query_tile) const {
    return sums_[query_tile] + other_half(sums_[query_tile]);
  }

 private:
  float sums_[kQueryTiles];
};

}  // namespace jax_fa::arch

#endif  // JAX_FA_KERNELS_ARCH_GFX1201_MATRIX_H_
