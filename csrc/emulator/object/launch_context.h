// What all workgroups of one launch share. Private to the engine.
#ifndef JAX_FA_EMULATOR_OBJECT_LAUNCH_CONTEXT_H_
#define JAX_FA_EMULATOR_OBJECT_LAUNCH_CONTEXT_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "emulator/emulator.h"
#include "emulator/object/program.h"
#include "emulator/state/memory.h"

namespace jax_fa::emulator {

struct LaunchContext {
  const Program* program = nullptr;
  const Kernel* kernel = nullptr;
  const KernelCode* code = nullptr;
  const Memory* memory = nullptr;
  const LaunchOptions* options = nullptr;
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  // Where the launch's own memory lies: image, arguments, dispatch packet.
  uint64_t code_address = 0, kernarg_address = 0, dispatch_address = 0;
  std::span<const uint8_t> kernarg;
  uint32_t lds_bytes = 0;
  VgprRows vgprs;
  class LaunchTiming* timing = nullptr;  // null: not timed

  // Set by the first thread that finds a reason to stop everything (an interrupt).
  std::atomic<bool> cancelled = false;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_OBJECT_LAUNCH_CONTEXT_H_
