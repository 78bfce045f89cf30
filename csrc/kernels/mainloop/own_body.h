// Kernels whose schedule reaches from the first copy to the last store, so that it takes the place
// of forward.h's body and not of the loop in it alone. A target's mainloop.h specialises this.
#ifndef JAX_FA_KERNELS_MAINLOOP_OWN_BODY_H_
#define JAX_FA_KERNELS_MAINLOOP_OWN_BODY_H_

namespace jax_fa {

template <class Config>
struct OwnBody {
  // Where true: static constexpr bool kServesAll, static bool serves(params), static void run(). It
  // serves all pages of whole key tiles that a buffer reaches.
  static constexpr bool kExists = false;
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_OWN_BODY_H_
