// The opcodes of gfx1201: numbers and mnemonics, and which row of the shared families each
// is.
#ifndef JAX_FA_EMULATOR_TARGET_GFX1201_DECODE_H_
#define JAX_FA_EMULATOR_TARGET_GFX1201_DECODE_H_

#include <cstdint>
#include <span>

#include "emulator/chip/chip.h"
#include "emulator/decode/decode.h"

namespace jax_fa::emulator {

struct Gfx1201Name {
  uint16_t number;
  const char* mnemonic;
  const char* row = nullptr;  // the families' name for the operation; null: the mnemonic itself
};

// The VOP1 and VOP2 opcodes exist as VOP3 too, at these distances; VOPC at its own numbers.
inline constexpr uint16_t kVop2InVop3 = 0x100;
inline constexpr uint16_t kVop1InVop3 = 0x180;

// scalar_names.cc.
std::span<const Gfx1201Name> Gfx1201Sop1Names();
std::span<const Gfx1201Name> Gfx1201Sop2Names();
std::span<const Gfx1201Name> Gfx1201SopcNames();
std::span<const Gfx1201Name> Gfx1201SopkNames();
std::span<const Gfx1201Name> Gfx1201SoppNames();
std::span<const Gfx1201Name> Gfx1201SmemNames();
// names.cc.
std::span<const Gfx1201Name> Gfx1201Vop1Names();
std::span<const Gfx1201Name> Gfx1201Vop2Names();
std::span<const Gfx1201Name> Gfx1201Vop3Names();  // those that are VOP3 only
std::span<const Gfx1201Name> Gfx1201Vop3pNames();
std::span<const Gfx1201Name> Gfx1201VopdNames();  // both halves use these numbers
// v_cmp_<relation>_<type> is number type.base + relation; v_cmpx 128 more.
std::span<const Gfx1201Name> Gfx1201FloatRelations();
std::span<const Gfx1201Name> Gfx1201IntRelations();
std::span<const Gfx1201Name> Gfx1201CompareTypes();
std::span<const Gfx1201Name> Gfx1201ClassCompares();  // v_cmp_class_<type>
// VFLAT, VGLOBAL, VSCRATCH and VBUFFER share numbers: the mnemonic lacks its prefix "global_" etc.
std::span<const Gfx1201Name> Gfx1201MemoryNames();
std::span<const Gfx1201Name> Gfx1201GlobalOnlyNames();
std::span<const Gfx1201Name> Gfx1201DsNames();

// Bits of Opcode::flags that this target's decoder alone looks at, in VALU rows where not said
// otherwise.
enum Gfx1201Flags : uint32_t {
  kScalarResult = 1u << 19,  // the destination is one scalar register
  // Operands that are halves of a register. In VOP1, VOP2 and VOPC bit 7 of such a register number
  // selects the upper half; VOP3 has op_sel for it.
  kHalfSrc0 = 1u << 25,
  kHalfSrc1 = 1u << 26,
  kHalfSrc2 = 1u << 27,
  kHalfDst = 1u << 28,
  kMaskSrc2 = 1u << 29,       // a lane mask: VCC where the encoding has no third source
  kLiteralMiddle = 1u << 30,  // fmamk: source 1 is the literal
  kLiteralLast = 1u << 31,    // fmaak: source 2 is the literal
  kSwappedData = 1u << 31,    // DS rows: the data operands stand the other way round
};

std::string DecodeGfx1201(std::span<const uint32_t> words, InstructionStore* store,
                          Instruction* instruction);

// Every row of the target, joined with the families of the host's SIMD level.
const OpcodeIndex& Gfx1201Opcodes();

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TARGET_GFX1201_DECODE_H_
