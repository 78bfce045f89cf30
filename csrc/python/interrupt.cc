// Ctrl-C during an emulated custom call, which ends the call.
//
// Python handles a signal on its main thread only, between two of its instructions. XLA runs a
// handler on the thread that called the program, where Python can be asked, or on one of its own,
// while the main thread waits for the results or does something else.
#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "runtime/emulator_settings.h"
#include "runtime/interrupt_watch.h"

namespace nb = nanobind;

namespace {

using Clock = std::chrono::steady_clock;

// Once Python ends, threads that ask for its lock may never get it.
std::atomic<bool> python_ends = false;

// Since when an exception of a signal's handler waits on this thread to be raised; none does.
thread_local std::optional<Clock::time_point> exception_waits;

int RaiseWaiting(void* argument) {
  const std::unique_ptr<nb::python_error> error(static_cast<nb::python_error*>(argument));
  exception_waits.reset();
  error->restore();
  return -1;
}

// Takes the exception that is set away, and has Python raise it on its main thread, which is this
// one, as soon as it runs there again: the custom call returns to XLA, not to Python.
void RaiseLater() {
  auto error = std::make_unique<nb::python_error>();
  if (Py_AddPendingCall(&RaiseWaiting, error.get()) != 0) return PyErr_SetInterrupt();
  error.release();
  exception_waits = Clock::now();
}

// Of a call on a thread of Python's. Handlers of signals run meanwhile, on the main thread, where
// one that raises ends the call; elsewhere Python runs none, and nothing ends it.
class PythonThreadPoll {
 public:
  bool operator()() {
    if (exception_waits) return true;
    const auto now = Clock::now();
    if (now < next_) return false;
    next_ = now + kInterval;  // other threads may be slow to hand Python's lock over
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() == 0) return false;
    RaiseLater();
    return true;
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{50};
  Clock::time_point next_ = Clock::now();
};

bool InterruptsRaise() {
  if (python_ends) return true;
  const nb::gil_scoped_acquire acquire;
  try {
    const nb::module_ signals = nb::module_::import_("signal");
    return signals.attr("getsignal")(signals.attr("SIGINT"))
        .is(signals.attr("default_int_handler"));
  } catch (nb::python_error&) {
    return true;
  }
}

// Of a call on a thread of XLA's. Python's own handler of SIGINT ends the call; one of the user's
// may do without raising, so that the call goes on.
class ForeignThreadPoll {
 public:
  bool operator()() {
    if (!watch_->seen() || ended_) return ended_;
    if (!decision_) decision_ = Clock::now() + kGrace;
    if (asked_ || Clock::now() < *decision_) return false;
    asked_ = true;
    return ended_ = InterruptsRaise();
  }

 private:
  // Where the main thread waits for the results, JAX lets Python handle signals every 200 ms. Its
  // KeyboardInterrupt comes first, then the error of the call that it ends.
  static constexpr std::chrono::milliseconds kGrace{400};
  std::shared_ptr<const jax_fa::InterruptWatch> watch_ =
      std::make_shared<const jax_fa::InterruptWatch>();
  std::optional<Clock::time_point> decision_;
  bool asked_ = false, ended_ = false;
};

jax_fa::InterruptPoll MakePoll() {
  if (PyGILState_GetThisThreadState() == nullptr) return {.ended = ForeignThreadPoll()};
  // A program that still calls kernels by then may loop until results that are no numbers converge.
  // An error ends it.
  constexpr std::chrono::milliseconds kPatience{400};
  const bool ends_soon = !exception_waits || Clock::now() - *exception_waits < kPatience;
  return {.ended = PythonThreadPoll(), .raises_here = ends_soon};
}

}  // namespace

void BindInterrupts() {
  jax_fa::SetInterruptPolls(&MakePoll);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { python_ends = true; }));
}
