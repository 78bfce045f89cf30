// The target that is compiled for. The build defines JAX_FA_TARGET, the name of its folders
// arch/<target>/ and mainloop/<target>/ and of the namespace of what they have for the launcher
// too.
#ifndef JAX_FA_KERNELS_TARGET_H_
#define JAX_FA_KERNELS_TARGET_H_

#ifndef JAX_FA_TARGET
#error "JAX_FA_TARGET must be the name of a folder in csrc/kernels/mainloop/"
#endif

// A header of that target, for #include. clang-format would put spaces into the path.
// clang-format off
#define JAX_FA_TARGET_HEADER(floor, file) <kernels/floor/JAX_FA_TARGET/file>
// clang-format on

namespace jax_fa {

namespace JAX_FA_TARGET {}
namespace target = JAX_FA_TARGET;

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_TARGET_H_
