// The device vocabulary of the chip being compiled for: the same names in every arch/<target>/.
//
// Shared code (tile/, attention/) sees a chip only through these headers:
//   limits.h  wave size, registers, LDS, dies, and the tile numbers chosen for the chip
//   lane.h    lane and wave ids, wave-wide votes, maxima over the lanes of a row, exp2, log2
//   wait.h    waits, barriers, scheduling fences
//   global.h  bounded buffers in global memory
//   lds.h     LDS tiles, where the chip uses them
//   matrix.h  fragment types, the matrix instruction, packing, row sums
// arch/<target>/mainloop.h is included by the entry points only.
#ifndef JAX_FA_KERNELS_ARCH_ARCH_H_
#define JAX_FA_KERNELS_ARCH_ARCH_H_

#if defined(__gfx950__)
#include "kernels/arch/gfx950/global.h"
#include "kernels/arch/gfx950/lane.h"
#include "kernels/arch/gfx950/lds.h"
#include "kernels/arch/gfx950/limits.h"
#include "kernels/arch/gfx950/matrix.h"
#include "kernels/arch/gfx950/wait.h"
#elif defined(__gfx1201__)
#include "kernels/arch/gfx1201/global.h"
#include "kernels/arch/gfx1201/lane.h"
#include "kernels/arch/gfx1201/lds.h"
#include "kernels/arch/gfx1201/limits.h"
#include "kernels/arch/gfx1201/matrix.h"
#include "kernels/arch/gfx1201/wait.h"
#else
#error "device code is compiled for gfx950 or gfx1201"
#endif

#endif  // JAX_FA_KERNELS_ARCH_ARCH_H_
