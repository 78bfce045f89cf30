#include "emulator/state/bank_conflicts.h"

#include <algorithm>
#include <bit>

namespace jax_fa::emulator {
uint32_t BankConflicts::CountPasses(bool write, uint32_t bytes, uint64_t lanes,
                                    const uint32_t* addresses) const {
  const uint32_t banks = banks_->banks;
  const LanePasses& passes = write ? banks_->write : banks_->read;
  const uint32_t dwords = std::max(bytes / 4, 1u);
  uint32_t extra = 0;
  for (const uint64_t pass : passes[bytes <= 4 ? 0 : bytes == 8 ? 1 : 2]) {
    // Distinct dwords wanted of each bank; at most 64 lanes x 4 dwords.
    std::array<uint32_t, 64> wanted = {};
    std::array<std::array<uint32_t, 64>, 64> seen;
    uint32_t worst = 1;
    for (uint64_t rest = lanes & pass; rest != 0; rest &= rest - 1) {
      const uint32_t first = addresses[std::countr_zero(rest)] / 4;
      for (uint32_t d = 0; d < dwords; ++d) {
        const uint32_t dword = first + d, bank = dword % banks;
        const auto begin = seen[bank].begin(), end = begin + wanted[bank];
        if (std::find(begin, end, dword) != end) continue;  // one read serves several lanes
        seen[bank][wanted[bank]++] = dword;
        worst = std::max(worst, wanted[bank]);
      }
    }
    extra += worst - 1;
  }
  return extra;
}

uint32_t BankConflicts::Count(bool write, uint32_t bytes, uint64_t lanes,
                              const uint32_t* addresses) {
  const uint64_t full = wave_size_ == 64 ? ~uint64_t{0} : 0xffffffffu;
  if (lanes != full) return CountPasses(write, bytes, lanes, addresses);
  // Distances in bytes from lane 0, with its place in its dword: banks rotate, conflicts stay.
  std::array<uint32_t, kLanes> distance;
  const uint32_t origin = addresses[0] & ~3u;
  for (uint32_t l = 0; l < wave_size_; ++l) distance[l] = addresses[l] - origin;
  const uint32_t width = bytes <= 4 ? 0 : bytes / 4 - 1;  // 4, 8, 12, 16 bytes
  auto& [latest, former] = patterns_[std::min(width, 4u) * 2 + (write ? 1 : 0)];
  const auto matches = [&](const Pattern& pattern) {
    return pattern.known &&
           std::equal(distance.begin(), distance.begin() + wave_size_, pattern.distance.begin());
  };
  if (matches(latest)) return latest.passes;
  if (matches(former)) {
    std::swap(latest, former);
    return latest.passes;
  }
  former = latest;
  latest.known = true;
  latest.distance = distance;
  latest.passes = CountPasses(write, bytes, lanes, addresses);
  return latest.passes;
}

}  // namespace jax_fa::emulator
