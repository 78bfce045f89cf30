#include "emulator/trace.h"

#include <algorithm>
#include <string_view>

#include "emulator/lane_addresses.h"

namespace jax_fa::emulator {
namespace {

// Calls fn(first byte, bytes) for each lane that moves bytes in memory.
template <class Fn>
void ForAccesses(const Wave& wave, const Instruction& instruction, Fn fn) {
  const uint32_t bytes = LaneBytes(instruction);
  const auto each_lane = [&](auto address) {
    for (uint64_t rest = wave.exec; rest != 0; rest &= rest - 1) {
      address(__builtin_ctzll(rest));
    }
  };
  switch (instruction.opcode->encoding) {
    case kGlobal:
    case kFlat: {
      if (instruction.src[0].kind == OperandKind::kNone &&
          instruction.src[2].kind == OperandKind::kNone) {
        return;  // cache control
      }
      const bool flat = instruction.opcode->encoding == kFlat;
      const FlatAddresses addresses(wave, instruction, flat ? Space::kFlat : Space::kGlobal);
      each_lane([&](int lane) {
        const uint64_t address = addresses[lane];
        const uint64_t aperture = address >> 32 << 32;
        if (aperture != kSharedAperture && aperture != kPrivateAperture) fn(address, bytes);
      });
      return;
    }
    case kScratch: {
      // Lanes are interleaved dword by dword: neighbours share lines.
      const FlatAddresses addresses(wave, instruction, Space::kScratch);
      each_lane([&](int lane) {
        const uint64_t dword = (addresses[lane] & 0xffffffffu) / 4 * wave.lanes;
        fn(kPrivateAperture + (uint64_t{wave.index_in_group} << 28) +
               (dword + static_cast<uint64_t>(lane)) * 4,
           4);
      });
      return;
    }
    case kMubuf: {
      if (instruction.opcode->src_dwords[2] == 0) return;  // cache control
      const BufferAddresses addresses(wave, instruction);
      each_lane([&](int lane) {
        const uint64_t offset = addresses.Offset(lane);
        if (addresses.InRange(offset, bytes)) fn(addresses.base() + offset, bytes);
      });
      return;
    }
    default:
      return;
  }
}

bool TouchesMemory(OpClass op_class) {
  return op_class == OpClass::kVmemLoad || op_class == OpClass::kVmemStore ||
         op_class == OpClass::kLdsDma;
}

}  // namespace

uint32_t LaneBytes(const Instruction& instruction) {
  const Opcode& opcode = *instruction.opcode;
  if (opcode.op_class != OpClass::kLdsDma) {
    return 4u * std::max<uint32_t>({opcode.dst_dwords, opcode.src_dwords[1], 1});
  }
  const std::string_view name = opcode.mnemonic;
  return name.ends_with("x4") ? 16 : name.ends_with("x3") ? 12 : 4;
}

void Tracer::Begin(uint64_t group, size_t waves) {
  trace_.group = group;
  trace_.waves.assign(waves, {});
}

void Tracer::Before(const Wave& wave, const Instruction& instruction) {
  const OpClass op_class = instruction.opcode->op_class;
  detail_ = 0;
  is_lds_ = op_class == OpClass::kLdsRead || op_class == OpClass::kLdsWrite;
  if (is_lds_) conflicts_before_ = wave.group->bank_conflicts;
  if (!TouchesMemory(op_class)) return;
  touched_.clear();
  ForAccesses(wave, instruction, [&](uint64_t address, uint32_t bytes) {
    const uint64_t last = (address + bytes - 1) / kLineBytes;
    for (uint64_t line = address / kLineBytes; line <= last; ++line) {
      if (touched_.empty() || touched_.back() != line) touched_.push_back(line);
    }
  });
  std::sort(touched_.begin(), touched_.end());
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  std::vector<uint32_t>& lines = trace_.waves[wave.index_in_group].lines;
  detail_ = static_cast<uint32_t>(lines.size());
  lines.push_back(static_cast<uint32_t>(touched_.size()));
  for (const uint64_t line : touched_) lines.push_back(static_cast<uint32_t>(line));
}

void Tracer::After(const Wave& wave, uint32_t slot) {
  if (is_lds_) detail_ = static_cast<uint32_t>(wave.group->bank_conflicts - conflicts_before_);
  trace_.waves[wave.index_in_group].events.push_back({slot, detail_});
}

}  // namespace jax_fa::emulator
