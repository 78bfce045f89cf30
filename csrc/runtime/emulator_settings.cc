#include "runtime/emulator_settings.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace jax_fa {
namespace {

// Launches run on XLA's threads, configure() and record() on Python's.
struct State {
  std::mutex mutex;
  EmulatorSettings settings;
  std::vector<EmulatorRecorder*> recorders;
  InterruptPoll (*make_poll)() = nullptr;
};

State& GlobalState() {
  static State* state = new State;  // outlives every thread that may still launch
  return *state;
}

}  // namespace

EmulatorSettings GetEmulatorSettings() {
  const std::lock_guard lock(GlobalState().mutex);
  return GlobalState().settings;
}

void SetEmulatorSettings(const EmulatorSettings& settings) {
  const std::lock_guard lock(GlobalState().mutex);
  GlobalState().settings = settings;
}

void SetInterruptPolls(InterruptPoll (*make)()) {
  const std::lock_guard lock(GlobalState().mutex);
  GlobalState().make_poll = make;
}

InterruptPoll MakeInterruptPoll() {
  std::unique_lock lock(GlobalState().mutex);
  const auto make = GlobalState().make_poll;
  lock.unlock();
  return make != nullptr ? make() : InterruptPoll();
}

EmulatorRecorder::EmulatorRecorder(bool keeps_operands) : keeps_operands_(keeps_operands) {
  const std::lock_guard lock(GlobalState().mutex);
  GlobalState().recorders.push_back(this);
}

EmulatorRecorder::~EmulatorRecorder() { Stop(); }

void EmulatorRecorder::Stop() {
  const std::lock_guard lock(GlobalState().mutex);
  std::erase(GlobalState().recorders, this);
}

std::vector<std::shared_ptr<const RecordedLaunch>> EmulatorRecorder::launches() const {
  const std::lock_guard lock(GlobalState().mutex);
  return launches_;
}

bool KeepsOperands() {
  const std::lock_guard lock(GlobalState().mutex);
  const auto& recorders = GlobalState().recorders;
  return std::any_of(recorders.begin(), recorders.end(),
                     [](const EmulatorRecorder* recorder) { return recorder->keeps_operands(); });
}

void RecordLaunch(RecordedLaunch launch) {
  const auto shared = std::make_shared<const RecordedLaunch>(std::move(launch));
  const std::lock_guard lock(GlobalState().mutex);
  for (EmulatorRecorder* recorder : GlobalState().recorders) recorder->launches_.push_back(shared);
}

}  // namespace jax_fa
