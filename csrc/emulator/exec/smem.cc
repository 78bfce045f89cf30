// Scalar memory: constant loads, which return out of order.
#include <cstring>

#include "emulator/exec/in_flight.h"
#include "emulator/exec/scalar.h"
#include "emulator/state/memory.h"

namespace jax_fa::emulator {
namespace {

// src[0] is the base (two or four SGPRs), src[1] the scalar offset or nothing.
uint64_t ScalarOffset(const Wave& wave, const Instruction& instruction) {
  uint64_t offset = static_cast<uint64_t>(int64_t{instruction.mem.offset});
  if (instruction.src[1].kind != OperandKind::kNone) {
    offset += ReadScalar32(wave, instruction.src[1]);
  }
  return offset;
}

InFlight& IssueScalarLoad(Wave& wave, const Instruction& instruction, uint32_t dwords) {
  InFlight& result = Issue(wave, instruction, Counter::kKm);
  result.destination = InFlight::kScalar;
  result.in_order = false;
  result.first_register = instruction.dst.index;
  result.dwords = static_cast<uint8_t>(dwords);
  return result;
}

template <uint32_t kDwords>
void Load(Wave& wave, const Instruction& instruction) {
  uint64_t address = ReadScalarSource(wave, instruction.src[0]) + ScalarOffset(wave, instruction);
  address &= ~uint64_t{3};
  const uint8_t* source = LoadPointer(wave, instruction, address, 4 * kDwords, -1);
  InFlight& result = IssueScalarLoad(wave, instruction, kDwords);
  std::memcpy(result.data.data(), source, 4 * kDwords);
  Push(wave, instruction, result);
}

template <class T>
void LoadSmall(Wave& wave, const Instruction& instruction) {
  const uint64_t address =
      ReadScalarSource(wave, instruction.src[0]) + ScalarOffset(wave, instruction);
  T value;
  std::memcpy(&value, LoadPointer(wave, instruction, address, sizeof(T), -1), sizeof(T));
  InFlight& result = IssueScalarLoad(wave, instruction, 1);
  result.data[0] = static_cast<uint32_t>(static_cast<int32_t>(value));
  Push(wave, instruction, result);
}

// A buffer resource: base in 48 bits, stride in 14, number of records.
struct ScalarBuffer {
  uint64_t base;
  uint64_t bytes;
};
ScalarBuffer ReadBuffer(const Wave& wave, const Operand& operand) {
  const uint32_t high = wave.ReadSgpr(operand.index + 1u);
  const uint64_t base = wave.ReadSgpr(operand.index) | (uint64_t{high & 0xffff} << 32);
  const uint32_t stride = (high >> 16) & 0x3fff;
  const uint64_t records = wave.ReadSgpr(operand.index + 2u);
  return {base, stride == 0 ? records : records * stride};
}

// Dwords (or the one small value) past the end of the buffer read as zero.
template <uint32_t kDwords>
void BufferLoad(Wave& wave, const Instruction& instruction) {
  const ScalarBuffer buffer = ReadBuffer(wave, instruction.src[0]);
  const uint64_t offset = ScalarOffset(wave, instruction) & ~uint64_t{3};
  InFlight& result = IssueScalarLoad(wave, instruction, kDwords);
  for (uint32_t dword = 0; dword < kDwords; ++dword) {
    const uint64_t at = offset + 4 * dword;
    result.data[dword] = 0;
    if (at <= buffer.bytes && buffer.bytes - at >= 4) {
      std::memcpy(&result.data[dword], LoadPointer(wave, instruction, buffer.base + at, 4, -1), 4);
    }
  }
  Push(wave, instruction, result);
}
template <class T>
void BufferLoadSmall(Wave& wave, const Instruction& instruction) {
  const ScalarBuffer buffer = ReadBuffer(wave, instruction.src[0]);
  const uint64_t offset = ScalarOffset(wave, instruction);
  T value = 0;
  if (offset <= buffer.bytes && buffer.bytes - offset >= sizeof(T)) {
    std::memcpy(&value, LoadPointer(wave, instruction, buffer.base + offset, sizeof(T), -1),
                sizeof(T));
  }
  InFlight& result = IssueScalarLoad(wave, instruction, 1);
  result.data[0] = static_cast<uint32_t>(static_cast<int32_t>(value));
  Push(wave, instruction, result);
}

// A clock that does not depend on the host: instructions of this wave so far.
void ReadTime(Wave& wave, const Instruction& instruction) {
  InFlight& result = IssueScalarLoad(wave, instruction, 2);
  result.data[0] = static_cast<uint32_t>(wave.executed);
  result.data[1] = static_cast<uint32_t>(wave.executed >> 32);
  Push(wave, instruction, result);
}

constexpr OpClass kLoad = OpClass::kSmem;
#define LOAD(name, exec, dwords) {kSmemEncoding, name, kLoad, exec, dwords, {2, 1, 0}, 0}
#define BUFFER_LOAD(name, exec, dwords) {kSmemEncoding, name, kLoad, exec, dwords, {4, 1, 0}, 0}
#define NOTHING(name) {kSmemEncoding, name, kLoad, Nothing, 0, {}, 0}

constexpr ScalarOp kScalarMemoryOps[] = {
    LOAD("s_load_dword", Load<1>, 1),
    LOAD("s_load_dwordx2", Load<2>, 2),
    LOAD("s_load_dwordx4", Load<4>, 4),
    LOAD("s_load_dwordx8", Load<8>, 8),
    LOAD("s_load_dwordx16", Load<16>, 16),
    LOAD("s_load_b96", Load<3>, 3),
    LOAD("s_load_i8", LoadSmall<int8_t>, 1),
    LOAD("s_load_u8", LoadSmall<uint8_t>, 1),
    LOAD("s_load_i16", LoadSmall<int16_t>, 1),
    LOAD("s_load_u16", LoadSmall<uint16_t>, 1),
    BUFFER_LOAD("s_buffer_load_dword", BufferLoad<1>, 1),
    BUFFER_LOAD("s_buffer_load_dwordx2", BufferLoad<2>, 2),
    BUFFER_LOAD("s_buffer_load_dwordx4", BufferLoad<4>, 4),
    BUFFER_LOAD("s_buffer_load_dwordx8", BufferLoad<8>, 8),
    BUFFER_LOAD("s_buffer_load_dwordx16", BufferLoad<16>, 16),
    BUFFER_LOAD("s_buffer_load_b96", BufferLoad<3>, 3),
    BUFFER_LOAD("s_buffer_load_i8", BufferLoadSmall<int8_t>, 1),
    BUFFER_LOAD("s_buffer_load_u8", BufferLoadSmall<uint8_t>, 1),
    BUFFER_LOAD("s_buffer_load_i16", BufferLoadSmall<int16_t>, 1),
    BUFFER_LOAD("s_buffer_load_u16", BufferLoadSmall<uint16_t>, 1),
    {kSmemEncoding, "s_memtime", kLoad, ReadTime, 2, {}, 0},
    {kSmemEncoding, "s_memrealtime", kLoad, ReadTime, 2, {}, 0},
    {kSop1, "s_sendmsg_rtn_b64", kLoad, ReadTime, 2, {}, 0},
    NOTHING("s_dcache_inv"),
    NOTHING("s_dcache_wb"),
    NOTHING("s_dcache_inv_vol"),
    NOTHING("s_dcache_wb_vol"),
    NOTHING("s_prefetch_inst"),
    NOTHING("s_prefetch_inst_pc_rel"),
    NOTHING("s_prefetch_data"),
    NOTHING("s_buffer_prefetch_data"),
    NOTHING("s_prefetch_data_pc_rel"),
};

}  // namespace

std::span<const ScalarOp> ScalarMemoryOps() { return kScalarMemoryOps; }

}  // namespace jax_fa::emulator
