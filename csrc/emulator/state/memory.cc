#include "emulator/state/memory.h"

#include <algorithm>
#include <cstdio>

namespace jax_fa::emulator {
namespace {

std::string Hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

Memory::Memory(std::span<const Allocation> allocations) {
  struct Entry {
    Region region;
    std::string name;
  };
  std::vector<Entry> entries;
  for (const Allocation& allocation : allocations) {
    if (allocation.bytes == 0) continue;
    const uint64_t begin =
        allocation.address != 0 ? allocation.address : reinterpret_cast<uint64_t>(allocation.host);
    const uint64_t end = begin + allocation.bytes;
    if (end < begin) throw EmulatorError("allocation '" + allocation.name + "' wraps around");
    entries.push_back({{begin, end, static_cast<uint8_t*>(allocation.host), allocation.writable},
                       allocation.name});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.region.begin < b.region.begin; });
  // Operands may share memory (one array passed twice): such ranges are one region.
  for (const Entry& entry : entries) {
    if (!regions_.empty() && entry.region.begin < regions_.back().end) {
      Region& last = regions_.back();
      if (entry.region.host != last.host + (entry.region.begin - last.begin)) {
        throw EmulatorError("allocations '" + names_.back() + "' and '" + entry.name +
                            "' overlap in address but not in host memory");
      }
      last.end = std::max(last.end, entry.region.end);
      last.writable = last.writable || entry.region.writable;
      names_.back() += "|" + entry.name;
    } else {
      regions_.push_back(entry.region);
      names_.push_back(entry.name);
    }
  }
}

int Memory::Find(uint64_t address, uint64_t bytes) const {
  const auto after =
      std::upper_bound(regions_.begin(), regions_.end(), address,
                       [](uint64_t a, const Region& region) { return a < region.begin; });
  if (after == regions_.begin()) return -1;
  const Region& region = *(after - 1);
  if (address > region.end || region.end - address < bytes) return -1;
  return static_cast<int>(after - 1 - regions_.begin());
}

std::string Memory::Describe(uint64_t address, uint64_t bytes, bool write) const {
  std::string text = std::string(write ? "writes " : "reads ") + std::to_string(bytes) +
                     " bytes at address " + Hex(address) + ": ";
  const int found = Find(address, bytes);
  if (found >= 0) return text + "'" + name(found) + "' is read-only";
  // The nearest allocation tells most.
  const Region* nearest = nullptr;
  uint64_t distance = ~uint64_t{0};
  for (const Region& region : regions_) {
    const uint64_t gap = address < region.begin  ? region.begin - address
                         : address >= region.end ? address - region.end
                                                 : 0;
    if (!nearest || gap < distance) {
      nearest = &region;
      distance = gap;
    }
  }
  if (!nearest) return text + "no memory is registered";
  const std::string& nearest_name = names_[static_cast<size_t>(nearest - regions_.data())];
  const std::string described = "'" + nearest_name + "' (" +
                                std::to_string(nearest->end - nearest->begin) + " bytes at " +
                                Hex(nearest->begin) + ")";
  if (address < nearest->begin) {
    return text + "outside all registered memory, " + std::to_string(nearest->begin - address) +
           " bytes before " + described;
  }
  if (address >= nearest->end) {
    return text + "outside all registered memory, " + std::to_string(address - nearest->end) +
           " bytes past the end of " + described;
  }
  return text + "runs " + std::to_string(address + bytes - nearest->end) +
         " bytes past the end of " + described;
}

int FindRegionOrFail(Wave& wave, const Instruction& instruction, uint64_t address, uint32_t bytes,
                     int lane, bool write) {
  const Memory& memory = *wave.group->memory;
  const int region = memory.Find(address, bytes);
  if (region < 0 || (write && !memory.regions()[static_cast<size_t>(region)].writable)) {
    Fail(wave, instruction, memory.Describe(address, bytes, write), lane);
  }
  return region;
}

}  // namespace jax_fa::emulator
