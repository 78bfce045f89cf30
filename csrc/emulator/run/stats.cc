#include "emulator/run/stats.h"

#include <algorithm>

namespace jax_fa::emulator {
namespace {

constexpr const char* kClassNames[] = {
    "matrix",  "sparse_matrix", "valu",     "valu_packed", "valu_dual", "trans",
    "salu",    "smem",          "lds_read", "lds_write",   "vmem_load", "vmem_store",
    "lds_dma", "wait",          "barrier",  "branch",      "nop"};
static_assert(std::size(kClassNames) == static_cast<size_t>(OpClass::kCount));

constexpr size_t kMaxOfLaunch = 1000;

void AddTraffic(const Traffic& from, Traffic* to) {
  to->read_bytes += from.read_bytes;
  to->written_bytes += from.written_bytes;
}

}  // namespace

const char* ClassName(OpClass op_class) { return kClassNames[static_cast<size_t>(op_class)]; }

void Totals::Add(const Worker& worker) {
  const Workgroup& group = worker.group();
  slot_counts_.resize(worker.slot_counts().size());
  for (size_t i = 0; i < slot_counts_.size(); ++i) slot_counts_[i] += worker.slot_counts()[i];
  buffers_.resize(group.buffer_traffic.size());
  for (size_t i = 0; i < buffers_.size(); ++i) AddTraffic(group.buffer_traffic[i], &buffers_[i]);
  AddTraffic(group.lds_traffic, &lds_);
  bank_conflicts_ += group.bank_conflicts;
}

LaunchResult Totals::Result(const LaunchContext& launch,
                            const std::map<uint64_t, std::vector<std::string>>& findings) const {
  LaunchResult result;
  for (size_t slot = 0; slot < slot_counts_.size(); ++slot) {
    const uint64_t count = slot_counts_[slot];
    if (count == 0) continue;
    const Opcode& opcode = *launch.code->slots[slot]->opcode;
    result.class_counts[ClassName(opcode.op_class)] += count;
    result.mnemonic_counts[opcode.mnemonic] += count;
    result.wave_instructions += count;
    result.executed.push_back({launch.code->begin + 4 * slot, count});
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    result.buffer_bytes.push_back({launch.memory->name(static_cast<int>(i)), buffers_[i].read_bytes,
                                   buffers_[i].written_bytes});
  }
  result.lds_read_bytes = lds_.read_bytes;
  result.lds_written_bytes = lds_.written_bytes;
  result.bank_conflicts = bank_conflicts_;
  for (const auto& [group, texts] : findings) {
    for (const std::string& text : texts) {
      if (result.findings.size() < kMaxOfLaunch) result.findings.push_back(text);
    }
  }
  return result;
}

}  // namespace jax_fa::emulator
