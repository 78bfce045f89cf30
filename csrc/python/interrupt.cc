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

// Since when an exception of a signal's handler waits on Python's main thread to be raised there.
constexpr Clock::time_point kNever = Clock::time_point::max();
std::atomic<Clock::time_point> exception_waits = kNever;
thread_local bool on_main_thread = false;  // told when an exception first waits
// Since when a signal that a call on a thread of XLA's has seen waits for the main thread to be
// back in Python.
std::atomic<Clock::time_point> signal_waits = kNever;

bool ExceptionWaitsFor(Clock::duration least) {
  const Clock::time_point since = exception_waits;
  return since != kNever && Clock::now() - since >= least;
}

// A program that calls kernels for so long after its first was ended may loop until results that
// are no numbers converge. An error ends it.
constexpr std::chrono::milliseconds kPatience{400};

int RaiseWaiting(void* argument) {
  const std::unique_ptr<nb::python_error> error(static_cast<nb::python_error*>(argument));
  exception_waits = kNever;
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
  on_main_thread = true;
}

// Of a signal that has just been seen: it waits until Python calls what is pending on the main
// thread, where it handles the signal too.
void SignalWaits(Clock::time_point now) {
  auto never = kNever;
  if (!signal_waits.compare_exchange_strong(never, now)) return;
  const auto handled = [](void*) {
    signal_waits = kNever;
    return 0;
  };
  if (Py_AddPendingCall(handled, nullptr) != 0) signal_waits = kNever;  // too many of them
}

// Of a call on a thread of Python's. Handlers of signals run meanwhile, on the main thread, where
// one that raises ends the call; elsewhere Python runs none, and nothing ends it.
class PythonThreadPoll {
 public:
  bool operator()() {
    if (on_main_thread && ExceptionWaitsFor({})) return true;
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
// may do without raising, so that the call goes on. Calls that begin after the signal end likewise
// while the main thread does not get back to Python: it waits for a program that goes on calling.
class ForeignThreadPoll {
 public:
  bool operator()() {
    ended_ = ended_ || ExceptionWaitsFor(kPatience);
    if (ended_ || asked_) return ended_;
    const Clock::time_point now = Clock::now();
    if (!seen_ && watch_->seen()) {
      seen_ = now;
      SignalWaits(now);
    }
    const Clock::time_point since = seen_.value_or(signal_waits);
    if (since == kNever || now - since < kGrace) return false;
    asked_ = true;
    ended_ = InterruptsRaise();
    if (!ended_) signal_waits = kNever;
    return ended_;
  }

 private:
  // Where the main thread waits for the results, JAX lets Python handle signals every 200 ms. Its
  // KeyboardInterrupt comes first, then the error of the call that it ends.
  static constexpr std::chrono::milliseconds kGrace{400};
  std::shared_ptr<const jax_fa::InterruptWatch> watch_ =
      std::make_shared<const jax_fa::InterruptWatch>();
  std::optional<Clock::time_point> seen_;
  bool asked_ = false, ended_ = false;
};

jax_fa::InterruptPoll MakePoll() {
  if (PyGILState_GetThisThreadState() == nullptr) return {.ended = ForeignThreadPoll()};
  return {.ended = PythonThreadPoll(), .raises_here = !ExceptionWaitsFor(kPatience)};
}

}  // namespace

void BindInterrupts() {
  jax_fa::SetInterruptPolls(&MakePoll);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { python_ends = true; }));
}
