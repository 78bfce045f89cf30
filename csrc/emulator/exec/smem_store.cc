// Scalar stores and atomics, which count beside scalar loads and complete out of order like these.
// src[2] is the data. The compare-and-swap has the new value first, then what it compares with.
#include <cstring>

#include "emulator/exec/in_flight.h"
#include "emulator/exec/lds_dma.h"
#include "emulator/exec/scalar.h"
#include "emulator/state/memory.h"

namespace jax_fa::emulator {
namespace {

uint64_t ScalarAddress(const Wave& wave, const Instruction& instruction) {
  uint64_t address = ReadScalarSource(wave, instruction.src[0]) +
                     static_cast<uint64_t>(int64_t{instruction.mem.offset});
  if (instruction.src[1].kind != OperandKind::kNone) {
    address += ReadScalar32(wave, instruction.src[1]);
  }
  return address & ~uint64_t{3};
}

InFlight& IssueScalar(Wave& wave, const Instruction& instruction) {
  InFlight& result = Issue(wave, instruction, Counter::kKm);
  result.in_order = false;
  return result;
}

template <uint32_t kDwords>
void ScalarStore(Wave& wave, const Instruction& instruction) {
  uint8_t* to =
      StorePointer(wave, instruction, ScalarAddress(wave, instruction), 4 * kDwords, /*lane=*/-1);
  for (uint32_t d = 0; d < kDwords; ++d) {
    const uint32_t value = wave.ReadSgpr(instruction.src[2].index + d);
    std::memcpy(to + 4 * d, &value, sizeof(value));
  }
  Push(wave, instruction, IssueScalar(wave, instruction));
}

template <Atomic kOp, class U>
void ScalarAtomic(Wave& wave, const Instruction& instruction) {
  constexpr uint32_t kDwords = sizeof(U) / 4;
  U data[2] = {};
  for (uint32_t d = 0; d < instruction.src[2].dwords; ++d) {
    const uint32_t value = wave.ReadSgpr(instruction.src[2].index + d);
    std::memcpy(reinterpret_cast<uint8_t*>(data) + 4 * d, &value, sizeof(value));
  }
  uint8_t* target =
      StorePointer(wave, instruction, ScalarAddress(wave, instruction), sizeof(U), /*lane=*/-1);
  const U old = ModifyMemory<kOp, U>(target, data[0], data[1], wave, instruction, /*lane=*/-1);
  InFlight& result = IssueScalar(wave, instruction);
  if (instruction.dst.kind != OperandKind::kNone) {
    result.destination = InFlight::kScalar;
    result.first_register = instruction.dst.index;
    result.dwords = kDwords;
    std::memcpy(result.data.data(), &old, sizeof(U));
  }
  Push(wave, instruction, result);
}

template <uint8_t kDwords>
constexpr ScalarOp StoreOp(const char* name) {
  return {kSmemEncoding, name, OpClass::kSmem, &ScalarStore<kDwords>, 0, {2, 1, kDwords}, kIsStore};
}
template <Atomic kOp, class U>
constexpr ScalarOp AtomicOp(const char* name) {
  constexpr uint8_t kDwords = sizeof(U) / 4;
  constexpr uint8_t kData = kOp == Atomic::kCompareSwap ? 2 * kDwords : kDwords;
  return {kSmemEncoding, name,          OpClass::kSmem, &ScalarAtomic<kOp, U>,
          kDwords,       {2, 1, kData}, kIsAtomic};
}

#define JAX_FA_SCALAR_ATOMICS(U, x2)                                                              \
  AtomicOp<Atomic::kSwap, U>("s_atomic_swap" x2),                                                 \
      AtomicOp<Atomic::kCompareSwap, U>("s_atomic_cmpswap" x2),                                   \
      AtomicOp<Atomic::kAdd, U>("s_atomic_add" x2), AtomicOp<Atomic::kSub, U>("s_atomic_sub" x2), \
      AtomicOp<Atomic::kMinSigned, U>("s_atomic_smin" x2),                                        \
      AtomicOp<Atomic::kMinUnsigned, U>("s_atomic_umin" x2),                                      \
      AtomicOp<Atomic::kMaxSigned, U>("s_atomic_smax" x2),                                        \
      AtomicOp<Atomic::kMaxUnsigned, U>("s_atomic_umax" x2),                                      \
      AtomicOp<Atomic::kAnd, U>("s_atomic_and" x2), AtomicOp<Atomic::kOr, U>("s_atomic_or" x2),   \
      AtomicOp<Atomic::kXor, U>("s_atomic_xor" x2), AtomicOp<Atomic::kInc, U>("s_atomic_inc" x2), \
      AtomicOp<Atomic::kDec, U>("s_atomic_dec" x2)

constexpr ScalarOp kScalarStoreOps[] = {
    StoreOp<1>("s_store_dword"),
    StoreOp<2>("s_store_dwordx2"),
    StoreOp<4>("s_store_dwordx4"),
    JAX_FA_SCALAR_ATOMICS(uint32_t, ""),
    JAX_FA_SCALAR_ATOMICS(uint64_t, "_x2"),
};

}  // namespace

std::span<const ScalarOp> ScalarStoreOps() { return kScalarStoreOps; }

}  // namespace jax_fa::emulator
