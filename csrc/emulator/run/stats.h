// What a launch has done, added up over its workers.
#ifndef JAX_FA_EMULATOR_RUN_STATS_H_
#define JAX_FA_EMULATOR_RUN_STATS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/object/launch_context.h"
#include "emulator/run/scheduler.h"

namespace jax_fa::emulator {

const char* ClassName(OpClass op_class);

class Totals {
 public:
  void Add(const Worker& worker);
  LaunchResult Result(const LaunchContext& launch,
                      const std::map<uint64_t, std::vector<std::string>>& findings) const;

 private:
  std::vector<uint64_t> slot_counts_;
  std::vector<Traffic> buffers_;
  Traffic lds_;
  uint64_t bank_conflicts_ = 0;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_RUN_STATS_H_
