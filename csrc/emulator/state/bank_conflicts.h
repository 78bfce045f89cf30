// LDS bank conflicts: how many passes more than its width alone an access takes.
//
// An access is served in passes, each a fixed group of lanes whose bytes fill the banks once; a
// pass repeats while two of its lanes want different dwords of one bank.
#ifndef JAX_FA_EMULATOR_STATE_BANK_CONFLICTS_H_
#define JAX_FA_EMULATOR_STATE_BANK_CONFLICTS_H_

#include <array>
#include <cstdint>

namespace jax_fa::emulator {

// Counts for one workgroup. Most accesses repeat a pattern of lane distances, whose conflicts do
// not depend on where it lies: the last patterns of each width are remembered.
class BankConflicts {
 public:
  // `wave_size` tells the targets apart: 64 banks and wave64, or 32 banks and wave32.
  void Reset(uint32_t wave_size) { wave_size_ = wave_size; }

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

  uint32_t wave_size_ = 64;
  std::array<std::array<Pattern, 2>, 10> patterns_;  // by width and direction, latest first
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_STATE_BANK_CONFLICTS_H_
