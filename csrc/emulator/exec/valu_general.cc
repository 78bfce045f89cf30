#include "emulator/exec/valu_general.h"

// The helpers of the SIMD families, in a copy of their own: this file exists once.
#define JAX_FA_SIMD general
#include "emulator/simd/math.h"
#include "emulator/simd/row.h"

namespace jax_fa::emulator {

using namespace general;  // NOLINT: the copy above, private to this file

namespace {

double OutputScale(int omod) { return omod == 1 ? 2.0 : omod == 2 ? 4.0 : omod == 3 ? 0.5 : 1.0; }

}  // namespace

uint32_t SignMask(LaneType type) {
  if (type == LaneType::kF16) return 0x8000;
  return type == LaneType::kF32 || type == LaneType::kF64 || type == LaneType::kB32 ? 0x80000000u
                                                                                    : 0;
}

void FlushRows(LaneType type, uint32_t* low, uint32_t* high, int lanes) {
  for (int l = 0; l < lanes; ++l) {
    if (type == LaneType::kF32 && (low[l] & 0x7f800000u) == 0) low[l] &= 0x80000000u;
    if (type == LaneType::kF16 && (low[l] & 0x7c00u) == 0) low[l] &= 0x8000u;
    if (type == LaneType::kF64 && (high[l] & 0x7ff00000u) == 0) {
      low[l] = 0;
      high[l] &= 0x80000000u;
    }
  }
}

int DenormMode(const Wave& wave, LaneType type) {
  return type == LaneType::kF32 ? wave.denorm_f32 : IsFloat(type) ? wave.denorm_f64 : 3;
}

void FinishFloat(const Wave& wave, const Modifiers& mod, LaneType type, uint32_t* low,
                 uint32_t* high) {
  const double scale = OutputScale(mod.omod);
  for (int l = 0; l < wave.lanes; ++l) {
    double value = type == LaneType::kF32   ? AsFloat(low[l])
                   : type == LaneType::kF16 ? ToFloat(Half{static_cast<uint16_t>(low[l])})
                                            : AsDouble(low[l] | (uint64_t{high[l]} << 32));
    value *= scale;
    if (mod.clamp) {
      if (value != value) {
        if (wave.dx10_clamp) value = 0;
      } else {
        value = value <= 0 ? 0 : value > 1 ? 1 : value;
      }
    }
    if (type == LaneType::kF32) {
      low[l] = ToDword(static_cast<float>(value));
    } else if (type == LaneType::kF16) {
      low[l] = ToHalf(static_cast<float>(value)).bits;
    } else {
      StoreLane(low + l, high + l, value);
    }
  }
}

}  // namespace jax_fa::emulator
