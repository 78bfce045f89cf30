#include "runtime/interrupt_watch.h"

#include <signal.h>

#include <atomic>
#include <mutex>

namespace jax_fa {
namespace {

using Action = struct sigaction;

std::atomic<uint64_t> interrupts = 0;
// Who handled the signal before OnInterrupt. Never changed in place and never deleted: a handler
// may run on another thread at any time, or be kept by whoever installed one on top.
std::atomic<const Action*> former = nullptr;

static_assert(decltype(interrupts)::is_always_lock_free && decltype(former)::is_always_lock_free,
              "a signal handler must not wait for a lock");

void OnInterrupt(int signal, siginfo_t* info, void* context) {
  interrupts.fetch_add(1);
  const Action& action = *former.load();
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
}

bool IsOurs(const Action& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == OnInterrupt;
}

bool IsFunction(const Action& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

bool SameHandler(const Action& a, const Action& b) {
  if ((a.sa_flags & SA_SIGINFO) != (b.sa_flags & SA_SIGINFO)) return false;
  return (a.sa_flags & SA_SIGINFO) != 0 ? a.sa_sigaction == b.sa_sigaction
                                        : a.sa_handler == b.sa_handler;
}

// Puts OnInterrupt in the handler's place and takes it out again.
class Installation {
 public:
  void Enter() {
    const std::lock_guard lock(mutex_);
    if (watches_++ == 0) Install();
  }
  void Leave() {
    const std::lock_guard lock(mutex_);
    if (--watches_ == 0 && installed_) Remove();
  }

 private:
  void Install() {
    Action current;
    if (overlaid_ || sigaction(SIGINT, nullptr, &current) != 0) return;
    if (!IsFunction(current) || IsOurs(current)) return;
    const Action* const known = former.load();
    if (known == nullptr || !SameHandler(*known, current)) former = new Action(current);
    Action ours = current;  // its mask, its flags
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = OnInterrupt;
    installed_ = sigaction(SIGINT, &ours, nullptr) == 0;
  }

  void Remove() {
    installed_ = false;
    Action current;
    if (sigaction(SIGINT, nullptr, &current) != 0) return;
    if (IsOurs(current)) {
      sigaction(SIGINT, former.load(), nullptr);
    } else if (IsFunction(current) && !SameHandler(current, *former.load())) {
      // It may pass signals on to OnInterrupt, which must not be put on top of it: they would go
      // round for ever.
      overlaid_ = true;
    }
  }

  std::mutex mutex_;
  int watches_ = 0;
  bool installed_ = false;
  bool overlaid_ = false;  // nothing is watched from here on
};

Installation& TheInstallation() {
  static auto* installation = new Installation;  // outlives every thread that may still launch
  return *installation;
}

}  // namespace

InterruptWatch::InterruptWatch() {
  TheInstallation().Enter();
  before_ = interrupts;
}

InterruptWatch::~InterruptWatch() { TheInstallation().Leave(); }

bool InterruptWatch::seen() const { return interrupts != before_; }

}  // namespace jax_fa
