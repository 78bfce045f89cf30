#include "emulator/object/program.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "emulator/check/hazard.h"
#include "emulator/decode/disassemble.h"
#include "emulator/object/launch_context.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {
namespace {

// Stands where nothing could be decoded. Text past the end of a function, or data in it, is never
// reached, so this complains only when it runs.
void ExecUndecoded(Wave& wave, const Instruction& instruction) {
  const KernelCode& code = *wave.group->launch->code;
  Fail(wave, instruction, *code.failures[(instruction.pc - code.begin) / 4]);
}
constexpr Opcode kUndecoded = {
    kEncodingCount, 0, "(undecoded)", OpClass::kNop, ExecUndecoded, 0, 0, {}, 0};

// Empty, or which register lies outside what the kernel has.
std::string OutsideRegisters(const Instruction& instruction, VgprRows rows) {
  const auto outside = [&](const Operand& operand) {
    if (operand.kind != OperandKind::kVgpr) return false;
    const bool accumulation = operand.index >= 256;
    const uint32_t first = accumulation ? operand.index - 256u : operand.index;
    return first + operand.dwords > (accumulation ? rows.accumulation : rows.vector);
  };
  for (const Operand* operand : {&instruction.dst, &instruction.sdst, &instruction.src[0],
                                 &instruction.src[1], &instruction.src[2]}) {
    if (outside(*operand)) {
      return "uses " + RegisterName(*operand) + "; the kernel has " + std::to_string(rows.vector) +
             " VGPRs and " + std::to_string(rows.accumulation) + " AGPRs";
    }
  }
  return instruction.dual ? OutsideRegisters(*instruction.dual, rows) : "";
}

// Empty, or which tuple of registers begins at an odd one, where the target does not allow it.
std::string OddRegisters(const Instruction& instruction) {
  for (const Operand* operand :
       {&instruction.dst, &instruction.src[0], &instruction.src[1], &instruction.src[2]}) {
    if (operand->kind == OperandKind::kVgpr && operand->dwords > 1 && operand->index % 2 != 0) {
      return "uses " + RegisterName(*operand) + "; several registers begin at an even one";
    }
  }
  return "";
}

constexpr uint32_t kMaxTextBytes = 64u << 20;

void DecodeRange(const Program& program, const Kernel& kernel, uint32_t begin, uint32_t end,
                 KernelCode* code, std::vector<uint32_t>* starts) {
  const VgprRows rows = program.AllocatedVgprs(kernel);
  uint32_t pc = begin;
  while (pc < end) {
    // Padded with zeros past the end, so that decoders may look ahead.
    std::array<uint32_t, 8> words = {};
    std::memcpy(words.data(), program.image.data() + pc, std::min<size_t>(end - pc, sizeof(words)));
    Instruction instruction;
    std::string failure;
    try {
      failure = (*program.chip->decode)(words, &code->store, &instruction);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (failure.empty() && (!instruction.exec || !instruction.opcode)) failure = "unknown encoding";
    if (failure.empty() && pc + instruction.size_bytes > end) {
      failure = "the text ends within an instruction";
    }
    if (failure.empty()) failure = OutsideRegisters(instruction, rows);
    if (failure.empty() && program.chip->registers.even_tuples) failure = OddRegisters(instruction);
    const uint32_t slot = (pc - code->begin) / 4;
    if (!failure.empty()) {
      instruction = Instruction();
      instruction.exec = ExecUndecoded;
      instruction.opcode = &kUndecoded;
      code->failures[slot] =
          std::make_unique<std::string>(failure + " (" + EncodingWords(words) + ")");
    }
    instruction.pc = pc;
    code->plans[slot] = PlanAccess(instruction, kernel.info.wave_size);
    AccessPlan& plan = code->plans[slot];
    plan.hazard = (*program.chip->plan_hazards)(instruction, plan);
    code->instructions.push_back(instruction);
    starts->push_back(slot);
    pc += instruction.size_bytes;
  }
}

}  // namespace

VgprRows Program::AllocatedVgprs(const Kernel& kernel) const {
  const RegisterFile& file = chip->registers;
  const uint32_t all = ((kernel.descriptor.resource1 & 63) + 1) * file.descriptor_granule;
  const uint32_t vector = std::min(all, 256u);
  if (!file.has_accumulation) return {vector, 0, vector};
  // One file for both kinds: a0 is at ACCUM_OFFSET. Nothing keeps vector registers from reaching
  // past it, and hand-written kernels without AGPRs do; one that used the same registers by both
  // names would not run right here.
  const uint32_t offset = std::min(all, ((kernel.descriptor.resource3 & 63) + 1) * 4);
  return {vector, std::min(all - offset, 256u), all};
}

const KernelCode& Program::Code(const Kernel& kernel) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<KernelCode>& entry = code_[&kernel];
  if (entry) return *entry;

  auto code = std::make_unique<KernelCode>();
  uint32_t begin = kernel.text_begin, end = kernel.text_end;
  for (const auto& [first, last] : functions) {
    begin = std::min(begin, first);
    end = std::max(end, last);
  }
  if (end - begin > kMaxTextBytes) throw EmulatorError("the text is too large");
  code->begin = begin;
  const uint32_t slots = (end - begin) / 4;
  code->slots.resize(slots);
  code->plans.resize(slots);
  code->failures.resize(slots);
  std::vector<uint32_t> starts;
  DecodeRange(*this, kernel, kernel.text_begin, kernel.text_end, code.get(), &starts);
  for (const auto& [first, last] : functions) {
    DecodeRange(*this, kernel, first, last, code.get(), &starts);
  }
  // Pointers once the vector has its final size.
  for (size_t i = 0; i < starts.size(); ++i) {
    const Instruction*& slot = code->slots[starts[i]];
    if (!slot) slot = &code->instructions[i];
  }
  entry = std::move(code);
  return *entry;
}

}  // namespace jax_fa::emulator
