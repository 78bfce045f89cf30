// How a defect reaches the caller: with kernel, place and instruction.
#include <algorithm>

#include "emulator/check/check.h"
#include "emulator/decode/disassemble.h"
#include "emulator/object/launch_context.h"

namespace jax_fa::emulator {
namespace {

constexpr size_t kMaxFindings = 100;  // of one workgroup

std::string Place(const Wave& wave, const Instruction& instruction, int lane) {
  const Workgroup& group = *wave.group;
  std::string text = "kernel " + group.launch->kernel->info.name + ", workgroup (" +
                     std::to_string(group.id[0]) + ", " + std::to_string(group.id[1]) + ", " +
                     std::to_string(group.id[2]) + "), wave " + std::to_string(wave.index_in_group);
  if (lane >= 0) text += ", lane " + std::to_string(lane);
  return text + ", pc " + HexText(instruction.pc) + ": " + Disassemble(instruction);
}

}  // namespace

void Fail(const Wave& wave, const Instruction& instruction, const std::string& what, int lane) {
  throw EmulatorError(Place(wave, instruction, lane) + ": " + what);
}

void Report(Wave& wave, const Instruction& instruction, const std::string& what, int lane) {
  if (!wave.group->launch->options->collect) Fail(wave, instruction, what, lane);
  Workgroup& group = *wave.group;
  // Once for each kind of finding at each instruction: other waves, later turns of a loop and
  // further registers say nothing new, and would crowd out what does.
  std::string kind = what;
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  kind += std::to_string(instruction.pc);
  if (group.findings.size() >= kMaxFindings || !group.finding_kinds.insert(kind).second) return;
  group.findings.push_back(Place(wave, instruction, lane) + ": " + what);
}

}  // namespace jax_fa::emulator
