// Memory instructions with per-lane addresses: GLOBAL, FLAT, SCRATCH, and LDS-DMA of GLOBAL.
//
// Loads take their bytes at issue and deliver them at the wait; stores write at once. A flat
// address may lie in the apertures of LDS and private memory.
#include <atomic>

#include "emulator/check/check.h"
#include "emulator/exec/lane_addresses.h"
#include "emulator/exec/lds_dma.h"
#include "emulator/state/memory.h"

namespace jax_fa::emulator {
namespace {

uint8_t* ScratchPointer(Wave& wave, const Instruction& instruction, uint64_t address,
                        uint32_t bytes, int lane) {
  const uint64_t offset = address & 0xffffffffu;
  const uint64_t limit = wave.group->scratch_bytes;
  if (offset + bytes > limit) {
    Fail(wave, instruction,
         "private address " + std::to_string(offset) + " (+" + std::to_string(bytes) +
             " bytes) is outside the lane's " + std::to_string(limit) + " bytes",
         lane);
  }
  return wave.scratch + static_cast<uint64_t>(lane) * limit + offset;
}

uint8_t* LdsPointer(Wave& wave, const Instruction& instruction, uint64_t address, uint32_t bytes,
                    int lane, bool write) {
  const uint64_t offset = address & 0xffffffffu;
  const uint64_t limit = wave.group->lds.size();
  if (offset + bytes > limit) {
    Fail(wave, instruction,
         "LDS address " + std::to_string(offset) + " (+" + std::to_string(bytes) +
             " bytes) is outside the workgroup's " + std::to_string(limit) + " bytes",
         lane);
  }
  uint32_t addresses[kLaneStride] = {};
  addresses[lane] = static_cast<uint32_t>(offset);
  if (write) {
    CheckLdsWrite(wave, instruction, uint64_t{1} << lane, addresses, bytes);
    wave.group->lds_traffic.written_bytes += bytes;
  } else {
    CheckLdsRead(wave, instruction, uint64_t{1} << lane, addresses, bytes);
    wave.group->lds_traffic.read_bytes += bytes;
  }
  return wave.group->lds.data() + offset;
}

template <Space kSpace>
inline const uint8_t* Source(Wave& wave, const Instruction& instruction, uint64_t address,
                             uint32_t bytes, int lane) {
  if constexpr (kSpace == Space::kScratch) {
    return ScratchPointer(wave, instruction, address, bytes, lane);
  } else if constexpr (kSpace == Space::kFlat) {
    const uint64_t aperture = address >> 32 << 32;
    if (aperture == kSharedAperture) {
      return LdsPointer(wave, instruction, address, bytes, lane, false);
    }
    if (aperture == kPrivateAperture) {
      return ScratchPointer(wave, instruction, address, bytes, lane);
    }
  }
  return LoadPointer(wave, instruction, address, bytes, lane);
}
template <Space kSpace>
inline uint8_t* Target(Wave& wave, const Instruction& instruction, uint64_t address, uint32_t bytes,
                       int lane) {
  if constexpr (kSpace == Space::kScratch) {
    return ScratchPointer(wave, instruction, address, bytes, lane);
  } else if constexpr (kSpace == Space::kFlat) {
    const uint64_t aperture = address >> 32 << 32;
    if (aperture == kSharedAperture) {
      return LdsPointer(wave, instruction, address, bytes, lane, true);
    }
    if (aperture == kPrivateAperture) {
      return ScratchPointer(wave, instruction, address, bytes, lane);
    }
  }
  return StorePointer(wave, instruction, address, bytes, lane);
}
// FLAT may return from memory or from LDS: both counters must prove it.
constexpr Counter AlsoCounter(Space space) {
  return space == Space::kFlat ? Counter::kDs : Counter::kCount;
}

template <Space kSpace, Transfer kTransfer>
void ExecLoad(Wave& wave, const Instruction& instruction) {
  const FlatAddresses addresses(wave, instruction, kSpace);
  InFlight& result = Issue(wave, instruction, Counter::kLoad, AlsoCounter(kSpace));
  ToRegisters<kTransfer>(wave, instruction, &result);
  ForLanes(wave.exec, [&](int l) {
    TakeLane<kTransfer>(Source<kSpace>(wave, instruction, addresses[l], kTransfer.bytes, l),
                        result.data.data(), l);
  });
  Push(wave, instruction, result);
}

template <Space kSpace, Transfer kTransfer>
void ExecStore(Wave& wave, const Instruction& instruction) {
  const FlatAddresses addresses(wave, instruction, kSpace);
  const uint32_t* data = wave.Row(instruction.src[1].index);
  ForLanes(wave.exec, [&](int l) {
    GiveLane<kTransfer>(Target<kSpace>(wave, instruction, addresses[l], kTransfer.bytes, l), data,
                        l);
  });
  Push(wave, instruction, Issue(wave, instruction, Counter::kStore, AlsoCounter(kSpace)));
}

template <Space kSpace, Atomic kOp, class U>
void ExecAtomic(Wave& wave, const Instruction& instruction) {
  constexpr Transfer kOne{sizeof(U)};
  const FlatAddresses addresses(wave, instruction, kSpace);
  const bool returns = instruction.dst.kind != OperandKind::kNone;
  InFlight& result =
      Issue(wave, instruction, returns ? Counter::kLoad : Counter::kStore, AlsoCounter(kSpace));
  if (returns) ToRegisters<kOne>(wave, instruction, &result);
  const uint32_t* data = wave.Row(instruction.src[1].index);
  ForLanes(wave.exec, [&](int l) {
    const U old = ModifyMemory<kOp, U>(
        Target<kSpace>(wave, instruction, addresses[l], sizeof(U), l), data, l, wave, instruction);
    if (returns) TakeLane<kOne>(reinterpret_cast<const uint8_t*>(&old), result.data.data(), l);
  });
  Push(wave, instruction, result);
}

template <Transfer kTransfer>
void ExecLoadLds(Wave& wave, const Instruction& instruction) {
  const FlatAddresses addresses(wave, instruction, Space::kGlobal);
  LdsDma<kTransfer>(wave, instruction, [&](int l) {
    return LoadPointer(wave, instruction, addresses[l], kTransfer.bytes, l);
  });
}

constexpr uint8_t AddressDwords(Space space) { return space == Space::kScratch ? 1 : 2; }
constexpr uint8_t BaseDwords(Space space) {
  return space == Space::kFlat ? 0 : space == Space::kScratch ? 1 : 2;
}
template <Space kSpace, Transfer kTransfer>
constexpr Opcode Load(const char* mnemonic) {
  return MemoryRow(mnemonic, OpClass::kVmemLoad, &ExecLoad<kSpace, kTransfer>, kTransfer.dwords(),
                   {AddressDwords(kSpace), 0, BaseDwords(kSpace)},
                   kTransfer.d16 ? uint32_t{kReadsDst} : 0u);
}
template <Space kSpace, Transfer kTransfer>
constexpr Opcode Store(const char* mnemonic) {
  return MemoryRow(
      mnemonic, OpClass::kVmemStore, &ExecStore<kSpace, kTransfer>, 0,
      {AddressDwords(kSpace), static_cast<uint8_t>(kTransfer.dwords()), BaseDwords(kSpace)},
      kIsStore);
}
template <Space kSpace, Atomic kOp, class U>
constexpr Opcode AtomicRow(const char* mnemonic) {
  constexpr uint8_t kDwords = sizeof(U) / 4;
  constexpr uint8_t kData = kOp == Atomic::kCompareSwap ? 2 * kDwords : kDwords;
  return MemoryRow(mnemonic, OpClass::kVmemStore, &ExecAtomic<kSpace, kOp, U>, kDwords,
                   {AddressDwords(kSpace), kData, BaseDwords(kSpace)}, kIsAtomic);
}
template <Transfer kTransfer>
constexpr Opcode LoadLds(const char* mnemonic) {
  Opcode row = MemoryRow(mnemonic, OpClass::kLdsDma, &ExecLoadLds<kTransfer>, 0, {2, 0, 2},
                         uint32_t{kReadsM0} | kLoadsToLds);
  row.traits.lds_dwords = static_cast<uint8_t>(kTransfer.dwords());
  return row;
}

#define JAX_FA_LOADS_AND_STORES(space, name)                                                    \
  Load<space, kUByte>(name "_load_ubyte"), Load<space, kSByte>(name "_load_sbyte"),             \
      Load<space, kUShort>(name "_load_ushort"), Load<space, kSShort>(name "_load_sshort"),     \
      Load<space, kDword1>(name "_load_dword"), Load<space, kDword2>(name "_load_dwordx2"),     \
      Load<space, kDword3>(name "_load_dwordx3"), Load<space, kDword4>(name "_load_dwordx4"),   \
      Load<space, kUByteD16>(name "_load_ubyte_d16"),                                           \
      Load<space, kUByteD16Hi>(name "_load_ubyte_d16_hi"),                                      \
      Load<space, kSByteD16>(name "_load_sbyte_d16"),                                           \
      Load<space, kSByteD16Hi>(name "_load_sbyte_d16_hi"),                                      \
      Load<space, kShortD16>(name "_load_short_d16"),                                           \
      Load<space, kShortD16Hi>(name "_load_short_d16_hi"),                                      \
      Store<space, kUByte>(name "_store_byte"),                                                 \
      Store<space, kUByteD16Hi>(name "_store_byte_d16_hi"),                                     \
      Store<space, kUShort>(name "_store_short"),                                               \
      Store<space, kShortD16Hi>(name "_store_short_d16_hi"),                                    \
      Store<space, kDword1>(name "_store_dword"), Store<space, kDword2>(name "_store_dwordx2"), \
      Store<space, kDword3>(name "_store_dwordx3"), Store<space, kDword4>(name "_store_dwordx4")

#define JAX_FA_ATOMICS(space, name, U, x2)                                  \
  AtomicRow<space, Atomic::kSwap, U>(name "_atomic_swap" x2),               \
      AtomicRow<space, Atomic::kCompareSwap, U>(name "_atomic_cmpswap" x2), \
      AtomicRow<space, Atomic::kAdd, U>(name "_atomic_add" x2),             \
      AtomicRow<space, Atomic::kSub, U>(name "_atomic_sub" x2),             \
      AtomicRow<space, Atomic::kMinSigned, U>(name "_atomic_smin" x2),      \
      AtomicRow<space, Atomic::kMinUnsigned, U>(name "_atomic_umin" x2),    \
      AtomicRow<space, Atomic::kMaxSigned, U>(name "_atomic_smax" x2),      \
      AtomicRow<space, Atomic::kMaxUnsigned, U>(name "_atomic_umax" x2),    \
      AtomicRow<space, Atomic::kAnd, U>(name "_atomic_and" x2),             \
      AtomicRow<space, Atomic::kOr, U>(name "_atomic_or" x2),               \
      AtomicRow<space, Atomic::kXor, U>(name "_atomic_xor" x2),             \
      AtomicRow<space, Atomic::kInc, U>(name "_atomic_inc" x2),             \
      AtomicRow<space, Atomic::kDec, U>(name "_atomic_dec" x2)

#define JAX_FA_FLOAT_ATOMICS(space, name)                                        \
  AtomicRow<space, Atomic::kAddFloat, uint32_t>(name "_atomic_add_f32"),         \
      AtomicRow<space, Atomic::kAddFloat, uint64_t>(name "_atomic_add_f64"),     \
      AtomicRow<space, Atomic::kMinFloat, uint64_t>(name "_atomic_min_f64"),     \
      AtomicRow<space, Atomic::kMaxFloat, uint64_t>(name "_atomic_max_f64"),     \
      AtomicRow<space, Atomic::kAddHalves, uint32_t>(name "_atomic_pk_add_f16"), \
      AtomicRow<space, Atomic::kAddBfloats, uint32_t>(name "_atomic_pk_add_bf16")

constexpr Opcode kVmemRows[] = {
    JAX_FA_LOADS_AND_STORES(Space::kGlobal, "global"),
    JAX_FA_LOADS_AND_STORES(Space::kFlat, "flat"),
    JAX_FA_LOADS_AND_STORES(Space::kScratch, "scratch"),
    JAX_FA_ATOMICS(Space::kGlobal, "global", uint32_t, ""),
    JAX_FA_ATOMICS(Space::kGlobal, "global", uint64_t, "_x2"),
    JAX_FA_ATOMICS(Space::kFlat, "flat", uint32_t, ""),
    JAX_FA_ATOMICS(Space::kFlat, "flat", uint64_t, "_x2"),
    JAX_FA_FLOAT_ATOMICS(Space::kGlobal, "global"),
    JAX_FA_FLOAT_ATOMICS(Space::kFlat, "flat"),
    LoadLds<kDword1>("global_load_lds_dword"),
    LoadLds<kDword3>("global_load_lds_dwordx3"),
    LoadLds<kDword4>("global_load_lds_dwordx4"),
};

}  // namespace

std::span<const Opcode> VmemRows() { return kVmemRows; }

}  // namespace jax_fa::emulator
