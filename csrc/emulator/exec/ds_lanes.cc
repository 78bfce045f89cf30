// Exchanges between lanes that go through the LDS crossbar but touch no LDS: ds_permute_b32,
// ds_bpermute_b32, ds_swizzle_b32. A lane that is off delivers 0.
#include "emulator/exec/transfer.h"

namespace jax_fa::emulator {
namespace {

InFlight& Start(Wave& wave, const Instruction& instruction) {
  InFlight& result = Issue(wave, instruction, Counter::kDs);
  ToRegisters<kDword1>(wave, instruction, &result);
  return result;
}

uint32_t LaneOfAddress(const Wave& wave, const Instruction& instruction, int lane) {
  const uint32_t address = wave.Row(instruction.src[0].index)[lane];
  return ((address + static_cast<uint32_t>(instruction.mem.offset)) / 4) & (wave.lanes - 1u);
}

// Pull: every lane names the lane it reads.
void ExecBpermute(Wave& wave, const Instruction& instruction) {
  const uint32_t* data = wave.Row(instruction.src[1].index);
  InFlight& result = Start(wave, instruction);
  ForLanes(wave.exec, [&](int l) {
    const uint32_t from = LaneOfAddress(wave, instruction, l);
    result.data[static_cast<size_t>(l)] = ((wave.exec >> from) & 1) != 0 ? data[from] : 0;
  });
  Push(wave, instruction, result);
}

// Push: every lane names the lane it writes; the highest of several writers wins.
void ExecPermute(Wave& wave, const Instruction& instruction) {
  const uint32_t* data = wave.Row(instruction.src[1].index);
  InFlight& result = Start(wave, instruction);
  for (int l = 0; l < wave.lanes; ++l) result.data[static_cast<size_t>(l)] = 0;
  ForLanes(wave.exec, [&](int l) { result.data[LaneOfAddress(wave, instruction, l)] = data[l]; });
  Push(wave, instruction, result);
}

// Which lane a swizzle reads; -1 for a pattern that is not known.
int SwizzleSource(uint32_t pattern, int lane) {
  if (pattern >= 0xe000) return -1;  // FFT order
  const int block = lane & ~31;
  const int i = lane & 31;
  if (pattern >= 0xc000) {  // rotate within groups that the mask leaves
    const int amount = static_cast<int>((pattern >> 5) & 31);
    const int mask = static_cast<int>(pattern & 31);
    const int moved = ((pattern >> 10) & 1) != 0 ? i - amount : i + amount;
    return block + ((i & mask) | (moved & ~mask & 31));
  }
  if ((pattern & 0x8000) != 0) {  // permutation of each four
    return (lane & ~3) + static_cast<int>((pattern >> (2 * (lane & 3))) & 3);
  }
  const int and_mask = static_cast<int>(pattern & 31);
  const int or_mask = static_cast<int>((pattern >> 5) & 31);
  const int xor_mask = static_cast<int>((pattern >> 10) & 31);
  return block + (((i & and_mask) | or_mask) ^ xor_mask);
}

void ExecSwizzle(Wave& wave, const Instruction& instruction) {
  const uint32_t pattern = static_cast<uint32_t>(instruction.mem.offset);
  if (SwizzleSource(pattern, 0) < 0) {
    Fail(wave, instruction, "unknown swizzle pattern " + std::to_string(pattern));
  }
  const uint32_t* data = wave.Row(instruction.src[0].index);
  InFlight& result = Start(wave, instruction);
  ForLanes(wave.exec, [&](int l) {
    const int from = SwizzleSource(pattern, l);
    result.data[static_cast<size_t>(l)] = ((wave.exec >> from) & 1) != 0 ? data[from] : 0;
  });
  Push(wave, instruction, result);
}

constexpr Opcode kDsLaneRows[] = {
    MemoryRow("ds_bpermute_b32", OpClass::kLdsRead, &ExecBpermute, 1, {1, 1, 0}, kCrossLane),
    MemoryRow("ds_permute_b32", OpClass::kLdsRead, &ExecPermute, 1, {1, 1, 0}, kCrossLane),
    MemoryRow("ds_swizzle_b32", OpClass::kLdsRead, &ExecSwizzle, 1, {1, 0, 0}, kCrossLane),
};

}  // namespace

std::span<const Opcode> DsLaneRows() { return kDsLaneRows; }

}  // namespace jax_fa::emulator
