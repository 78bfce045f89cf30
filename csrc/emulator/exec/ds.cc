// LDS instructions: reads, writes, two-address forms, transposing reads, atomics. Exchanges between
// lanes are in exec/ds_lanes.cc.
//
// A read takes its bytes at issue; they arrive when the counter is waited for. Every byte must lie
// within the workgroup's LDS.
#include "emulator/check/check.h"
#include "emulator/exec/transfer.h"

namespace jax_fa::emulator {
namespace {

// Addresses of the lanes that are on, checked; their bank conflicts are counted.
void LaneAddresses(Wave& wave, const Instruction& instruction, uint32_t offset, uint32_t bytes,
                   uint32_t* addresses) {
  const uint32_t* base = wave.Row(instruction.src[0].index);
  const uint64_t limit = wave.group->lds.size();
  uint64_t bad = 0;
  for (int l = 0; l < wave.lanes; ++l) {
    const uint32_t address = base[l] + offset;
    addresses[l] = address;
    bad |= uint64_t{uint64_t{address} + bytes > limit} << l;
  }
  bad &= wave.exec;
  if (bad != 0) {
    const int lane = __builtin_ctzll(bad);
    Fail(wave, instruction,
         "LDS address " + std::to_string(addresses[lane]) + " (+" + std::to_string(bytes) +
             " bytes) is outside the workgroup's " + std::to_string(limit) + " bytes",
         lane);
  }
  wave.group->bank_conflicts += wave.group->banks.Count(
      instruction.opcode->op_class == OpClass::kLdsWrite, bytes, wave.exec, addresses);
}

template <Transfer kTransfer>
void ExecRead(Wave& wave, const Instruction& instruction) {
  alignas(64) uint32_t addresses[kLaneStride];
  LaneAddresses(wave, instruction, static_cast<uint32_t>(instruction.mem.offset), kTransfer.bytes,
                addresses);
  CheckLdsRead(wave, instruction, wave.exec, addresses, kTransfer.bytes);
  InFlight& result = Issue(wave, instruction, Counter::kDs);
  ToRegisters<kTransfer>(wave, instruction, &result);
  const uint8_t* lds = wave.group->lds.data();
  uint32_t* data = result.data.data();
  if (wave.AllLanes() && kTransfer.bytes == 16) {
    for (int l = 0; l < wave.lanes; l += 4) TakeFourLanes(lds, addresses + l, data, l);
  } else if (wave.AllLanes()) {
    for (int l = 0; l < wave.lanes; ++l) TakeLane<kTransfer>(lds + addresses[l], data, l);
  } else {
    ForLanes(wave.exec, [&](int l) { TakeLane<kTransfer>(lds + addresses[l], data, l); });
  }
  wave.group->lds_traffic.read_bytes +=
      uint64_t{kTransfer.bytes} * static_cast<uint64_t>(__builtin_popcountll(wave.exec));
  Push(wave, instruction, result);
}

template <Transfer kTransfer>
void ExecWrite(Wave& wave, const Instruction& instruction) {
  alignas(64) uint32_t addresses[kLaneStride];
  LaneAddresses(wave, instruction, static_cast<uint32_t>(instruction.mem.offset), kTransfer.bytes,
                addresses);
  CheckLdsWrite(wave, instruction, wave.exec, addresses, kTransfer.bytes);
  uint8_t* lds = wave.group->lds.data();
  const uint32_t* data = wave.Row(instruction.src[1].index);
  ForLanes(wave.exec, [&](int l) { GiveLane<kTransfer>(lds + addresses[l], data, l); });
  wave.group->lds_traffic.written_bytes +=
      uint64_t{kTransfer.bytes} * static_cast<uint64_t>(__builtin_popcountll(wave.exec));
  Push(wave, instruction, Issue(wave, instruction, Counter::kDs));
}

// Two elements per lane, their offsets counted in elements (or in 64 of them).
template <int kBytes, int kStride>
void ExecRead2(Wave& wave, const Instruction& instruction) {
  constexpr Transfer kOne{kBytes};
  InFlight& result = Issue(wave, instruction, Counter::kDs);
  ToRegisters<kOne>(wave, instruction, &result);
  result.dwords = 2 * kOne.dwords();
  for (int part = 0; part < 2; ++part) {
    const int32_t offset = part == 0 ? instruction.mem.offset : instruction.mem.offset1;
    alignas(64) uint32_t addresses[kLaneStride];
    LaneAddresses(wave, instruction, static_cast<uint32_t>(offset * kBytes * kStride), kBytes,
                  addresses);
    CheckLdsRead(wave, instruction, wave.exec, addresses, kBytes);
    uint32_t* data = result.data.data() + part * kOne.dwords() * kLaneStride;
    const uint8_t* lds = wave.group->lds.data();
    ForLanes(wave.exec, [&](int l) { TakeLane<kOne>(lds + addresses[l], data, l); });
  }
  wave.group->lds_traffic.read_bytes +=
      2u * kBytes * static_cast<uint64_t>(__builtin_popcountll(wave.exec));
  Push(wave, instruction, result);
}
template <int kBytes, int kStride>
void ExecWrite2(Wave& wave, const Instruction& instruction) {
  constexpr Transfer kOne{kBytes};
  for (int part = 0; part < 2; ++part) {
    const int32_t offset = part == 0 ? instruction.mem.offset : instruction.mem.offset1;
    alignas(64) uint32_t addresses[kLaneStride];
    LaneAddresses(wave, instruction, static_cast<uint32_t>(offset * kBytes * kStride), kBytes,
                  addresses);
    CheckLdsWrite(wave, instruction, wave.exec, addresses, kBytes);
    uint8_t* lds = wave.group->lds.data();
    const uint32_t* data = wave.Row(instruction.src[static_cast<size_t>(1 + part)].index);
    ForLanes(wave.exec, [&](int l) { GiveLane<kOne>(lds + addresses[l], data, l); });
  }
  wave.group->lds_traffic.written_bytes +=
      2u * kBytes * static_cast<uint64_t>(__builtin_popcountll(wave.exec));
  Push(wave, instruction, Issue(wave, instruction, Counter::kDs));
}

// Columns of 16 lanes' pieces, for a transposing read of kBits-bit elements; `low` and `high` are
// their result rows.
template <int kBits>
void TransposeLanes(const uint8_t* lds, const uint32_t* addresses, uint32_t* low, uint32_t* high) {
  constexpr int kElements = 64 / kBits;         // of one lane: rows of the block
  constexpr int kLanesPerRow = 16 / kElements;  // kBits 16: 4, 8: 2, 4: 1
#if defined(__SSE2__)
  if constexpr (kBits == 16) {
    for (int at = 0; at < kLanesPerRow; ++at) {
      __m128i rows[kElements];
      for (int j = 0; j < kElements; ++j) {
        const uint8_t* piece = lds + addresses[kLanesPerRow * j + at];
        rows[j] = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(piece));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(low + kElements * at),
                       _mm_unpacklo_epi16(rows[0], rows[1]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(high + kElements * at),
                       _mm_unpacklo_epi16(rows[2], rows[3]));
    }
    return;
  }
#endif
  constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  uint64_t pieces[16];
  for (int l = 0; l < 16; ++l) std::memcpy(&pieces[l], lds + addresses[l], 8);
  for (int t = 0; t < 16; ++t) {
    uint64_t column = 0;
    for (int j = 0; j < kElements; ++j) {
      const uint64_t piece = pieces[kLanesPerRow * j + t / kElements];
      column |= ((piece >> (kBits * (t % kElements))) & kMask) << (kBits * j);
    }
    low[t] = static_cast<uint32_t>(column);
    high[t] = static_cast<uint32_t>(column >> 32);
  }
}

// Transposing read of kBits-bit elements. The 16 lanes of a group give the addresses of kDsRows x
// (16 / lanes per row) pieces of 64 bits: lane t receives column t, element j of it from row j.
template <int kBits>
void ExecReadTranspose(Wave& wave, const Instruction& instruction) {
  if (!wave.AllLanes()) {
    Fail(wave, instruction, "a transposing read with lanes turned off: not documented");
  }
  alignas(64) uint32_t addresses[kLaneStride];
  LaneAddresses(wave, instruction, static_cast<uint32_t>(instruction.mem.offset), 8, addresses);
  CheckLdsRead(wave, instruction, wave.exec, addresses, 8);
  const uint8_t* lds = wave.group->lds.data();
  InFlight& result = Issue(wave, instruction, Counter::kDs);
  ToRegisters<kDword2>(wave, instruction, &result);
  uint32_t* data = result.data.data();
  for (int group = 0; group < wave.lanes; group += 16) {
    TransposeLanes<kBits>(lds, addresses + group, data + group, data + kLaneStride + group);
  }
  wave.group->lds_traffic.read_bytes += 8u * wave.lanes;
  Push(wave, instruction, result);
}

// Lanes in ascending order. The compare-and-swap has what it compares with first.
template <Atomic kOp, class U, bool kReturns>
void ExecAtomic(Wave& wave, const Instruction& instruction) {
  constexpr Transfer kOne{sizeof(U)};
  alignas(64) uint32_t addresses[kLaneStride];
  LaneAddresses(wave, instruction, static_cast<uint32_t>(instruction.mem.offset), sizeof(U),
                addresses);
  CheckLdsRead(wave, instruction, wave.exec, addresses, sizeof(U));
  CheckLdsWrite(wave, instruction, wave.exec, addresses, sizeof(U));
  InFlight& result = Issue(wave, instruction, Counter::kDs);
  if (kReturns) ToRegisters<kOne>(wave, instruction, &result);
  const bool compares = kOp == Atomic::kCompareSwap;
  const uint32_t* first = wave.Row(instruction.src[1].index);
  const uint32_t* second = compares ? wave.Row(instruction.src[2].index) : first;
  uint8_t* lds = wave.group->lds.data();
  ForLanes(wave.exec, [&](int l) {
    U old, compare, operand;
    std::memcpy(&old, lds + addresses[l], sizeof(U));
    GiveLane<kOne>(reinterpret_cast<uint8_t*>(&compare), first, l);
    GiveLane<kOne>(reinterpret_cast<uint8_t*>(&operand), second, l);
    const U value = Modify<kOp, U>(old, operand, compare);
    std::memcpy(lds + addresses[l], &value, sizeof(U));
    if (kReturns) TakeLane<kOne>(reinterpret_cast<const uint8_t*>(&old), result.data.data(), l);
  });
  const uint64_t bytes = sizeof(U) * static_cast<uint64_t>(__builtin_popcountll(wave.exec));
  wave.group->lds_traffic.read_bytes += bytes;
  wave.group->lds_traffic.written_bytes += bytes;
  Push(wave, instruction, result);
}

template <Transfer kTransfer>
constexpr Opcode Read(const char* mnemonic) {
  return MemoryRow(mnemonic, OpClass::kLdsRead, &ExecRead<kTransfer>, kTransfer.dwords(), {1, 0, 0},
                   kTransfer.d16 ? uint32_t{kReadsDst} : 0u);
}
template <Transfer kTransfer>
constexpr Opcode Write(const char* mnemonic) {
  return MemoryRow(mnemonic, OpClass::kLdsWrite, &ExecWrite<kTransfer>, 0,
                   {1, static_cast<uint8_t>(kTransfer.dwords()), 0}, kIsStore);
}
template <int kBytes, int kStride>
constexpr Opcode Read2(const char* mnemonic) {
  return MemoryRow(mnemonic, OpClass::kLdsRead, &ExecRead2<kBytes, kStride>, kBytes / 2, {1, 0, 0},
                   kTwoAddresses);
}
template <int kBytes, int kStride>
constexpr Opcode Write2(const char* mnemonic) {
  return MemoryRow(mnemonic, OpClass::kLdsWrite, &ExecWrite2<kBytes, kStride>, 0,
                   {1, kBytes / 4, kBytes / 4}, kTwoAddresses | kIsStore);
}
template <Atomic kOp, class U, bool kReturns>
constexpr Opcode AtomicRow(const char* mnemonic) {
  constexpr uint8_t kDwords = sizeof(U) / 4;
  return MemoryRow(mnemonic, OpClass::kLdsWrite, &ExecAtomic<kOp, U, kReturns>,
                   kReturns ? kDwords : 0,
                   {1, kDwords, kOp == Atomic::kCompareSwap ? kDwords : uint8_t{0}}, kIsAtomic);
}

void ExecNothing(Wave&, const Instruction&) {}

#define JAX_FA_LDS_ATOMIC(op, name, suffix, U)            \
  AtomicRow<Atomic::op, U, false>("ds_" name "_" suffix), \
      AtomicRow<Atomic::op, U, true>("ds_" name "_rtn_" suffix)
#define JAX_FA_LDS_ATOMICS(U, bits)                                                               \
  JAX_FA_LDS_ATOMIC(kAdd, "add", "u" bits, U), JAX_FA_LDS_ATOMIC(kSub, "sub", "u" bits, U),       \
      JAX_FA_LDS_ATOMIC(kRsub, "rsub", "u" bits, U), JAX_FA_LDS_ATOMIC(kInc, "inc", "u" bits, U), \
      JAX_FA_LDS_ATOMIC(kDec, "dec", "u" bits, U),                                                \
      JAX_FA_LDS_ATOMIC(kMinSigned, "min", "i" bits, U),                                          \
      JAX_FA_LDS_ATOMIC(kMaxSigned, "max", "i" bits, U),                                          \
      JAX_FA_LDS_ATOMIC(kMinUnsigned, "min", "u" bits, U),                                        \
      JAX_FA_LDS_ATOMIC(kMaxUnsigned, "max", "u" bits, U),                                        \
      JAX_FA_LDS_ATOMIC(kAnd, "and", "b" bits, U), JAX_FA_LDS_ATOMIC(kOr, "or", "b" bits, U),     \
      JAX_FA_LDS_ATOMIC(kXor, "xor", "b" bits, U),                                                \
      JAX_FA_LDS_ATOMIC(kCompareSwap, "cmpst", "b" bits, U),                                      \
      JAX_FA_LDS_ATOMIC(kAddFloat, "add", "f" bits, U),                                           \
      JAX_FA_LDS_ATOMIC(kMinFloat, "min", "f" bits, U),                                           \
      JAX_FA_LDS_ATOMIC(kMaxFloat, "max", "f" bits, U),                                           \
      AtomicRow<Atomic::kSwap, U, true>("ds_wrxchg_rtn_b" bits)

constexpr Opcode kDsRows[] = {
    Read<kDword1>("ds_read_b32"),
    Read<kDword2>("ds_read_b64"),
    Read<kDword3>("ds_read_b96"),
    Read<kDword4>("ds_read_b128"),
    Read<kUByte>("ds_read_u8"),
    Read<kSByte>("ds_read_i8"),
    Read<kUShort>("ds_read_u16"),
    Read<kSShort>("ds_read_i16"),
    Read<kUByteD16>("ds_read_u8_d16"),
    Read<kUByteD16Hi>("ds_read_u8_d16_hi"),
    Read<kSByteD16>("ds_read_i8_d16"),
    Read<kSByteD16Hi>("ds_read_i8_d16_hi"),
    Read<kShortD16>("ds_read_u16_d16"),
    Read<kShortD16Hi>("ds_read_u16_d16_hi"),
    Write<kDword1>("ds_write_b32"),
    Write<kDword2>("ds_write_b64"),
    Write<kDword3>("ds_write_b96"),
    Write<kDword4>("ds_write_b128"),
    Write<kUByte>("ds_write_b8"),
    Write<kUShort>("ds_write_b16"),
    Write<kUByteD16Hi>("ds_write_b8_d16_hi"),
    Write<kShortD16Hi>("ds_write_b16_d16_hi"),
    Read2<4, 1>("ds_read2_b32"),
    Read2<4, 64>("ds_read2st64_b32"),
    Read2<8, 1>("ds_read2_b64"),
    Read2<8, 64>("ds_read2st64_b64"),
    Write2<4, 1>("ds_write2_b32"),
    Write2<4, 64>("ds_write2st64_b32"),
    Write2<8, 1>("ds_write2_b64"),
    Write2<8, 64>("ds_write2st64_b64"),
    MemoryRow("ds_read_b64_tr_b16", OpClass::kLdsRead, &ExecReadTranspose<16>, 2, {1, 0, 0},
              kCrossLane),
    MemoryRow("ds_read_b64_tr_b8", OpClass::kLdsRead, &ExecReadTranspose<8>, 2, {1, 0, 0},
              kCrossLane),
    MemoryRow("ds_read_b64_tr_b4", OpClass::kLdsRead, &ExecReadTranspose<4>, 2, {1, 0, 0},
              kCrossLane),
    With(MemoryRow("ds_nop", OpClass::kNop, &ExecNothing, 0, {0, 0, 0}, 0), HazardClass::kLdsNop),
    AtomicRow<Atomic::kAddHalves, uint32_t, false>("ds_pk_add_f16"),
    AtomicRow<Atomic::kAddHalves, uint32_t, true>("ds_pk_add_rtn_f16"),
    AtomicRow<Atomic::kAddBfloats, uint32_t, false>("ds_pk_add_bf16"),
    AtomicRow<Atomic::kAddBfloats, uint32_t, true>("ds_pk_add_rtn_bf16"),
    JAX_FA_LDS_ATOMICS(uint32_t, "32"),
    JAX_FA_LDS_ATOMICS(uint64_t, "64"),
};

}  // namespace

std::span<const Opcode> DsRows() { return kDsRows; }

}  // namespace jax_fa::emulator
