// Loads that go to LDS past the registers, and atomic updates of memory: what GLOBAL and MUBUF
// share.
#ifndef JAX_FA_EMULATOR_EXEC_LDS_DMA_H_
#define JAX_FA_EMULATOR_EXEC_LDS_DMA_H_

#include <atomic>

#include "emulator/exec/transfer.h"

namespace jax_fa::emulator {

// Lane l's element goes to LDS address M0 + inst_offset + l * bytes. `pointer(l)` is where it comes
// from.
template <Transfer kTransfer, class PointerOf>
inline void LdsDma(Wave& wave, const Instruction& instruction, PointerOf pointer) {
  const uint64_t address =
      uint64_t{wave.ReadSgpr(kSgprM0)} + static_cast<uint64_t>(int64_t{instruction.mem.offset});
  const uint64_t limit = wave.group->lds.size();
  const int lanes = wave.exec == 0 ? 0 : 64 - __builtin_clzll(wave.exec);
  if (address % 4 != 0 || address > limit ||
      static_cast<uint64_t>(lanes) * kTransfer.bytes > limit - address) {
    Fail(wave, instruction,
         "LDS-DMA to address " + std::to_string(address) + " (" + std::to_string(lanes) +
             " lanes of " + std::to_string(kTransfer.bytes) + " bytes) with " +
             std::to_string(limit) + " bytes of LDS");
  }
  InFlight& result = Issue(wave, instruction, Counter::kLoad);
  result.destination = InFlight::kLds;
  result.lds_address = static_cast<uint32_t>(address);
  result.dwords = static_cast<uint8_t>(kTransfer.dwords());
  result.lanes = wave.exec;
  ForLanes(wave.exec, [&](int l) { TakeLane<kTransfer>(pointer(l), result.data.data(), l); });
  wave.group->lds_traffic.written_bytes +=
      uint64_t{kTransfer.bytes} * static_cast<uint64_t>(__builtin_popcountll(wave.exec));
  Push(wave, instruction, result);
}

// Updates memory that other workgroups may be updating at the same time; returns the old value.
template <Atomic kOp, class U>
inline U ModifyMemory(uint8_t* target, U operand, U compare, const Wave& wave,
                      const Instruction& instruction, int lane) {
  if (reinterpret_cast<uintptr_t>(target) % alignof(U) != 0) {
    Fail(wave, instruction, "an atomic access that is not aligned", lane);
  }
  std::atomic_ref<U> memory(*reinterpret_cast<U*>(target));
  U old = memory.load();
  while (!memory.compare_exchange_weak(old, Modify<kOp, U>(old, operand, compare))) {
  }
  return old;
}
// The same of a lane's registers. The compare-and-swap has the new value first, then what it
// compares with.
template <Atomic kOp, class U>
inline U ModifyMemory(uint8_t* target, const uint32_t* data, int lane, const Wave& wave,
                      const Instruction& instruction) {
  constexpr Transfer kOne{sizeof(U)};
  U operand, compare = 0;
  GiveLane<kOne>(reinterpret_cast<uint8_t*>(&operand), data, lane);
  if constexpr (kOp == Atomic::kCompareSwap) {
    GiveLane<kOne>(reinterpret_cast<uint8_t*>(&compare), data + kOne.dwords() * kLaneStride, lane);
  }
  return ModifyMemory<kOp, U>(target, operand, compare, wave, instruction, lane);
}

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_EXEC_LDS_DMA_H_
