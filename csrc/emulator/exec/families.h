// The instruction families that both targets share, by mnemonic.
//
// A family row says what an operation does and which operands it has; the targets give it their
// opcode numbers and, where they differ, their names. Rows are named as gfx950 spells them.
//
// Operands of the memory families:
//   DS       src[0] address, src[1] and src[2] data
//   FLAT     src[0] address (64 bits), src[1] data
//   GLOBAL   src[0] address (64 bits, or a 32-bit offset when there is an saddr), src[1] data,
//            src[2] saddr (64-bit SGPR pair) or kNone
//   SCRATCH  src[0] 32-bit offset or kNone, src[1] data, src[2] saddr (32-bit SGPR) or kNone
//   MUBUF    src[0] offset and index VGPRs or kNone, src[1] data, src[2] resource (4 SGPRs),
//            mem.soffset the scalar offset
// Atomics return their old value to dst when it is not kNone. LDS-DMA is `mem.lds`, or a row of its
// own
// ("global_load_lds_dwordx4"), without data.
#ifndef JAX_FA_EMULATOR_EXEC_FAMILIES_H_
#define JAX_FA_EMULATOR_EXEC_FAMILIES_H_

#include <span>
#include <string_view>
#include <unordered_map>

#include "emulator/simd/level.h"
#include "emulator/state/instruction.h"

namespace jax_fa::emulator {

// One opcode of a target.
struct OpcodeName {
  uint16_t number;
  const char* mnemonic;
  const char* row = nullptr;  // the family row, where its name differs from the mnemonic
};

// The row named `mnemonic` of the host's SIMD level, or null. Encoding and number are not set.
const Opcode* FamilyRow(std::string_view mnemonic);

// The rows of a SIMD level by mnemonic, whether this host can run them or not.
std::unordered_map<std::string_view, const Opcode*> SimdRows(SimdLevel level);

std::span<const Opcode> DsRows();      // exec/ds.cc
std::span<const Opcode> DsLaneRows();  // exec/ds_lanes.cc
std::span<const Opcode> VmemRows();    // exec/vmem.cc
std::span<const Opcode> MubufRows();   // exec/mubuf.cc

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_EXEC_FAMILIES_H_
