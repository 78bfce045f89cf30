// Results under way: how memory instructions hand in what will land later, and how waits prove it.
//
//     InFlight& result = Issue(wave, instruction, Counter::kLoad);   // a recycled record, reset
//     result.destination = InFlight::kVector;
//     result.first_register = instruction.dst.index;
//     result.dwords = 4;  result.lanes = wave.exec;
//     for each lane: result.data[dword * kLaneStride + lane] = ...;
//     Push(wave, instruction, result);
//
// Stores write memory (or LDS) at once and push a record with destination kNone, so that the
// counter is right. Every memory instruction pushes exactly one record, also when no lane is
// active.
#ifndef JAX_FA_EMULATOR_EXEC_IN_FLIGHT_H_
#define JAX_FA_EMULATOR_EXEC_IN_FLIGHT_H_

#include <cstdint>

#include "emulator/state/wave.h"

namespace jax_fa::emulator {

// A record to fill, not yet in the queue. `also`: a second counter that must prove it too (FLAT:
// kLoad and kDs); kCount: none. All fields but `counter`, `also` and `pc` have their defaults;
// `data` is not cleared.
InFlight& Issue(Wave& wave, const Instruction& instruction, Counter counter,
                Counter also = Counter::kCount);
// Puts the record into the queue of its wave.
void Push(Wave& wave, const Instruction& instruction, InFlight& result);

constexpr uint32_t CounterBit(Counter counter) { return 1u << static_cast<uint32_t>(counter); }

// The wave's counter (a set of CounterBit: what shares one hardware counter) is known to be at most
// `count`: every result that this proves is there.
//
// In-order results arrive oldest first. Out-of-order ones (SMEM, FLAT) may come at any time, so
// only a wait for 0 proves them, and with some of them pending the others are proven just as far as
// if all the out-of-order results had come first.
void WaitFor(Wave& wave, uint32_t counters, uint32_t count);

// Under Arrival::kRandom: time passes, and some results land. What the chip writes in order lands
// in order.
void LetSomeLand(Wave& wave);

// What s_waitcnt asks for, which has all counters in one operand: vmcnt in bits [3:0] and [15:14],
// expcnt in [6:4], lgkmcnt in [11:8]. LDS and scalar memory share lgkmcnt. All bits set: no wait.
struct WaitCounts {
  uint32_t vmcnt, lgkmcnt;
};
constexpr WaitCounts PackedWaitCounts(uint32_t bits) {
  return {(bits & 15) | ((bits >> 10) & 0x30), (bits >> 8) & 15};
}

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_EXEC_IN_FLIGHT_H_
