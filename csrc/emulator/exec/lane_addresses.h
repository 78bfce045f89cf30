// The memory addresses of the lanes of one instruction, as the encodings spell them.
#ifndef JAX_FA_EMULATOR_EXEC_LANE_ADDRESSES_H_
#define JAX_FA_EMULATOR_EXEC_LANE_ADDRESSES_H_

#include <cstdint>

#include "emulator/state/operand.h"

namespace jax_fa::emulator {

enum class Space : uint8_t { kFlat, kGlobal, kScratch };

// GLOBAL, FLAT and SCRATCH: row pointers and a scalar part.
class FlatAddresses {
 public:
  FlatAddresses(const Wave& wave, const Instruction& instruction, Space space) {
    const Operand& address = instruction.src[0];
    const Operand& base = instruction.src[2];
    scalar_ = static_cast<uint64_t>(int64_t{instruction.mem.offset});
    if (space == Space::kScratch) {
      if (base.kind != OperandKind::kNone) scalar_ += ReadScalarSource(wave, base) & 0xffffffffu;
    } else if (base.kind != OperandKind::kNone) {
      scalar_ += ReadScalarSource(wave, base);
    }
    if (address.kind == OperandKind::kNone) return;
    low_ = wave.Row(address.index);
    if (address.dwords == 2) high_ = low_ + kLaneStride;
  }
  uint64_t operator[](int lane) const {
    uint64_t address = scalar_;
    if (low_) address += low_[lane];
    if (high_) address += uint64_t{high_[lane]} << 32;
    return address;
  }

 private:
  uint64_t scalar_ = 0;
  const uint32_t* low_ = nullptr;
  const uint32_t* high_ = nullptr;
};

// MUBUF: address = base + voffset + soffset + inst_offset, and index * stride with idxen.
//
// Out of range is what passes num_records, counted in bytes from base. Loads and stores are judged
// dword by dword (CDNA ISA 9.1.5.1, RDNA4 ISA 9.4.1: "range-check per component"), atomics as a
// whole. With idxen on a resource with a stride num_records counts strides, and it is the index
// alone that is judged; without idxen such a resource is one without a stride.
class BufferAddresses {
 public:
  BufferAddresses(const Wave& wave, const Instruction& instruction) {
    const Operand& resource = instruction.src[2];
    for (uint32_t i = 0; i < 4; ++i) words_[i] = wave.ReadSgpr(resource.index + i);
    scalar_ = static_cast<uint64_t>(instruction.mem.offset) +
              (ReadScalarSource(wave, instruction.mem.soffset) & 0xffffffffu);
    const uint32_t* rows = wave.Row(instruction.src[0].index);  // the index, then the offset
    if (instruction.mem.idxen) {
      indices_ = rows;
      rows += kLaneStride;
    }
    if (instruction.mem.offen) offsets_ = rows;
  }
  uint64_t Offset(int lane) const {
    return scalar_ + (offsets_ ? offsets_[lane] : 0) +
           (indices_ ? uint64_t{indices_[lane]} * stride() : 0);
  }
  bool InRange(int lane, uint32_t bytes) const { return BytesInRange(lane, bytes) == bytes; }
  // Of a load or store: as many of its bytes, from the first on.
  uint32_t BytesInRange(int lane, uint32_t bytes) const {
    if (indices_ && stride() != 0) return indices_[lane] < words_[2] ? bytes : 0;
    const uint64_t offset = Offset(lane);
    if (offset + bytes <= words_[2]) [[likely]]
      return bytes;
    if (offset >= words_[2]) return 0;
    return static_cast<uint32_t>(words_[2] - offset) & ~3u;
  }
  uint32_t stride() const { return (words_[1] >> 16) & 0x3fffu; }
  uint64_t base() const { return words_[0] | (uint64_t{words_[1] & 0xffffu} << 32); }
  uint32_t word(int i) const { return words_[i]; }

 private:
  uint32_t words_[4];
  uint64_t scalar_ = 0;
  const uint32_t* indices_ = nullptr;
  const uint32_t* offsets_ = nullptr;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_EXEC_LANE_ADDRESSES_H_
