#include "emulator/timing/grid.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <functional>
#include <queue>

namespace jax_fa::emulator {
namespace {

using C = Constant;

// When the last of `groups` ends on a die whose `units`, of `resident` workgroup slots each, take
// them in order. A last round that does not fill the slots is spread over the units.
double DispatchInOrder(const std::vector<const GroupTime*>& groups, size_t units, size_t resident) {
  const size_t slots = units * resident;
  const size_t last_round = groups.size() - groups.size() % slots;
  // Between a workgroup alone on its unit (0) and one of all that fit there (1).
  double crowd = 1;
  if (resident > 1) {
    const size_t shared = (groups.size() - last_round + units - 1) / units;
    crowd = (static_cast<double>(shared) - 1) / (static_cast<double>(resident) - 1);
  }
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  double last = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    double clk = groups[i]->clk;
    if (i >= last_round) clk = groups[i]->alone_clk + (clk - groups[i]->alone_clk) * crowd;
    double begin = 0;
    if (free.size() == slots) {
      begin = free.top();
      free.pop();
    }
    free.push(begin + clk);
    last = std::max(last, begin + clk);
  }
  return last;
}

}  // namespace

GridTime TimeGrid(const Chip& chip, uint32_t simds, uint32_t resident,
                  std::span<const GroupTime> groups, const GridTraffic& traffic,
                  const TimingConstants& constants) {
  const uint32_t units = chip.simds() / simds;
  std::vector<std::vector<const GroupTime*>> dies(chip.dies);
  std::vector<double> missed_bytes(chip.dies);
  double long_matrix_clk = 0;
  GridTime time;
  for (const GroupTime& group : groups) {
    const auto die = static_cast<size_t>(group.group % chip.dies);
    dies[die].push_back(&group);
    missed_bytes[die] += group.missed_bytes;
    time.matrix_clk += group.matrix_clk;
    long_matrix_clk += group.long_matrix_clk;
  }
  const double share = time.matrix_clk == 0 ? 0 : long_matrix_clk / time.matrix_clk;
  const auto mix = [&](C small, C large) {
    return constants[small] * (1 - share) + constants[large] * share;
  };
  time.stream = mix(C::kStreamShort, C::kStreamLong);
  for (size_t die = 0; die < chip.dies; ++die) {
    const double clk = DispatchInOrder(dies[die], size_t{units / chip.dies}, resident);
    time.dispatch_clk = std::max(time.dispatch_clk, clk);
    time.l2_clk = std::max(time.l2_clk, missed_bytes[die] / constants[C::kDieRate]);
  }
  time.simds = chip.simds();
  time.clock_hz = mix(C::kClockShort, C::kClockLong);
  if (constants[C::kClockByEnergy] != 0 && time.matrix_clk != 0) {
    const double energy = time.matrix_clk + long_matrix_clk * (constants[C::kEnergyLong] - 1);
    const double per_clk = energy / (time.simds * std::max(time.dispatch_clk, time.l2_clk));
    time.clock_hz =
        std::min(constants[C::kClockTop],
                 constants[C::kClockShort] * std::pow(per_clk, -constants[C::kEnergyExponent]));
  }
  time.fabric_clk = traffic.die_bytes / constants[C::kFabricRate] * time.clock_hz;
  time.memory_clk = traffic.memory_bytes / constants[C::kMemoryRate] * time.clock_hz;
  if (!groups.empty()) {
    time.launch_clk = constants[C::kColdFetch] + constants[C::kColdScalar] -
                      constants[C::kScalarLoadLatency] + constants[C::kColdLoad] -
                      constants[C::kL2Latency];
  }
  time.clk = time.launch_clk +
             std::max({time.dispatch_clk, time.l2_clk, time.fabric_clk, time.memory_clk});
  return time;
}

TouchedLines::TouchedLines(const Memory& memory, uint32_t dies)
    : dies_(dies), lines_(LineNumbers(memory, Workgroup()).count()), words_((lines_ + 63) / 64) {
  bits_.resize(words_ * dies);
}

void TouchedLines::Add(const GroupTrace& trace) {
  uint64_t* const die = bits_.data() + trace.group % dies_ * words_;
  for (const WaveTrace& wave : trace.waves) {
    for (size_t i = 0; i < wave.lines.size(); i += 1 + wave.lines[i]) {
      for (uint32_t l = 1; l <= wave.lines[i]; ++l) {
        const uint32_t line = wave.lines[i + l];
        if (line >= lines_) continue;  // private memory
        const uint64_t mask = uint64_t{1} << (line % 64);
        const std::atomic_ref<uint64_t> word(die[line / 64]);
        if ((word.load(std::memory_order_relaxed) & mask) == 0) {
          word.fetch_or(mask, std::memory_order_relaxed);
        }
      }
    }
  }
}

GridTraffic TouchedLines::Traffic() const {
  GridTraffic traffic;
  for (uint64_t word = 0; word < words_; ++word) {
    uint64_t any = 0;
    for (uint32_t die = 0; die < dies_; ++die) {
      const uint64_t bits = bits_[die * words_ + word];
      traffic.die_bytes += static_cast<double>(std::popcount(bits)) * kLineBytes;
      any |= bits;
    }
    traffic.memory_bytes += static_cast<double>(std::popcount(any)) * kLineBytes;
  }
  return traffic;
}

}  // namespace jax_fa::emulator
