// The kernels of the embedded code objects, by what they compute; the same list on every target.
#ifndef JAX_FA_LAUNCH_CATALOGUE_H_
#define JAX_FA_LAUNCH_CATALOGUE_H_

#include "kernels/attention/tiles.h"
#include "runtime/runtime.h"

namespace jax_fa {

enum class DataType { kBfloat16, kFloat16 };

struct FlashKernel {
  const char* name;
  DataType dtype;
  int head_dim_tile;  // the widest H it serves
  bool soft_cap;
};

// The kernel with the narrowest tile that holds head_dim; null when there is none.
const FlashKernel* FindFlashKernel(DataType dtype, int64_t head_dim, bool soft_cap);

// The tile numbers that the target's instantiation of `kernel` was compiled with.
FlashTile GetFlashTile(Target target, const FlashKernel& kernel);

}  // namespace jax_fa

#endif  // JAX_FA_LAUNCH_CATALOGUE_H_
