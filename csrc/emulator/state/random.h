// Random numbers of schedules and arrivals: the same on every machine.
#ifndef JAX_FA_EMULATOR_STATE_RANDOM_H_
#define JAX_FA_EMULATOR_STATE_RANDOM_H_

#include <cstdint>

namespace jax_fa::emulator {

inline uint64_t NextRandom(uint64_t* state) {  // splitmix64
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_STATE_RANDOM_H_
