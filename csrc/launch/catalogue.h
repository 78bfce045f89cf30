// The kernels of the embedded code objects, by what they compute.
#ifndef JAX_FA_LAUNCH_CATALOGUE_H_
#define JAX_FA_LAUNCH_CATALOGUE_H_

#include <cstdint>

#include "kernels/attention/tiles.h"
#include "runtime/targets.h"

namespace jax_fa {

enum class DataType { kBfloat16, kFloat16 };

// Flash kernels make many query rows of one head. Decode kernels make few rows of all heads of a
// group, and may split the keys. Wide decode kernels are decode kernels with 64 rows in a tile, on
// targets whose other decode tiles have fewer.
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
