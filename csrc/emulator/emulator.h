// The emulator's C++ face: load a code object, launch a kernel of it over registered memory.
#ifndef JAX_FA_EMULATOR_EMULATOR_H_
#define JAX_FA_EMULATOR_EMULATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace jax_fa::emulator {

// A finding, an access outside memory, an unknown instruction: the launch has stopped.
class EmulatorError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct KernelInfo {
  std::string name;
  uint32_t vgprs = 0, agprs = 0, sgprs = 0, vgpr_spills = 0, sgpr_spills = 0;
  uint32_t scratch_bytes = 0, lds_bytes = 0, kernarg_bytes = 0;
  uint32_t wave_size = 64, max_workgroup_size = 0;
};

struct Program;  // decoded code, private to the engine

class CodeObject {
 public:
  static CodeObject Parse(std::span<const std::byte> elf);  // throws EmulatorError
  const std::string& target() const;                        // "gfx950" or "gfx1201"
  const std::map<std::string, KernelInfo>& kernels() const;
  const Program& program() const { return *program_; }

 private:
  std::shared_ptr<const Program> program_;
};

enum class Schedule : uint8_t { kRoundRobin, kRunToBarrier, kReverse, kRandom };

// When the result of a load is there: as late as the ISA allows, when a wait proves it; at once, as
// on a chip that is never busy; or at random in between.
enum class Arrival : uint8_t { kLate, kEarly, kRandom };

// Host memory that the kernel may touch, at `address` (its own host address when 0).
struct Allocation {
  std::string name;
  void* host = nullptr;
  size_t bytes = 0;
  bool writable = true;
  uint64_t address = 0;
};

// A wave of a launch: the workgroup's linear index in the grid, the wave's within the workgroup.
struct WavePlace {
  uint64_t group = 0;
  uint32_t wave = 0;
};

struct LaunchOptions {
  Schedule schedule = Schedule::kRoundRobin;
  Arrival arrival = Arrival::kLate;
  uint64_t seed = 0;
  bool checks = true;
  bool collect = false;  // findings are listed instead of raised
  int threads = 0;       // 0: one per core
  uint32_t dynamic_lds_bytes = 0;
  uint64_t max_instructions_per_wave = 100'000'000;
  // Models the time of the launch; keeps the traces of `workgroups` and of the followed one.
  bool timing = false;
  std::vector<uint64_t> workgroups;  // linear indices of those to run; empty: all
  std::optional<WavePlace> follow;   // the wave whose steps are in the result
  // Polled now and then by the thread that launches; true stops the launch.
  std::function<bool()> interrupted = nullptr;
};

class TraceSet;  // timing/timing.h

// Modelled, of a launch that ran all of its workgroups.
struct LaunchTime {
  double clk = 0, matrix_clk = 0;
  uint32_t simds = 0;        // of the chip
  double flops_per_clk = 0;  // dense 16-bit, of one SIMD
};

// An instruction that the followed wave executed, and the registers that it wrote or in which the
// result of a load has meanwhile arrived.
struct WaveStep {
  struct Written {
    std::string name;              // "v4", "a0", "s2", "vcc_lo", "scc"
    std::vector<uint32_t> values;  // of each lane; of a scalar register one
  };
  uint64_t pc = 0;
  std::vector<Written> written;
};

struct LaunchResult {
  std::map<std::string, uint64_t> class_counts;
  std::map<std::string, uint64_t> mnemonic_counts;
  struct Bytes {
    std::string name;
    uint64_t read = 0, written = 0;
  };
  std::vector<Bytes> buffer_bytes;
  uint64_t lds_read_bytes = 0, lds_written_bytes = 0;
  uint64_t bank_conflicts = 0;
  std::vector<std::string> findings;
  uint64_t wave_instructions = 0;
  struct Executed {
    uint64_t pc, times;
  };
  std::vector<Executed> executed;  // every instruction that was, by pc
  std::optional<LaunchTime> time;
  std::shared_ptr<TraceSet> traces;
  std::optional<WavePlace> followed;  // LaunchOptions::follow
  std::vector<WaveStep> steps;
};

// Throws EmulatorError. Results do not depend on `threads`, but where several workgroups add floats
// to one place in memory: they come in the order of their indices on one thread, and in any order
// on several, as on the chip. Within an instruction atomics go by ascending lane.
LaunchResult Launch(const CodeObject& code, const std::string& kernel, std::array<uint32_t, 3> grid,
                    std::array<uint32_t, 3> block, std::span<const std::byte> kernarg,
                    std::span<const Allocation> allocations, const LaunchOptions& options);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_EMULATOR_H_
