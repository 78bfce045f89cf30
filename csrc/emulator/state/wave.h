// The state of a wave and of its workgroup, as exec functions see it.
#ifndef JAX_FA_EMULATOR_STATE_WAVE_H_
#define JAX_FA_EMULATOR_STATE_WAVE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "emulator/state/bank_conflicts.h"
#include "emulator/state/instruction.h"

namespace jax_fa::emulator {

class Memory;  // state/memory.h: registered allocations, address -> host pointer
struct Region;
enum class Arrival : uint8_t;  // emulator.h
class Checker;                 // check/check.h: null when checks are off
struct Workgroup;

// Rows of the vector register file are always 64 lanes apart, also for wave32.
inline constexpr int kLaneStride = 64;
inline constexpr int kVgprRows = 512;  // v0..v255, then a0..a255

// Scalar registers by normalised index, the same for both targets.
enum SgprIndex : uint16_t {
  kSgprVccLo = 106,
  kSgprVccHi = 107,
  kSgprTtmp0 = 108,  // ttmp0..ttmp15
  kSgprNull = 124,   // reads 0, writes vanish
  kSgprM0 = 125,
  kSgprExecLo = 126,
  kSgprExecHi = 127,
  kSgprFlatScratchLo = 128,  // gfx950
  kSgprXnackLo = 130,
  kSgprCount = 132,
};

// Where LDS and private memory lie in the flat address space (their low 32 bits are the offset).
inline constexpr uint64_t kSharedAperture = uint64_t{0x00010000} << 32;
inline constexpr uint64_t kPrivateAperture = uint64_t{0x00020000} << 32;

// The counters a wave waits on. gfx950: vmcnt (loads, stores, LDS-DMA) and lgkmcnt (LDS, SMEM).
// gfx1201: loadcnt = kLoad, storecnt = kStore, dscnt = kDs, kmcnt = kKm.
enum class Counter : uint8_t { kLoad, kStore, kDs, kKm, kExp, kSample, kBvh, kCount };

// A result under way: its bytes were taken at issue. It lands in its registers or in LDS when the
// launch's Arrival says, and is under way until the counter of the wave has fallen far enough that
// a wait proves it there. Filled and pushed as exec/in_flight.h says.
struct InFlight {
  Counter counter = Counter::kLoad;
  Counter also = Counter::kCount;  // a second counter that must prove it too; kCount: none
  enum Destination : uint8_t { kNone, kVector, kScalar, kLds } destination = kNone;
  bool in_order = true;  // SMEM returns out of order: only a wait for 0 proves it there
  uint8_t dwords = 0;    // per lane (vector), or in all (scalar)
  uint16_t first_register = 0;
  bool merge_16 = false;  // d16: write only the half `high_half` of the register
  bool high_half = false;
  uint64_t lanes = 0;  // lanes written
  uint32_t lds_address =
      0;  // kLds: byte address of lane 0; `dwords` dwords a lane, lanes contiguous
  uint32_t pc = 0;
  // Set by Push: the order of issue within the wave, and the counters that still have to prove it.
  uint64_t sequence = 0;
  uint32_t unproven = 0;
  bool landed = false;
  // [dwords][kLaneStride] (vector, LDS), [dwords] (scalar)
  std::array<uint32_t, 4 * kLaneStride> data;
};

struct Wave {
  // Hot state first.
  uint32_t* vgpr = nullptr;  // [kVgprRows][kLaneStride]
  uint64_t exec = 0;
  uint64_t full_exec = 0;  // all lanes of this wave size
  uint32_t pc = 0;
  uint8_t lanes = 64;  // 64 or 32
  bool scc = false;
  bool done = false;
  bool at_barrier = false;  // waits in s_barrier / s_barrier_wait
  // Instructions this wave may still run before the engine looks up; exec functions that must stop
  // the wave here (end, barrier) set it to 0.
  int64_t budget = 0;
  uint32_t sgpr[kSgprCount] = {};  // exec is kept in `exec`, not here: use ReadSgpr/WriteSgpr

