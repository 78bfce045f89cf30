// What a launcher needs of a device, behind one interface: the HIP library or the emulator.
#ifndef JAX_FA_RUNTIME_RUNTIME_H_
#define JAX_FA_RUNTIME_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/targets.h"

namespace jax_fa {

// Success or a message for the caller; nothing below the FFI handler throws.
struct Status {
  bool ok = true;
  std::string message;
  static Status Ok() { return {}; }
  static Status Error(std::string text) { return {false, std::move(text)}; }
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

// One operand or result, so that the emulator can bound every access and name what was missed.
struct Buffer {
  std::string_view name;
  void* data = nullptr;
  size_t bytes = 0;
  bool writable = false;
};

struct Launch {
  std::string_view kernel;
  Dim3 grid;   // workgroups
  Dim3 block;  // lanes
  uint32_t dynamic_lds_bytes = 0;
  std::span<const std::byte> arguments;  // the explicit kernel arguments
  std::span<const Buffer> buffers;
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  // The target of this device, or an error that says which architecture it has.
  virtual Status GetTarget(const Target** target) = 0;
  // Loads the target's embedded code object; repeated calls are free. Not during stream capture.
  virtual Status Load(const Target& target) = 0;
  virtual Status Launch(const Target& target, const struct Launch& launch) = 0;
  virtual Status MemsetD8(const Buffer& buffer, uint8_t value) = 0;
  virtual Status MemsetD32(const Buffer& buffer, uint32_t value) = 0;
};

}  // namespace jax_fa

#endif  // JAX_FA_RUNTIME_RUNTIME_H_
