// gfx950: one switch for each decision of the schedule of two groups, so that what it is worth can
// be measured. The values here are those of what is shipped; a build defines others by its
// JAX_FA_DEVICE_SWITCHES, `benchmarks/run.py ablations` one by one.
//
//   JAX_FA_TWO_GROUPS     0: all waves of a workgroup are in phase (mainloop.h)
//   JAX_FA_PRIORITY       0: no s_setprio for the matrix block
//   JAX_FA_STAGES         3: K and V rings of three tiles, of which copies have one interval to
//   land JAX_FA_OPERANDS_AHEAD operands read ahead of their use; 0: by head size JAX_FA_MATRIX_SUMS
//   0, 1: sums of weights by the vector unit, the matrix core; 2: by head size
//   JAX_FA_LAZY_REFERENCE 0: the reference is the maximum so far, and output follows on every tile
//   JAX_FA_CAUSAL_PASSES  0: causal grids are dispatched head by head (attention/scheduler.h)
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX950_SWITCHES_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX950_SWITCHES_H_

#ifndef JAX_FA_TWO_GROUPS
#define JAX_FA_TWO_GROUPS 1
#endif
#ifndef JAX_FA_PRIORITY
#define JAX_FA_PRIORITY 1
#endif
#ifndef JAX_FA_STAGES
#define JAX_FA_STAGES 4
#endif
#ifndef JAX_FA_OPERANDS_AHEAD
#define JAX_FA_OPERANDS_AHEAD 0
#endif
#ifndef JAX_FA_MATRIX_SUMS
#define JAX_FA_MATRIX_SUMS 2
#endif
#ifndef JAX_FA_LAZY_REFERENCE
#define JAX_FA_LAZY_REFERENCE 1
#endif

namespace jax_fa::gfx950 {

inline constexpr bool kTwoGroups = JAX_FA_TWO_GROUPS;
inline constexpr bool kPriority = JAX_FA_PRIORITY;
inline constexpr int kStages = JAX_FA_STAGES;
static_assert(kStages == 3 || kStages == 4);
inline constexpr bool kLazyReference = JAX_FA_LAZY_REFERENCE;

// With H = 256 an operand is used twice, not three times: more of them cover the latency of LDS.
constexpr int operands_ahead(int head_dim) {
  return JAX_FA_OPERANDS_AHEAD ? JAX_FA_OPERANDS_AHEAD : head_dim < 256 ? 4 : 5;
}
// With H = 256 the matrix core has no time to spare: there the vector unit sums, behind the packs.
constexpr bool sums_on_matrix_core(int head_dim) {
  return JAX_FA_MATRIX_SUMS == 2 ? head_dim < 256 : JAX_FA_MATRIX_SUMS;
}

}  // namespace jax_fa::gfx950

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX950_SWITCHES_H_
