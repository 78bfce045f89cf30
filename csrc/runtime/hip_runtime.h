// The runtime of a real device: the HIP library, on one device and stream.
#ifndef JAX_FA_RUNTIME_HIP_RUNTIME_H_
#define JAX_FA_RUNTIME_HIP_RUNTIME_H_

#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace jax_fa {

// Cheap to make, for one call. What outlives it (modules, functions, architectures) is kept for the
// whole process by device ordinal, under a lock, and never unloaded: a recorded graph may replay a
// launch at any time.
class HipRuntime final : public Runtime {
 public:
  // `xla` is an address within the plugin of the XLA whose stream it is, or null (hip_api.h).
  HipRuntime(int device, void* stream, const void* xla)
      : device_(device), stream_(stream), xla_(xla) {}

  Status GetTarget(const Target** target) override;
  Status Load(const Target& target) override;
  Status Launch(const Target& target, const struct Launch& launch) override;
  Status MemsetD8(const Buffer& buffer, uint8_t value) override;
  Status MemsetD32(const Buffer& buffer, uint32_t value) override;

 private:
  int device_;
  void* stream_;
  const void* xla_;
};

// The architecture of every HIP device, without feature flags ("gfx950"). Initialises HIP; where
// its library is not loaded, or cannot be known, that is an error.
Status ListHipArchitectures(std::vector<std::string>* architectures);

}  // namespace jax_fa

#endif  // JAX_FA_RUNTIME_HIP_RUNTIME_H_
