// How emulated custom calls run and who watches them: process-wide, behind jax_fa.emulator's
// configure() and record().
#ifndef JAX_FA_RUNTIME_EMULATOR_SETTINGS_H_
#define JAX_FA_RUNTIME_EMULATOR_SETTINGS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/emulator.h"

namespace jax_fa {

struct EmulatorSettings {
  emulator::Schedule schedule = emulator::Schedule::kRoundRobin;
  emulator::Arrival arrival = emulator::Arrival::kLate;
  uint64_t seed = 0;
  bool checks = false;               // costs time: tests switch it on
  bool collect = false;              // findings are recorded instead of raised
  int threads = 0;                   // 0: one per core
  bool timing = false;               // the time of launches is modelled
  std::vector<uint64_t> workgroups;  // of every launch only these run; empty: all
  // The wave that is followed, of every launch that has and runs it.
  std::optional<emulator::WavePlace> follow = std::nullopt;
};

EmulatorSettings GetEmulatorSettings();
void SetEmulatorSettings(const EmulatorSettings& settings);

// What ends an emulated custom call before its time.
struct InterruptPoll {
  std::function<bool()> ended = nullptr;  // LaunchOptions::interrupted; empty: nothing
  // Whether an exception then waits on this very thread and is raised as soon as the program
  // returns, so that nobody sees its results. An error would take that exception's place.
  bool raises_here = false;
};

// It is the process's affair: `make`, set before the first call, gives the poll of one call on the
// thread that runs it.
void SetInterruptPolls(InterruptPoll (*make)());
InterruptPoll MakeInterruptPoll();

// A buffer of a launch, with what it held before.
struct RecordedOperand {
  std::string name;
  uint64_t address = 0;
  std::vector<std::byte> contents;
};

// One emulated launch, as record() shows it.
struct RecordedLaunch {
  emulator::CodeObject code;
  std::string target;
  std::string kernel;
  std::array<uint32_t, 3> grid;   // workgroups
  std::array<uint32_t, 3> block;  // lanes
  double seconds = 0;
  emulator::LaunchResult result;
  // What it takes to launch it again, for recorders that keep operands.
  std::vector<std::byte> arguments;
  std::vector<RecordedOperand> operands;
};

// Collects every emulated launch of the process from its construction to its end. Recorders may
// overlap; each sees all launches of its own time.
class EmulatorRecorder {
 public:
  explicit EmulatorRecorder(bool keeps_operands = false);
  ~EmulatorRecorder();
  EmulatorRecorder(const EmulatorRecorder&) = delete;
  EmulatorRecorder& operator=(const EmulatorRecorder&) = delete;

  // Collects no further launch; idempotent.
  void Stop();
  // What was collected so far, in the order of completion.
  std::vector<std::shared_ptr<const RecordedLaunch>> launches() const;
  bool keeps_operands() const { return keeps_operands_; }

 private:
  friend void RecordLaunch(RecordedLaunch launch);
  const bool keeps_operands_;
  std::vector<std::shared_ptr<const RecordedLaunch>> launches_;
};

// Whether any recorder keeps operands, which are copied before the launch.
bool KeepsOperands();
// Hands a finished launch to every recorder.
void RecordLaunch(RecordedLaunch launch);

}  // namespace jax_fa

#endif  // JAX_FA_RUNTIME_EMULATOR_SETTINGS_H_
