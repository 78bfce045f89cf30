// The timing model of a whole launch over that of one unit: workgroups dispatched over the dies and
// their units, and the bytes that they move against the rates of L2 and memory.
#ifndef JAX_FA_EMULATOR_TIMING_GRID_H_
#define JAX_FA_EMULATOR_TIMING_GRID_H_

#include <cstdint>
#include <span>
#include <vector>

#include "emulator/state/memory.h"
#include "emulator/timing/constants.h"
#include "emulator/timing/trace.h"

namespace jax_fa::emulator {

// One workgroup on a unit that runs `resident` like it at a time.
struct GroupTime {
  uint64_t group = 0;
  double clk = 0;              // until it has ended
  double matrix_clk = 0;       // its own, summed over SIMDs
  double long_matrix_clk = 0;  // of it by 32x32 instructions
  double missed_bytes = 0;     // its own, L1 to L2
  double alone_clk = 0;        // until it has ended with the unit to itself
};

struct GridTraffic {
  double die_bytes = 0;     // distinct lines of each die, summed over dies: what the L2s fetch
  double memory_bytes = 0;  // distinct lines of all
};

struct GridTime {
  double clk = 0;         // of the launch: launch_clk and the largest of the others
  double launch_clk = 0;  // what cold caches add to the first workgroups
  double dispatch_clk = 0, l2_clk = 0, fabric_clk = 0, memory_clk = 0;
  double matrix_clk = 0;
  double clock_hz = 0;  // the clock that the matrix instructions in the mix run at
  double stream = 0;    // what a stream of them sustains of it
  uint32_t simds = 0;   // of the chip
};

// `groups` in the order of their index, which is the order of dispatch; `simds` of one unit.
GridTime TimeGrid(const Chip& chip, uint32_t simds, uint32_t resident,
                  std::span<const GroupTime> groups, const GridTraffic& traffic,
                  const TimingConstants& constants);

// Which lines of the registered memory the workgroups of each die have touched. Thread-safe.
class TouchedLines {
 public:
  TouchedLines(const Memory& memory, uint32_t dies);
  void Add(const GroupTrace& trace);
  GridTraffic Traffic() const;

 private:
  uint32_t dies_;
  uint32_t lines_;              // of the registered memory
  uint64_t words_;              // per die
  std::vector<uint64_t> bits_;  // by die
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TIMING_GRID_H_
