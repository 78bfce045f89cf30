// Registered memory: the only memory a kernel may touch.
//
// Exec functions turn a lane's address range into a host pointer with LoadPointer / StorePointer,
// which stop the run (naming lane and address) outside every allocation and count the bytes for the
// allocation that was hit. Nothing here is atomic: instructions that are use std::atomic_ref.
#ifndef JAX_FA_EMULATOR_STATE_MEMORY_H_
#define JAX_FA_EMULATOR_STATE_MEMORY_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulator/emulator.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

// One allocation as the wave sees it: [begin, end) in its address space.
struct Region {
  uint64_t begin = 0, end = 0;
  uint8_t* host = nullptr;
  bool writable = false;
};

class Memory {
 public:
  // Allocations that share host memory become one region. Throws EmulatorError when they overlap
  // in address only.
  explicit Memory(std::span<const Allocation> allocations);

  // The region that holds all of [address, address + bytes), or -1.
  int Find(uint64_t address, uint64_t bytes) const;
  const std::vector<Region>& regions() const { return regions_; }
  const std::string& name(int region) const { return names_[static_cast<size_t>(region)]; }

  // "address 0x7f10 (+16 bytes) is 1 byte past the end of 'key' (4096 bytes)".
  std::string Describe(uint64_t address, uint64_t bytes, bool write) const;

 private:
  std::vector<Region> regions_;  // by address
  std::vector<std::string> names_;
};

// Slow paths.
int FindRegionOrFail(Wave& wave, const Instruction& instruction, uint64_t address, uint32_t bytes,
                     int lane, bool write);

// Host address of `bytes` bytes at a lane's `address`, to read from. lane -1: a scalar access.
inline const uint8_t* LoadPointer(Wave& wave, const Instruction& instruction, uint64_t address,
                                  uint32_t bytes, int lane) {
  Workgroup& group = *wave.group;
  const Region* region = &group.regions[group.last_region];
  if (address < region->begin || address > region->end || region->end - address < bytes) {
    group.last_region = static_cast<uint32_t>(
        FindRegionOrFail(wave, instruction, address, bytes, lane, /*write=*/false));
    region = &group.regions[group.last_region];
  }
  group.buffer_traffic[group.last_region].read_bytes += bytes;
  return region->host + (address - region->begin);
}

// Host address to write `bytes` bytes to; read-only allocations stop the run.
inline uint8_t* StorePointer(Wave& wave, const Instruction& instruction, uint64_t address,
                             uint32_t bytes, int lane) {
  Workgroup& group = *wave.group;
  const Region* region = &group.regions[group.last_region];
  if (address < region->begin || address > region->end || region->end - address < bytes ||
      !region->writable) {
    group.last_region = static_cast<uint32_t>(
        FindRegionOrFail(wave, instruction, address, bytes, lane, /*write=*/true));
    region = &group.regions[group.last_region];
  }
  group.buffer_traffic[group.last_region].written_bytes += bytes;
  return region->host + (address - region->begin);
}

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_STATE_MEMORY_H_
