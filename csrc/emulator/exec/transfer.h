// What one lane of a memory instruction moves, common to DS, FLAT and MUBUF.
#ifndef JAX_FA_EMULATOR_EXEC_TRANSFER_H_
#define JAX_FA_EMULATOR_EXEC_TRANSFER_H_

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "emulator/exec/families.h"
#include "emulator/exec/in_flight.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

struct Transfer {
  uint8_t bytes;  // in memory, per lane
  enum Kind : uint8_t { kDwords, kUnsigned, kSigned } kind = kDwords;
  // Half-register forms: loads replace one half of dst, stores take the upper half.
  bool d16 = false, high_half = false;

  constexpr int dwords() const { return bytes < 4 ? 1 : bytes / 4; }
};

// One lane's bytes at `from` into column `lane` of `data` (rows of 64 dwords).
template <Transfer kTransfer>
inline void TakeLane(const uint8_t* from, uint32_t* data, int lane) {
  if constexpr (kTransfer.bytes >= 4) {
    uint32_t words[kTransfer.bytes / 4];
    std::memcpy(words, from, kTransfer.bytes);
    for (int d = 0; d < kTransfer.bytes / 4; ++d) data[d * kLaneStride + lane] = words[d];
  } else if constexpr (kTransfer.bytes == 2) {
    uint16_t value;
    std::memcpy(&value, from, 2);
    data[lane] = kTransfer.kind == Transfer::kSigned
                     ? static_cast<uint32_t>(static_cast<int16_t>(value))
                     : value;
  } else {
    data[lane] = kTransfer.kind == Transfer::kSigned
                     ? static_cast<uint32_t>(static_cast<int8_t>(*from))
                     : *from;
  }
}
// The same of lanes `lane` to `lane` + 3 and 16 bytes each, from `base` + addresses[0..3].
inline void TakeFourLanes(const uint8_t* base, const uint32_t* addresses, uint32_t* data,
                          int lane) {
#if defined(__SSE2__)
  __m128 rows[4];
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm_loadu_ps(reinterpret_cast<const float*>(base + addresses[i]));
  }
  _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
  for (int d = 0; d < 4; ++d) {
    _mm_storeu_ps(reinterpret_cast<float*>(data + d * kLaneStride + lane), rows[d]);
  }
#else
  for (int i = 0; i < 4; ++i) TakeLane<Transfer{16}>(base + addresses[i], data, lane + i);
#endif
}
// The other way, from register rows.
template <Transfer kTransfer>
inline void GiveLane(uint8_t* to, const uint32_t* data, int lane) {
  if constexpr (kTransfer.bytes >= 4) {
    uint32_t words[kTransfer.bytes / 4];
    for (int d = 0; d < kTransfer.bytes / 4; ++d) words[d] = data[d * kLaneStride + lane];
    std::memcpy(to, words, kTransfer.bytes);
  } else {
    const uint32_t value = kTransfer.high_half ? data[lane] >> 16 : data[lane];
    std::memcpy(to, &value, kTransfer.bytes);
  }
}

// Where a load's result goes.
template <Transfer kTransfer>
inline void ToRegisters(const Wave& wave, const Instruction& instruction, InFlight* result) {
  result->destination = InFlight::kVector;
  result->first_register = instruction.dst.index;
  result->dwords = static_cast<uint8_t>(kTransfer.dwords());
  result->merge_16 = kTransfer.d16;
  result->high_half = kTransfer.high_half;
  result->lanes = wave.exec;
}

// Calls fn(lane) for every lane that is on.
template <class Fn>
inline void ForLanes(uint64_t lanes, Fn fn) {
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) fn(__builtin_ctzll(rest));
}

constexpr Opcode MemoryRow(const char* mnemonic, OpClass op_class, ExecFn exec, int dst,
                           std::array<uint8_t, 3> sources, uint32_t flags) {
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = op_class;
  row.exec = exec;
  row.dst_dwords = static_cast<uint8_t>(dst);
  row.src_dwords = sources;
  row.flags = flags;
  return row;
}

inline constexpr Transfer kUByte{1, Transfer::kUnsigned}, kSByte{1, Transfer::kSigned},
    kUShort{2, Transfer::kUnsigned}, kSShort{2, Transfer::kSigned}, kDword1{4}, kDword2{8},
    kDword3{12}, kDword4{16};
inline constexpr Transfer kUByteD16{1, Transfer::kUnsigned, true, false},
    kUByteD16Hi{1, Transfer::kUnsigned, true, true}, kSByteD16{1, Transfer::kSigned, true, false},
    kSByteD16Hi{1, Transfer::kSigned, true, true}, kShortD16{2, Transfer::kUnsigned, true, false},
    kShortD16Hi{2, Transfer::kUnsigned, true, true};

// Read-modify-write operations of memory and LDS, on the old value and the operand.
enum class Atomic : uint8_t {
  kSwap,
  kAdd,
  kSub,
  kRsub,
  kInc,
  kDec,
  kMinSigned,
  kMaxSigned,
  kMinUnsigned,
  kMaxUnsigned,
  kAnd,
  kOr,
  kXor,
  kCompareSwap,  // needs a second operand: what to compare with
  kAddFloat,
  kMinFloat,
  kMaxFloat,
  kAddHalves,  // two of 16 bits each, by itself
  kAddBfloats,
};

// exec/packed_sums.cc: each half rounded to nearest even, denormals kept.
uint32_t AddHalves(uint32_t a, uint32_t b);
uint32_t AddBfloats(uint32_t a, uint32_t b);

template <Atomic kOp, class U>
inline U Modify(U old, U operand, U compare) {
  using S = std::make_signed_t<U>;
  using F = std::conditional_t<sizeof(U) == 8, double, float>;
  const F a = std::bit_cast<F>(old), b = std::bit_cast<F>(operand);
  switch (kOp) {
    case Atomic::kSwap:
      return operand;
    case Atomic::kAdd:
      return old + operand;
    case Atomic::kSub:
      return old - operand;
    case Atomic::kRsub:
      return operand - old;
    case Atomic::kInc:
      return old >= operand ? 0 : old + 1;
    case Atomic::kDec:
      return old == 0 || old > operand ? operand : old - 1;
    case Atomic::kMinSigned:
      return static_cast<S>(old) < static_cast<S>(operand) ? old : operand;
    case Atomic::kMaxSigned:
      return static_cast<S>(old) > static_cast<S>(operand) ? old : operand;
    case Atomic::kMinUnsigned:
      return old < operand ? old : operand;
    case Atomic::kMaxUnsigned:
      return old > operand ? old : operand;
    case Atomic::kAnd:
      return old & operand;
    case Atomic::kOr:
      return old | operand;
    case Atomic::kXor:
      return old ^ operand;
    case Atomic::kCompareSwap:
      return old == compare ? operand : old;
    case Atomic::kAddFloat:
      return std::bit_cast<U>(a + b);
    case Atomic::kMinFloat:
      return b < a || a != a ? operand : old;
    case Atomic::kMaxFloat:
      return b > a || a != a ? operand : old;
    case Atomic::kAddHalves:
      return AddHalves(static_cast<uint32_t>(old), static_cast<uint32_t>(operand));
    case Atomic::kAddBfloats:
      return AddBfloats(static_cast<uint32_t>(old), static_cast<uint32_t>(operand));
  }
  return old;
}

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_EXEC_TRANSFER_H_
