// Limits of one launch.
#ifndef JAX_FA_LAUNCH_GRID_H_
#define JAX_FA_LAUNCH_GRID_H_

#include <algorithm>
#include <cstdint>

namespace jax_fa {

// Workgroups of `threads` lanes along x: a signed 32-bit count of them, and fewer than 2^32 lanes.
constexpr int64_t MaxGrid(int threads) {
  return std::min<int64_t>(0x7fffffff, 0xffffffffll / threads);
}

}  // namespace jax_fa

#endif  // JAX_FA_LAUNCH_GRID_H_
