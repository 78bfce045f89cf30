// Instructions that only gfx12 has and that are no plain lane functions.
#ifndef JAX_FA_EMULATOR_EXEC_GFX1201_H_
#define JAX_FA_EMULATOR_EXEC_GFX1201_H_

#include <span>

#include "emulator/state/instruction.h"

namespace jax_fa::emulator {

// How the halves of a VOPD pair run one after the other as if both read before either wrote.
ExecFn ChooseDualExec(const Instruction& x, const Instruction& y);

// v_permlane*, global_load_tr_*, cache control.
std::span<const Opcode> Gfx1201OwnRows();

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_EXEC_GFX1201_H_
