#include "emulator/object/listing.h"

#include <string_view>

#include "emulator/decode/decode.h"
#include "emulator/decode/disassemble.h"

namespace jax_fa::emulator {

std::vector<ListedInstruction> ListInstructions(const Program& program, const Kernel& kernel) {
  const KernelCode& code = program.Code(kernel);
  std::vector<ListedInstruction> listing;
  for (uint32_t pc = kernel.text_begin; pc < kernel.text_end;) {
    const Instruction& instruction = *code.slots[(pc - code.begin) / 4];
    const Opcode& opcode = *instruction.opcode;
    ListedInstruction& listed = listing.emplace_back();
    listed.pc = pc;
    listed.text = Disassemble(instruction);
    listed.mnemonic = opcode.mnemonic;
    listed.op_class = opcode.op_class;
    listed.falls_through = (opcode.flags & kTerminator) == 0;
    pc += instruction.size_bytes;
    // Jumps through registers go where only a run can tell; of SOPP, s_endpgm and s_trap go
    // nowhere.
    const bool jumps = opcode.op_class == OpClass::kBranch && opcode.encoding == kSopp &&
                       (std::string_view(opcode.mnemonic).starts_with("s_branch") ||
                        std::string_view(opcode.mnemonic).starts_with("s_cbranch"));
    if (jumps) listed.target = pc + static_cast<uint32_t>(instruction.simm16) * 4;
  }
  return listing;
}

}  // namespace jax_fa::emulator
