// A loaded code object: its image in memory, its kernels, and their decoded text.
#ifndef JAX_FA_EMULATOR_OBJECT_PROGRAM_H_
#define JAX_FA_EMULATOR_OBJECT_PROGRAM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/check/access_plan.h"
#include "emulator/chip/chip.h"
#include "emulator/emulator.h"

namespace jax_fa::emulator {

// What the kernel descriptor says (amdhsa, 64 bytes).
struct KernelDescriptor {
  uint32_t group_segment_bytes = 0, private_segment_bytes = 0, kernarg_bytes = 0;
  uint32_t entry = 0;                                    // image offset of the first instruction
  uint32_t resource1 = 0, resource2 = 0, resource3 = 0;  // COMPUTE_PGM_RSRC1..3
  uint32_t properties = 0;                               // which user SGPRs
  uint32_t preload_dwords = 0, preload_offset_dwords = 0;
};

// Registers that a wave of the kernel has: v0.. and a0.. , and how many of both together.
struct VgprRows {
  uint32_t vector = 0, accumulation = 0, allocated = 0;
};

// One kernel argument of the metadata.
struct KernelArgument {
  std::string name, kind;  // kind: "global_buffer", "by_value", "hidden_block_count_x", ...
  uint32_t offset = 0, bytes = 0;
  bool hidden() const { return kind.starts_with("hidden_"); }
};

// The decoded text of one kernel and of the functions that it may call.
struct KernelCode {
  uint32_t begin = 0;  // image offset of slot 0
  // By (pc - begin) / 4: the instruction that starts there. A place where none starts holds one
  // whose exec stops the run.
  std::vector<const Instruction*> slots;
  std::vector<Instruction> instructions;
  std::vector<AccessPlan> plans;                       // by slot
  std::vector<std::unique_ptr<std::string>> failures;  // by slot: why it could not be decoded
  InstructionStore store;
};

struct Kernel {
  KernelInfo info;
  KernelDescriptor descriptor;
  uint32_t text_begin = 0, text_end = 0;  // image offsets
  std::vector<KernelArgument> arguments;
};

// A part of the image that is mapped.
struct Segment {
  uint64_t begin = 0, bytes = 0;
  bool writable = false;
};

struct Program {
  const Chip* chip = nullptr;
  std::string target;
  std::map<std::string, KernelInfo> kernel_infos;
  std::map<std::string, Kernel> kernels;
  std::vector<std::pair<uint32_t, uint32_t>> functions;  // text ranges that are not kernels
  std::vector<Segment> segments;
  // The loaded image: kernels read constants in it. Writable segments are shared by all launches.
  mutable std::vector<uint8_t> image;

  // Decoded on first use. Throws EmulatorError.
  const KernelCode& Code(const Kernel& kernel) const;
  VgprRows AllocatedVgprs(const Kernel& kernel) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<const Kernel*, std::unique_ptr<KernelCode>> code_;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_OBJECT_PROGRAM_H_
