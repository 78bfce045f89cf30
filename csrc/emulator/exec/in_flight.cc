#include "emulator/exec/in_flight.h"

#include <bit>
#include <cstring>

#include "emulator/check/check.h"
#include "emulator/chip/chip.h"
#include "emulator/object/launch_context.h"
#include "emulator/state/random.h"

namespace jax_fa::emulator {
namespace {

void LandInVector(Wave& wave, const InFlight& result) {
  if (result.lanes == ~uint64_t{0} && !result.merge_16) {
    // Whole rows, which lie one after another on both sides.
    uint32_t* rows = wave.Row(result.first_register);
    for (uint32_t dword = 0; dword < result.dwords; ++dword) {
      std::memcpy(rows + dword * kLaneStride, result.data.data() + dword * kLaneStride,
                  kLaneStride * sizeof(uint32_t));
    }
    return;
  }
  for (uint32_t dword = 0; dword < result.dwords; ++dword) {
    uint32_t* row = wave.Row(result.first_register + dword);
    const uint32_t* data = result.data.data() + dword * kLaneStride;
    if (result.merge_16) {
      const int shift = result.high_half ? 16 : 0;
      const uint32_t mask = 0xffffu << shift;
      for (uint64_t lanes = result.lanes; lanes != 0; lanes &= lanes - 1) {
        const int lane = std::countr_zero(lanes);
        row[lane] = (row[lane] & ~mask) | ((data[lane] & 0xffff) << shift);
      }
    } else if (result.lanes == 0xffffffff) {
      std::memcpy(row, data, 32 * sizeof(uint32_t));
    } else {
      for (uint64_t lanes = result.lanes; lanes != 0; lanes &= lanes - 1) {
        const int lane = std::countr_zero(lanes);
        row[lane] = data[lane];
      }
    }
  }
}

void LandInLds(Wave& wave, const InFlight& result) {
  uint8_t* lds = wave.group->lds.data() + result.lds_address;
  const uint32_t lane_bytes = result.dwords * 4u;
  for (uint64_t lanes = result.lanes; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    for (uint32_t dword = 0; dword < result.dwords; ++dword) {
      std::memcpy(lds + lane * lane_bytes + dword * 4, &result.data[dword * kLaneStride + lane], 4);
    }
  }
}

// The bytes are there. Only once: what the program writes over them stays.
void Land(Wave& wave, InFlight& result) {
  if (result.landed) return;
  result.landed = true;
  switch (result.destination) {
    case InFlight::kNone:
      break;
    case InFlight::kVector:
      LandInVector(wave, result);
      break;
    case InFlight::kScalar:
      for (uint32_t dword = 0; dword < result.dwords; ++dword) {
        if (result.first_register == kSgprNull) break;
        wave.WriteSgpr(result.first_register + dword, result.data[dword]);
      }
      break;
    case InFlight::kLds:
      LandInLds(wave, result);
      break;
  }
}

}  // namespace

InFlight& Issue(Wave& wave, const Instruction& instruction, Counter counter, Counter also) {
  if (wave.recycled.empty()) wave.recycled.push_back(std::make_unique<InFlight>());
  InFlight& result = *wave.recycled.back();
  result.counter = counter;
  result.also = also;
  result.destination = InFlight::kNone;
  result.in_order = true;
  result.dwords = 0;
  result.first_register = 0;
  result.merge_16 = false;
  result.high_half = false;
  result.lanes = 0;
  result.lds_address = 0;
  result.pc = instruction.pc;
  result.landed = false;
  return result;
}

void Push(Wave& wave, const Instruction& instruction, InFlight& result) {
  result.sequence = ++wave.issued;
  result.unproven = CounterBit(result.counter);
  ++wave.pending[static_cast<size_t>(result.counter)];
  if (result.also != Counter::kCount) {
    // FLAT returns from LDS or from memory: nothing but an empty counter says which came.
    result.in_order = false;
    result.unproven |= CounterBit(result.also);
    ++wave.pending[static_cast<size_t>(result.also)];
  }
  CheckIssued(wave, instruction, result);
  wave.in_flight.push_back(std::move(wave.recycled.back()));
  wave.recycled.pop_back();
  if (wave.arrival == Arrival::kEarly) Land(wave, result);
  if (wave.arrival == Arrival::kRandom) LetSomeLand(wave);
}

void LetSomeLand(Wave& wave) {
  constexpr uint64_t kOneOf = 4;
  const bool loads_in_order = wave.group->launch->program->chip->loads_write_in_order;
  uint32_t held = 0;  // counters of which an older result is not there
  for (const auto& result : wave.in_flight) {
    if (result->landed || result->destination == InFlight::kNone) continue;
    const uint32_t counter = CounterBit(result->counter);
    const bool in_order = result->in_order && (loads_in_order || result->counter != Counter::kLoad);
    if (in_order && (held & counter) != 0) continue;
    if (NextRandom(&wave.random) % kOneOf == 0) {
      Land(wave, *result);
    } else if (in_order) {
      held |= counter;
    }
  }
}

void WaitFor(Wave& wave, uint32_t counters, uint32_t count) {
  uint32_t pending = 0;
  for (uint32_t bits = counters; bits != 0; bits &= bits - 1) {
    pending += wave.pending[static_cast<size_t>(std::countr_zero(bits))];
  }
  if (pending <= count) return;

  uint32_t in_order = 0;  // of these counters, in-order results that may stay under way
  for (const auto& result : wave.in_flight) {
    if ((result->unproven & counters) != 0 && result->in_order) ++in_order;
  }
  size_t kept = 0;
  for (auto& result : wave.in_flight) {
    bool proven = false;
    if ((result->unproven & counters) != 0) {
      if (count == 0) {
        proven = true;
      } else if (result->in_order && in_order > count) {
        proven = true;
        --in_order;
      }
    }
    if (proven) {
      for (uint32_t bits = result->unproven & counters; bits != 0; bits &= bits - 1) {
        --wave.pending[static_cast<size_t>(std::countr_zero(bits))];
      }
      result->unproven &= ~counters;
      if (result->unproven == 0) {
        Land(wave, *result);
        CheckArrived(wave, *result);
        wave.recycled.push_back(std::move(result));
        continue;
      }
    }
    // Never onto itself: that would empty it.
    if (&wave.in_flight[kept] != &result) wave.in_flight[kept] = std::move(result);
    ++kept;
  }
  wave.in_flight.resize(kept);
}

}  // namespace jax_fa::emulator