  Workgroup* group = nullptr;
  Checker* checker = nullptr;                        // of the workgroup
  std::vector<std::unique_ptr<InFlight>> in_flight;  // oldest first, all counters
  std::vector<std::unique_ptr<InFlight>> recycled;   // to reuse
  std::array<uint16_t, static_cast<size_t>(Counter::kCount)> pending = {};  // per counter
  uint64_t issued = 0;    // memory instructions so far
  uint64_t executed = 0;  // instructions before this turn of the scheduler

  // MODE: fp32 and fp64/16 rounding (0 nearest even), denormals (3 keep, 0 flush both).
  uint8_t round_f32 = 0, round_f64 = 0, denorm_f32 = 3, denorm_f64 = 3;
  bool dx10_clamp = true, ieee = true;
  // MODE.GPR_IDX_EN: M0 moves the vector registers of VALU instructions. VSKIP: vector instructions
  // do nothing.
  bool indexes_vgprs = false, skips_vectors = false;
  int priority = 0;
  Arrival arrival = {};
  uint64_t random = 0;  // state of the draws of Arrival::kRandom
  uint32_t index_in_group = 0;
  uint64_t barrier_phase = 0;  // Workgroup::barrier_phase at this wave's signal
  bool barrier_signalled = false;
  const Instruction* blocked_at = nullptr;  // the barrier it waits at
  // Private memory: lane l's byte a is scratch[l * Workgroup::scratch_bytes + a].
  uint8_t* scratch = nullptr;

  uint32_t* Row(uint32_t reg) { return vgpr + static_cast<size_t>(reg) * kLaneStride; }
  const uint32_t* Row(uint32_t reg) const { return vgpr + static_cast<size_t>(reg) * kLaneStride; }
  bool AllLanes() const { return exec == full_exec; }

  uint32_t ReadSgpr(uint32_t index) const {
    if (index == kSgprExecLo) return static_cast<uint32_t>(exec);
    if (index == kSgprExecHi) return static_cast<uint32_t>(exec >> 32);
    if (index == kSgprNull) return 0;
    return sgpr[index];
  }
  void WriteSgpr(uint32_t index, uint32_t value) {
    if (index == kSgprExecLo) {
      exec = (exec & ~uint64_t{0xffffffff}) | value;
    } else if (index == kSgprExecHi) {
      if (lanes == 64) exec = (exec & 0xffffffff) | (uint64_t{value} << 32);
    } else if (index != kSgprNull) {
      sgpr[index] = value;
    }
  }
  // A 64-bit lane mask in SGPRs (wave32: one SGPR).
  uint64_t ReadMask(uint32_t index) const {
    const uint64_t low = ReadSgpr(index);
    return lanes == 64 ? low | (uint64_t{ReadSgpr(index + 1)} << 32) : low;
  }
  void WriteMask(uint32_t index, uint64_t value) {
    WriteSgpr(index, static_cast<uint32_t>(value));
    if (lanes == 64) WriteSgpr(index + 1, static_cast<uint32_t>(value >> 32));
  }
};

// Byte counts of one operand (a registered allocation), and of LDS.
struct Traffic {
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
};

struct Workgroup {
  uint32_t id[3] = {0, 0, 0};
  std::vector<uint8_t> lds;  // its size is the limit of every LDS access
  std::vector<Wave> waves;
  const Memory* memory = nullptr;
  const Region* regions = nullptr;      // memory->regions(), never empty
  uint32_t last_region = 0;             // where the last access went: the next one tries it first
  std::vector<Traffic> buffer_traffic;  // by region, this worker's share
  Traffic lds_traffic;                  // counted by the LDS and LDS-DMA families
  BankConflicts banks;
  uint64_t bank_conflicts = 0;
  uint32_t scratch_bytes = 0;  // per lane
  uint64_t code_base = 0;      // address of the loaded code object; its text is at code_base + pc
  // The barrier: complete when every wave that has not ended has signalled; then the phase
  // advances.
  uint64_t barrier_phase = 0;
  uint32_t barrier_signals = 0;
  Checker* checker = nullptr;
  struct LaunchContext* launch = nullptr;  // private to the engine
  // Under `collect`, and what tells one from another.
  std::vector<std::string> findings;
  std::unordered_set<std::string> finding_kinds;
};

// Stops the run. The engine adds kernel, wave, pc and disassembly.
[[noreturn]] void Fail(const Wave& wave, const Instruction& instruction, const std::string& what,
                       int lane = -1);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_STATE_WAVE_H_
