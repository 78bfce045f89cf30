// The kernels of the embedded code objects, by what they compute.
#ifndef JAX_FA_LAUNCH_CATALOGUE_H_
#define JAX_FA_LAUNCH_CATALOGUE_H_

#include <cstdint>

#include "kernels/attention/tiles.h"
#include "runtime/targets.h"

namespace jax_fa {

enum class DataType { kBfloat16, kFloat16 };

// Flash: many query rows of one head. Decode: few rows of all heads of a group; splits. Wide
// decode: the same with more rows in a tile, of targets and head sizes where decode's has fewer
// than 64.
enum class KernelFamily { kFlash, kDecode, kWideDecode };

struct AttentionKernel {
  const char* name;
  KernelFamily family;
  DataType dtype;
  int head_dim_tile;  // the widest H it serves
  bool soft_cap;      // decode kernels serve both
  bool paged;
};

// The target's kernel with the narrowest tile that holds head_dim; null when there is none.
const AttentionKernel* FindAttentionKernel(const Target& target, KernelFamily family,
                                           DataType dtype, int64_t head_dim, bool soft_cap,
                                           bool paged);

const char* MergeKernelName(DataType dtype);

// The tile numbers that the target's kernels of this family and head size were compiled with; zeros
// where it has none.
AttentionTile GetTile(const Target& target, KernelFamily family, int head_dim_tile);

}  // namespace jax_fa

#endif  // JAX_FA_LAUNCH_CATALOGUE_H_
