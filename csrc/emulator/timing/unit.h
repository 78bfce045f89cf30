// The timing model of what a workgroup runs on (a CU of gfx950, a work-group processor or CU of
// gfx1201), driven by the traces of resident workgroups.
//
// Each SIMD issues, at a time, the ready instruction of the wave of highest priority, and of those
// of the oldest or of the one that has waited longest, as Constant::kOldestFirst says; a wave
// issues in order, at most one instruction every TimingShape::issue_clk. Where the vector unit has
// a queue (vector_queue.h) instructions issue into that and begin when their turn comes. Units
// (VALU, matrix core, scalar, LDS, memory, branch) are held as chip/timing_constants.h names.
// Operands are ready when their producers' latencies have passed, loads when their wait proves them
// there. Results of loads return in order; L1 is modelled by its lines, what lies behind it by a
// rate and a latency. Not modelled: instruction fetch, register banks, power.
#ifndef JAX_FA_EMULATOR_TIMING_UNIT_H_
#define JAX_FA_EMULATOR_TIMING_UNIT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "emulator/object/program.h"
#include "emulator/timing/constants.h"
#include "emulator/timing/slices.h"
#include "emulator/timing/trace.h"

namespace jax_fa::emulator {

// One instruction of one wave, as it issued.
struct IssueRecord {
  uint32_t wave = 0;  // of all resident ones
  uint32_t slot = 0;  // KernelCode::slots
  double clk = 0;
};

// What to record beside the times.
enum class Record : uint8_t { kNothing, kSlices, kIssues };

struct UnitTime {
  double clk = 0;              // from dispatch to the end of the last wave
  double matrix_clk = 0;       // summed over SIMDs
  double long_matrix_clk = 0;  // of it by 32x32 instructions
  double missed_bytes = 0;     // L1 to L2
  std::vector<Slice> slices;
  std::vector<IssueRecord> issues;  // in order of time
};

struct UnitOptions {
  Record record = Record::kNothing;
  bool cold = false;  // nothing is in any cache
  // Workgroups of one unit are as far apart in the order of dispatch as there are units: what one
  // reads another seldom does, so each has cache lines of its own. Else all read the same.
  bool share_lines = false;
};

// All of `groups` start together on one unit of `simds` SIMDs.
UnitTime TimeUnit(const Chip& chip, std::span<const TimedInstruction> timed,
                  std::span<const GroupTrace* const> groups, uint32_t simds,
                  const TimingConstants& constants, const UnitOptions& options = {});

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_TIMING_UNIT_H_
