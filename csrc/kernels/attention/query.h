// Loads a wave's query rows as matrix operands, once.
#ifndef JAX_FA_KERNELS_ATTENTION_QUERY_H_
#define JAX_FA_KERNELS_ATTENTION_QUERY_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/page_table.h"
#include "kernels/device.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

// Rows past the sequence's length and head elements past the run-time H are zero. `factor` is exact
// (1, -1 or 0): it takes the sign of a negative scale, so that larger scores always weigh more.
template <class Config>
JAX_FA_DEVICE QueryFragments<Config> load_query(const DenseRows& rows, int first_row,
                                                float factor) {
  using Element = typename Config::Element;
  using Operand = arch::Operand<Element>;
  const arch::Buffer buffer = rows.rows(first_row, Config::kRowsPerWave);
  QueryFragments<Config> query;
  JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
    const u32 row = q * arch::kFragmentDim + arch::fragment_column();
    JAX_FA_UNROLL for (int k = 0; k < Config::kHeadSteps; ++k) {
      const u32 column_bytes = (k * arch::kFragmentDepth + arch::operand_depth()) * sizeof(Element);
      query.step[q][k] = __builtin_bit_cast(
          Operand, arch::load_16_bytes(buffer, column_bytes < rows.head_bytes()
                                                   ? row * rows.row_stride_bytes() + column_bytes
                                                   : arch::kOutOfRange));
    }
  }
  if (__builtin_expect(factor != 1.0f, 0)) {
    JAX_FA_UNROLL for (auto& row : query.step) {
      JAX_FA_UNROLL for (Operand& operand : row) {
        JAX_FA_UNROLL for (int e = 0; e < arch::kOperandElements; ++e) {
          operand[e] = static_cast<Element>(static_cast<float>(operand[e]) * factor);
        }
      }
    }
  }
  return query;
}

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_ATTENTION_QUERY_H_
