// LDS bank conflicts: how many passes more than its width alone an access takes.
//
// An access is served in passes, each a fixed group of lanes whose bytes fill the banks once; a
// pass repeats while two of its lanes want different dwords of one bank.
#ifndef JAX_FA_EMULATOR_STATE_BANK_CONFLICTS_H_
#define JAX_FA_EMULATOR_STATE_BANK_CONFLICTS_H_

#include <array>
#include <cstdint>
#include <span>

#include "emulator/required.h"

namespace jax_fa::emulator {

// The lanes of each pass, by what a lane moves: up to 4 bytes, 8, more.
using LanePasses = std::array<std::span<const uint64_t>, 3>;
constexpr uint64_t LaneRange(int first, int count) {
  return (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
}

// The LDS of a chip.
struct LdsBanks {
  Required<uint32_t> banks;  // a dword each, at most 64
  Required<LanePasses> read, write;
};

// Counts for one workgroup. Most accesses repeat a pattern of lane distances, whose conflicts do
// not depend on where it lies: the last patterns of each width are remembered.
class BankConflicts {
 public:
  void Reset(const LdsBanks& banks, uint32_t wave_size) {
    banks_ = &banks;
    wave_size_ = wave_size;
  }

  // Passes beyond the least of `lanes` moving `bytes` each at addresses[lane].
  uint32_t Count(bool write, uint32_t bytes, uint64_t lanes, const uint32_t* addresses);

 private:
  static constexpr int kLanes = 64;
  struct Pattern {
    bool known = false;
    uint32_t passes = 0;
    std::array<uint32_t, kLanes> distance = {};
  };
  uint32_t CountPasses(bool write, uint32_t bytes, uint64_t lanes, const uint32_t* addresses) const;

  const LdsBanks* banks_ = nullptr;
  uint32_t wave_size_ = 64;
  std::array<std::array<Pattern, 2>, 10> patterns_;  // by width and direction, latest first
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_STATE_BANK_CONFLICTS_H_
