// Which registers an instruction reads and writes, for the checks: worked out once, at decode.
#ifndef JAX_FA_EMULATOR_ACCESS_PLAN_H_
#define JAX_FA_EMULATOR_ACCESS_PLAN_H_

#include <array>
#include <cstdint>

#include "emulator/instruction.h"

namespace jax_fa::emulator {

// A run of registers of one operand.
struct Access {
  enum Kind : uint8_t { kVector, kScalar } kind = kVector;
  // Lanes that count: the active ones, all (EXEC is ignored), or none that can be told beforehand.
  enum Lanes : uint8_t { kActive, kAll, kUnknown } lanes = kActive;
  uint8_t count = 0;
  uint16_t first = 0;
};

struct AccessPlan {
  uint8_t reads = 0, writes = 0;
  bool reads_scc = false, writes_scc = false;
  bool arrives_later = false;    // memory: the destination is written by a result under way
  bool writes_one_lane = false;  // v_writelane: the lane in src[1]
  std::array<Access, 8> read = {};
  std::array<Access, 4> write = {};
};

AccessPlan PlanAccess(const Instruction& instruction, uint32_t wave_size);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_ACCESS_PLAN_H_
