// The opcodes of gfx950: their numbers and mnemonics, joined with the instruction families.
#ifndef JAX_FA_EMULATOR_TARGET_GFX950_DECODE_H_
#define JAX_FA_EMULATOR_TARGET_GFX950_DECODE_H_

#include <cstdint>
#include <span>
#include <string>

#include "emulator/chip/chip.h"
#include "emulator/decode/decode.h"
#include "emulator/exec/families.h"

namespace jax_fa::emulator {

// scalar_names.cc.
std::span<const OpcodeName> Gfx950Sop1Names();
std::span<const OpcodeName> Gfx950Sop2Names();
std::span<const OpcodeName> Gfx950SopcNames();
std::span<const OpcodeName> Gfx950SopkNames();
std::span<const OpcodeName> Gfx950SoppNames();
std::span<const OpcodeName> Gfx950SmemNames();
// names.cc: every opcode the target has, implemented or not.
std::span<const OpcodeName> Gfx950Vop1Names();
std::span<const OpcodeName> Gfx950Vop2Names();
std::span<const OpcodeName> Gfx950VopcNames();
std::span<const OpcodeName> Gfx950Vop3Names();  // those that are VOP3 only
std::span<const OpcodeName> Gfx950Vop3pNames();
std::span<const OpcodeName> Gfx950DsNames();
std::span<const OpcodeName> Gfx950GlobalNames();  // without "global_"; FLAT and SCRATCH share them
std::span<const OpcodeName> Gfx950MubufNames();
std::span<const OpcodeName> Gfx950MtbufNames();

// Where the VOP1, VOP2 and VOPC opcodes lie in VOP3.
inline constexpr uint32_t kGfx950Vop2InVop3 = 0x100, kGfx950Vop1InVop3 = 0x140,
                          kGfx950Vop3Only = 0x1c0;
// MUBUF rows of the LDS-DMA forms, beside those of the loads they share an opcode with.
inline constexpr uint32_t kGfx950MubufLds = 0x100;
// VOP3P: what loads the scales of the matrix product that follows, and the rows of such products
// beside those without scales.
inline constexpr uint16_t kGfx950LoadScale = 44, kGfx950Scaled = 0x80;

// Bits of Opcode::flags of this target alone.
enum Gfx950Flags : uint32_t {
  kScalarResult950 = 1u << 25,  // dst is an SGPR
  kAgprSource = 1u << 26,       // source 0 is an AGPR
  kAgprResult = 1u << 27,       // dst is an AGPR
};

std::string DecodeGfx950(std::span<const uint32_t> words, InstructionStore* store,
                         Instruction* instruction);

// The implemented rows.
const OpcodeIndex& Gfx950Opcodes();
// "v_cubeid_f32 is not implemented", or "unknown VOP3 opcode 700".
std::string Gfx950Unknown(Encoding encoding, uint32_t number);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TARGET_GFX950_DECODE_H_
