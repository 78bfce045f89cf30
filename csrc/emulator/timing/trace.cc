#include "emulator/timing/trace.h"

#include <algorithm>
#include <bit>

#include "emulator/exec/lane_addresses.h"
#include "emulator/object/launch_context.h"

namespace jax_fa::emulator {
namespace {

// Calls fn(line) for the lines that the lanes touch, some more than once.
template <class Fn>
void ForLines(const Wave& wave, const Instruction& instruction, LineNumbers* numbers, Fn fn) {
  const uint32_t bytes = LaneBytes(instruction);
  const auto each_lane = [&](auto touch) {
    for (uint64_t rest = wave.exec; rest != 0; rest &= rest - 1) touch(__builtin_ctzll(rest));
  };
  const auto private_lines = [&](uint64_t address, int lane) {
    for (uint32_t at = 0; at < bytes; at += 4) {
      fn(numbers->Private(wave, (address & 0xffffffffu) + at, lane));
    }
  };
  switch (instruction.opcode->encoding) {
    case kGlobal:
    case kFlat:
    case kScratch: {
      if (instruction.src[0].kind == OperandKind::kNone &&
          instruction.src[2].kind == OperandKind::kNone &&
          instruction.opcode->encoding == kGlobal) {
        return;  // cache control
      }
      const bool scratch = instruction.opcode->encoding == kScratch;
      const FlatAddresses addresses(wave, instruction, scratch ? Space::kScratch : Space::kGlobal);
      each_lane([&](int lane) {
        const uint64_t address = addresses[lane], aperture = address >> 32 << 32;
        if (scratch || aperture == kPrivateAperture) {
          private_lines(address, lane);
        } else if (aperture != kSharedAperture) {
          numbers->ForRange(address, bytes, fn);
        }
      });
      return;
    }
    case kMubuf: {
      if (instruction.opcode->src_dwords[2] == 0) return;  // cache control
      const BufferAddresses addresses(wave, instruction);
      each_lane([&](int lane) {
        const uint32_t inside = addresses.BytesInRange(lane, bytes);
        if (inside != 0) numbers->ForRange(addresses.base() + addresses.Offset(lane), inside, fn);
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
  return 4u * opcode.traits.lds_dwords;
}

LineNumbers::LineNumbers(const Memory& memory, const Workgroup& group)
    : memory_(&memory), region_(memory.regions().data()) {
  for (const Region& region : memory.regions()) {
    firsts_.push_back(count_);
    count_ += static_cast<uint32_t>((region.end - region.begin + kLineBytes - 1) / kLineBytes);
  }
  private_first_ = count_;
  private_lines_ = (group.scratch_bytes * kLaneStride + kLineBytes - 1) / kLineBytes;
  count_ += private_lines_ * static_cast<uint32_t>(group.waves.size());
}

// An address outside stops the run when the instruction executes; until then any region will do.
void LineNumbers::Find(uint64_t address) {
  const int found = std::max(memory_->Find(address, 1), 0);
  region_ = &memory_->regions()[static_cast<size_t>(found)];
  first_ = firsts_[static_cast<size_t>(found)];
}

uint32_t LineNumbers::Private(const Wave& wave, uint64_t offset, int lane) const {
  const uint64_t dword = offset / 4 * kLaneStride + static_cast<uint64_t>(lane);
  const auto line = static_cast<uint32_t>(dword * 4 / kLineBytes);
  return private_first_ + wave.index_in_group * private_lines_ +
         std::min(line, private_lines_ == 0 ? 0 : private_lines_ - 1);
}

void Tracer::Begin(const LaunchContext& launch, const Workgroup& group, uint64_t index) {
  numbers_ = LineNumbers(*launch.memory, group);
  trace_.group = index;
  trace_.line_count = numbers_.count();
  trace_.waves.assign(group.waves.size(), {});
}

void Tracer::Before(const Wave& wave, const Instruction& instruction) {
  const OpClass op_class = instruction.opcode->op_class;
  detail_ = 0;
  is_lds_ = op_class == OpClass::kLdsRead || op_class == OpClass::kLdsWrite;
  if (is_lds_) conflicts_before_ = wave.group->bank_conflicts;
  if (!TouchesMemory(op_class)) return;
  touched_.clear();
  ForLines(wave, instruction, &numbers_, [&](uint32_t line) {
    if (touched_.empty() || touched_.back() != line) touched_.push_back(line);
  });
  if (!std::is_sorted(touched_.begin(), touched_.end())) {
    std::sort(touched_.begin(), touched_.end());
  }
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  std::vector<uint32_t>& lines = trace_.waves[wave.index_in_group].lines;
  detail_ = static_cast<uint32_t>(lines.size());
  lines.push_back(static_cast<uint32_t>(touched_.size()));
  lines.insert(lines.end(), touched_.begin(), touched_.end());
}

void Tracer::After(const Wave& wave, uint32_t slot) {
  if (is_lds_) {
    const auto conflicts = static_cast<uint32_t>(wave.group->bank_conflicts - conflicts_before_);
    detail_ = conflicts | static_cast<uint32_t>(std::popcount(wave.exec)) << kLanesShift;
  }
  trace_.waves[wave.index_in_group].events.push_back({slot, detail_});
}

}  // namespace jax_fa::emulator
