// Which registers an instruction reads and writes, for the checks: worked out once, at decode.
#ifndef JAX_FA_EMULATOR_CHECK_ACCESS_PLAN_H_
#define JAX_FA_EMULATOR_CHECK_ACCESS_PLAN_H_

#include <array>
#include <cstdint>

#include "emulator/state/instruction.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

// A run of registers of one operand.
struct Access {
  enum Kind : uint8_t { kVector, kScalar } kind = kVector;
  // Lanes that count: the active ones, all (EXEC is ignored), or none that can be told beforehand.
  enum Lanes : uint8_t { kActive, kAll, kUnknown } lanes = kActive;
  uint8_t count = 0;
  uint8_t place = 0;  // which source; kOtherPlace: what is read beside the sources
  uint16_t first = 0;
  bool high_to_high = false;  // on its second register only that of the result depends, and a carry
};
inline constexpr uint8_t kOtherPlace = 3;
// s0.. or VCC.
inline bool IsPlainScalar(const Access& access) {
  return access.kind == Access::kScalar && access.first < kSgprTtmp0;
}

// What the rules on wait states (check/hazard.h) distinguish.
struct HazardTraits {
  enum Unit : uint8_t { kScalarUnit, kVectorUnit, kMatrixUnit, kMemory, kLds } unit = kScalarUnit;
  bool idle = false;  // the rules of this target have nothing to do at it
  uint8_t wait_states = 1;
  uint8_t passes = 0;   // matrix: groups of 4 cycles
  bool single = false;  // matrix: of the units for float32 (not XDL)
  uint32_t flags = 0;   // of the target (target/<name>/hazards.h)
  bool Is(uint32_t flag) const { return (flags & flag) != 0; }
};

struct AccessPlan {
  uint8_t reads = 0, writes = 0;
  bool reads_scc = false, writes_scc = false;
  bool arrives_later = false;    // memory: the destination is written by a result under way
  bool writes_one_lane = false;  // v_writelane: the lane in src[1]
  bool high_to_high = false;     // of a read
  std::array<Access, 10> read = {};
  std::array<Access, 4> write = {};
  HazardTraits hazard;
};

AccessPlan PlanAccess(const Instruction& instruction, uint32_t wave_size);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_CHECK_ACCESS_PLAN_H_
