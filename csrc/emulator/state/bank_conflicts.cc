#include "emulator/state/bank_conflicts.h"

#include <algorithm>
#include <bit>
#include <span>

namespace jax_fa::emulator {
namespace {

constexpr uint64_t Lanes(int first, int count) {
  return (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
}

// gfx950, 64 banks. The lane groups of 16-byte reads as HipKittens measured them; of the other
// widths consecutive lanes, as many passes as timing/constants.cc has.
constexpr uint64_t k128a = Lanes(0, 4) | Lanes(12, 4) | Lanes(20, 8);
constexpr uint64_t k128b = Lanes(4, 8) | Lanes(16, 4) | Lanes(28, 4);
constexpr uint64_t kRead128[] = {k128a, k128b, k128a << 32, k128b << 32};
constexpr uint64_t kAll64[] = {Lanes(0, 64)};
constexpr uint64_t kHalves64[] = {Lanes(0, 32), Lanes(32, 32)};
constexpr uint64_t kQuarters64[] = {Lanes(0, 16), Lanes(16, 16), Lanes(32, 16), Lanes(48, 16)};
constexpr uint64_t kEighths64[] = {Lanes(0, 8),  Lanes(8, 8),  Lanes(16, 8), Lanes(24, 8),
                                   Lanes(32, 8), Lanes(40, 8), Lanes(48, 8), Lanes(56, 8)};
// gfx1201, 32 banks.
constexpr uint64_t kAll32[] = {Lanes(0, 32)};
constexpr uint64_t kHalves32[] = {Lanes(0, 16), Lanes(16, 16)};
constexpr uint64_t kQuarters32[] = {Lanes(0, 8), Lanes(8, 8), Lanes(16, 8), Lanes(24, 8)};

std::span<const uint64_t> Passes(uint32_t wave_size, bool write, uint32_t bytes) {
  if (wave_size == 32) {
    if (bytes <= 4) return kAll32;
    return bytes == 8 ? std::span<const uint64_t>(kHalves32) : kQuarters32;
  }
  if (write) {
    if (bytes <= 4) return kHalves64;
    return bytes == 8 ? std::span<const uint64_t>(kQuarters64) : kEighths64;
  }
  if (bytes <= 4) return kAll64;
  return bytes == 8 ? std::span<const uint64_t>(kHalves64) : kRead128;
}

}  // namespace

uint32_t BankConflicts::CountPasses(bool write, uint32_t bytes, uint64_t lanes,
                                    const uint32_t* addresses) const {
  const uint32_t banks = wave_size_;
  const uint32_t dwords = std::max(bytes / 4, 1u);
  uint32_t extra = 0;
  for (const uint64_t pass : Passes(wave_size_, write, bytes)) {
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
