// Buffer instructions, LDS-DMA included.
//
// What is out of range (exec/lane_addresses.h) loads and LDS-DMA deliver as 0, and stores and
// atomics do not write. Swizzled buffers are not known here and stop the run.
#include "emulator/chip/chip.h"
#include "emulator/exec/lane_addresses.h"
#include "emulator/exec/lds_dma.h"
#include "emulator/object/launch_context.h"
#include "emulator/state/memory.h"

namespace jax_fa::emulator {
namespace {

// The addresses of the lanes, on a resource that is known here.
class Buffer : public BufferAddresses {
 public:
  Buffer(Wave& wave, const Instruction& instruction) : BufferAddresses(wave, instruction) {
    if ((instruction.mem.idxen || stride() != 0) &&
        !wave.group->launch->program->chip->judges_buffers_by_index) {
      Fail(wave, instruction,
           "a structured buffer (" + std::string(instruction.mem.idxen ? "idxen, " : "") +
               "stride " + std::to_string(stride()) + "), which is not emulated");
    }
    if ((word(1) >> 31) != 0) Fail(wave, instruction, "a swizzled buffer resource");
    if (((word(3) >> 23) & 1) != 0) Fail(wave, instruction, "a buffer resource that adds the lane");
  }
};

// Ranges are checked dword by dword: what is no longer than one is in range or is not.
template <Transfer kTransfer>
constexpr bool kMayBePartlyInside = kTransfer.bytes > sizeof(uint32_t);

// Where a lane loads from: memory, or `partly`, filled with what is in range and zeros.
template <Transfer kTransfer>
const uint8_t* LanePointer(Wave& wave, const Instruction& instruction, const Buffer& buffer,
                           int lane, uint8_t* partly) {
  const uint64_t offset = buffer.Offset(lane);
  const uint32_t inside = buffer.BytesInRange(lane, kTransfer.bytes);
  if (inside == kTransfer.bytes) [[likely]]
    return LoadPointer(wave, instruction, buffer.base() + offset, kTransfer.bytes, lane);
  std::memset(partly, 0, kTransfer.bytes);
  if constexpr (kMayBePartlyInside<kTransfer>) {
    if (inside != 0) {
      const uint64_t address = buffer.base() + offset;
      std::memcpy(partly, LoadPointer(wave, instruction, address, inside, lane), inside);
    }
  }
  return partly;
}

template <Transfer kTransfer>
void ExecLoad(Wave& wave, const Instruction& instruction) {
  const Buffer buffer(wave, instruction);
  uint8_t partly[kTransfer.bytes];
  if (instruction.mem.lds) {
    if constexpr (kTransfer.kind == Transfer::kDwords && kTransfer.bytes != 8) {
      LdsDma<kTransfer>(wave, instruction, [&](int l) {
        return LanePointer<kTransfer>(wave, instruction, buffer, l, partly);
      });
      return;
    }
    Fail(wave, instruction, "LDS-DMA of this width");
  }
  InFlight& result = Issue(wave, instruction, Counter::kLoad);
  ToRegisters<kTransfer>(wave, instruction, &result);
  ForLanes(wave.exec, [&](int l) {
    TakeLane<kTransfer>(LanePointer<kTransfer>(wave, instruction, buffer, l, partly),
                        result.data.data(), l);
  });
  Push(wave, instruction, result);
}

template <Transfer kTransfer>
void ExecStore(Wave& wave, const Instruction& instruction) {
  const Buffer buffer(wave, instruction);
  const uint32_t* data = wave.Row(instruction.src[1].index);
  ForLanes(wave.exec, [&](int l) {
    const uint64_t offset = buffer.Offset(l);
    const uint32_t inside = buffer.BytesInRange(l, kTransfer.bytes);
    if (inside == 0) return;
    uint8_t* const to = StorePointer(wave, instruction, buffer.base() + offset, inside, l);
    if (inside == kTransfer.bytes) [[likely]] {
      GiveLane<kTransfer>(to, data, l);
      return;
    }
    if constexpr (kMayBePartlyInside<kTransfer>) {
      uint8_t all[kTransfer.bytes];
      GiveLane<kTransfer>(all, data, l);
      std::memcpy(to, all, inside);
    }
  });
  Push(wave, instruction, Issue(wave, instruction, Counter::kStore));
}

template <Atomic kOp, class U>
void ExecAtomic(Wave& wave, const Instruction& instruction) {
  constexpr Transfer kOne{sizeof(U)};
  const Buffer buffer(wave, instruction);
  const bool returns = instruction.dst.kind != OperandKind::kNone;
  InFlight& result = Issue(wave, instruction, returns ? Counter::kLoad : Counter::kStore);
  if (returns) ToRegisters<kOne>(wave, instruction, &result);
  const uint32_t* data = wave.Row(instruction.src[1].index);
  ForLanes(wave.exec, [&](int l) {
    U old = 0;
    const uint64_t offset = buffer.Offset(l);
    if (buffer.InRange(l, sizeof(U))) {
      old = ModifyMemory<kOp, U>(
          StorePointer(wave, instruction, buffer.base() + offset, sizeof(U), l), data, l, wave,
          instruction);
    }
    if (returns) TakeLane<kOne>(reinterpret_cast<const uint8_t*>(&old), result.data.data(), l);
  });
  Push(wave, instruction, result);
}

// Cache write-back and invalidation: nothing is cached here, but they count as memory operations.
void ExecCacheControl(Wave& wave, const Instruction& instruction) {
  Push(wave, instruction, Issue(wave, instruction, Counter::kStore));
}

template <Transfer kTransfer>
constexpr Opcode Load(const char* mnemonic) {
  return MemoryRow(mnemonic, OpClass::kVmemLoad, &ExecLoad<kTransfer>, kTransfer.dwords(),
                   {1, 0, 4}, kTransfer.d16 ? uint32_t{kReadsDst} : 0u);
}
template <Transfer kTransfer>
constexpr Opcode Store(const char* mnemonic) {
  return MemoryRow(mnemonic, OpClass::kVmemStore, &ExecStore<kTransfer>, 0,
                   {1, static_cast<uint8_t>(kTransfer.dwords()), 4}, kIsStore);
}
template <Atomic kOp, class U>
constexpr Opcode AtomicRow(const char* mnemonic) {
  constexpr uint8_t kDwords = sizeof(U) / 4;
  constexpr uint8_t kData = kOp == Atomic::kCompareSwap ? 2 * kDwords : kDwords;
  return MemoryRow(mnemonic, OpClass::kVmemStore, &ExecAtomic<kOp, U>, kDwords, {1, kData, 4},
                   kIsAtomic);
}

#define JAX_FA_BUFFER_ATOMICS(U, x2)                                  \
  AtomicRow<Atomic::kSwap, U>("buffer_atomic_swap" x2),               \
      AtomicRow<Atomic::kCompareSwap, U>("buffer_atomic_cmpswap" x2), \
      AtomicRow<Atomic::kAdd, U>("buffer_atomic_add" x2),             \
      AtomicRow<Atomic::kSub, U>("buffer_atomic_sub" x2),             \
      AtomicRow<Atomic::kMinSigned, U>("buffer_atomic_smin" x2),      \
      AtomicRow<Atomic::kMinUnsigned, U>("buffer_atomic_umin" x2),    \
      AtomicRow<Atomic::kMaxSigned, U>("buffer_atomic_smax" x2),      \
      AtomicRow<Atomic::kMaxUnsigned, U>("buffer_atomic_umax" x2),    \
      AtomicRow<Atomic::kAnd, U>("buffer_atomic_and" x2),             \
      AtomicRow<Atomic::kOr, U>("buffer_atomic_or" x2),               \
      AtomicRow<Atomic::kXor, U>("buffer_atomic_xor" x2),             \
      AtomicRow<Atomic::kInc, U>("buffer_atomic_inc" x2),             \
      AtomicRow<Atomic::kDec, U>("buffer_atomic_dec" x2)

constexpr Opcode kMubufRows[] = {
    MemoryRow("buffer_wbl2", OpClass::kVmemStore, &ExecCacheControl, 0, {0, 0, 0}, 0),
    MemoryRow("buffer_inv", OpClass::kVmemStore, &ExecCacheControl, 0, {0, 0, 0}, 0),
    Load<kUByte>("buffer_load_ubyte"),
    Load<kSByte>("buffer_load_sbyte"),
    Load<kUShort>("buffer_load_ushort"),
    Load<kSShort>("buffer_load_sshort"),
    Load<kDword1>("buffer_load_dword"),
    Load<kDword2>("buffer_load_dwordx2"),
    Load<kDword3>("buffer_load_dwordx3"),
    Load<kDword4>("buffer_load_dwordx4"),
    Load<kUByteD16>("buffer_load_ubyte_d16"),
    Load<kUByteD16Hi>("buffer_load_ubyte_d16_hi"),
    Load<kSByteD16>("buffer_load_sbyte_d16"),
    Load<kSByteD16Hi>("buffer_load_sbyte_d16_hi"),
    Load<kShortD16>("buffer_load_short_d16"),
    Load<kShortD16Hi>("buffer_load_short_d16_hi"),
    Store<kUByte>("buffer_store_byte"),
    Store<kUByteD16Hi>("buffer_store_byte_d16_hi"),
    Store<kUShort>("buffer_store_short"),
    Store<kShortD16Hi>("buffer_store_short_d16_hi"),
    Store<kDword1>("buffer_store_dword"),
    Store<kDword2>("buffer_store_dwordx2"),
    Store<kDword3>("buffer_store_dwordx3"),
    Store<kDword4>("buffer_store_dwordx4"),
    JAX_FA_BUFFER_ATOMICS(uint32_t, ""),
    JAX_FA_BUFFER_ATOMICS(uint64_t, "_x2"),
    AtomicRow<Atomic::kAddFloat, uint32_t>("buffer_atomic_add_f32"),
    AtomicRow<Atomic::kAddFloat, uint64_t>("buffer_atomic_add_f64"),
    AtomicRow<Atomic::kAddHalves, uint32_t>("buffer_atomic_pk_add_f16"),
    AtomicRow<Atomic::kAddBfloats, uint32_t>("buffer_atomic_pk_add_bf16"),
};

}  // namespace

std::span<const Opcode> MubufRows() { return kMubufRows; }

}  // namespace jax_fa::emulator
