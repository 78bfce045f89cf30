// Products of small matrices in single precision, the core of the matrix instructions of both
// targets.
//
// D[i][j] = fma(A[i][k], B[k][j], ...) over ascending k, starting from C. Products of 16-bit
// numbers are exact, so this is one rounding per step; what the hardware does inside is not
// documented.
//
// Included by the files of simd/ only: everything is in the namespace of the SIMD level.
#ifndef JAX_FA_EMULATOR_SIMD_MATRIX_H_
#define JAX_FA_EMULATOR_SIMD_MATRIX_H_

#include "emulator/simd/math.h"
#include "emulator/simd/row.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

enum class Format : uint8_t { kBf16, kF16, kF32 };

// `kVectors` registers of `kWidth` floats hold 16 columns; `kBlockRows` rows are summed at a time,
// so that enough independent sums hide the latency of the multiply-add.
#if defined(__AVX512F__)
using Vector = __m512;
inline constexpr int kWidth = 16, kBlockRows = 8;
inline Vector Load(const float* p) { return _mm512_loadu_ps(p); }
inline void Store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
inline Vector Splat(float v) { return _mm512_set1_ps(v); }
inline Vector MultiplyAdd(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
#elif defined(__AVX2__)
using Vector = __m256;
inline constexpr int kWidth = 8, kBlockRows = 4;
inline Vector Load(const float* p) { return _mm256_loadu_ps(p); }
inline void Store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
inline Vector Splat(float v) { return _mm256_set1_ps(v); }
inline Vector MultiplyAdd(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
#else
// Without a fused instruction: two roundings that are one where the product is exact (see Exact).
typedef float Vector __attribute__((vector_size(16)));
inline constexpr int kWidth = 4, kBlockRows = 2;
inline Vector Load(const float* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void Store(float* p, Vector v) { std::memcpy(p, &v, sizeof v); }
inline Vector Splat(float v) { return Vector{v, v, v, v}; }
inline Vector MultiplyAdd(Vector a, Vector b, Vector c) { return a * b + c; }
#endif
inline constexpr int kVectors = 16 / kWidth;

inline constexpr int kMaxDepth = 128, kMaxSize = 32;

struct Operands {
  alignas(64) float a[kMaxDepth][kMaxSize];  // [k][i]
  alignas(64) float b[kMaxDepth][kMaxSize];  // [k][j]
  uint8_t k_of[kMaxSize][kMaxDepth];         // sparse: row of b for row i, step k
};

// True where every product of the operands is exact and finite in single precision.
#if !defined(__FMA__)
inline bool Exact(const float* values, int count) {
  // Magnitudes in [2^-60, 2^60] or zero.
  uint32_t bad = 0;
  for (int i = 0; i < count; ++i) {
    const uint32_t magnitude = AsBits(values[i]) & 0x7fffffffu;
    bad |= (magnitude != 0 && magnitude - (67u << 23) > (120u << 23)) ? 1u : 0u;
  }
  return bad == 0;
}
#endif

// Registers [kDwords][kGroups * kSize lanes] to rows [k][kSize]; element e of lane l has
// k = k_of(l / kSize, e).
template <Format kFormat, int kSize, int kGroups, int kDwords, class KOf>
void Unpack(const uint32_t* registers, float (*rows)[kMaxSize], KOf k_of) {
  for (int d = 0; d < kDwords; ++d) {
    for (int group = 0; group < kGroups; ++group) {
      const uint32_t* in = registers + d * kLaneStride + group * kSize;
      if constexpr (kFormat == Format::kF32) {
        std::memcpy(rows[k_of(group, d)], in, kSize * sizeof(float));
      } else {
        float* low = rows[k_of(group, 2 * d)];
        float* high = rows[k_of(group, 2 * d + 1)];
#if defined(__AVX2__) && defined(__F16C__)
        if constexpr (kFormat == Format::kF16) {
          for (int i = 0; i < kSize; i += 8) {
            const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i));
            const __m256i lows = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
            const __m256i highs = _mm256_srli_epi32(v, 16);
            // Low and high halves of lanes 0-3, then of lanes 4-7; put in order by quarters.
            const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(lows, highs), 0xd8);
            _mm256_storeu_ps(low + i, _mm256_cvtph_ps(_mm256_castsi256_si128(packed)));
            _mm256_storeu_ps(high + i, _mm256_cvtph_ps(_mm256_extracti128_si256(packed, 1)));
          }
          continue;
        }
#endif
        JAX_FA_LANES
        for (int i = 0; i < kSize; ++i) {
          if constexpr (kFormat == Format::kBf16) {
            low[i] = AsFloat(in[i] << 16);
            high[i] = AsFloat(in[i] & 0xffff0000u);
          } else {
            low[i] = ToFloat(Half{static_cast<uint16_t>(in[i])});
            high[i] = ToFloat(Half{static_cast<uint16_t>(in[i] >> 16)});
          }
        }
      }
    }
  }
}

// gfx950: where row i of C or D starts, register and lane.
template <int kSize>
inline size_t MfmaRowOffset(int i) {
  const int reg = kSize == 16 ? i % 4 : 4 * (i / 8) + i % 4;
  const int lane = kSize == 16 ? 16 * (i / 4) : 32 * (i / 4 % 2);
  return static_cast<size_t>(reg * kLaneStride + lane);
}

inline void StoreRow(uint32_t* out, Vector sum) {
  float values[kWidth];
  Store(values, sum);
  for (int i = 0; i < kWidth; ++i) out[i] = ToDword(values[i]);
}

// C is at `c` (registers of 64 lanes), or the scalar *c where it is a constant. `kRowOffset` says
// where row i of C and D starts, in dwords.
template <auto kRowOffset, int kSize, int kSteps, bool kSparse>
void Multiply(const Operands& in, const uint32_t* c, bool c_is_constant, uint32_t* d) {
  for (int column = 0; column < kSize; column += 16) {
    for (int row = 0; row < kSize; row += kBlockRows) {
      Vector sum[kBlockRows][kVectors];
      for (int r = 0; r < kBlockRows; ++r) {
        const uint32_t* from = c_is_constant ? nullptr : c + kRowOffset(row + r) + column;
        for (int v = 0; v < kVectors; ++v) {
          sum[r][v] = c_is_constant ? Splat(AsFloat(*c))
                                    : Load(reinterpret_cast<const float*>(from) + v * kWidth);
        }
      }
      for (int k = 0; k < kSteps; ++k) {
        if constexpr (kSparse) {
          for (int r = 0; r < kBlockRows; ++r) {
            const float* b = in.b[in.k_of[row + r][k]] + column;
            const Vector a = Splat(in.a[k][row + r]);
            for (int v = 0; v < kVectors; ++v) {
              sum[r][v] = MultiplyAdd(a, Load(b + v * kWidth), sum[r][v]);
            }
          }
        } else {
          Vector b[kVectors];
          for (int v = 0; v < kVectors; ++v) b[v] = Load(in.b[k] + column + v * kWidth);
          for (int r = 0; r < kBlockRows; ++r) {
            const Vector a = Splat(in.a[k][row + r]);
            for (int v = 0; v < kVectors; ++v) sum[r][v] = MultiplyAdd(a, b[v], sum[r][v]);
          }
        }
      }
      for (int r = 0; r < kBlockRows; ++r) {
        uint32_t* to = d + kRowOffset(row + r) + column;
        for (int v = 0; v < kVectors; ++v) StoreRow(to + v * kWidth, sum[r][v]);
      }
    }
  }
}

// Multiplies by the exact substitute for the fused instruction, for operands that need it.
template <auto kRowOffset, int kSize, int kSteps, bool kSparse>
void MultiplySlowly(const Operands& in, const uint32_t* c, bool c_is_constant, uint32_t* d) {
  for (int i = 0; i < kSize; ++i) {
    const size_t offset = kRowOffset(i);
    float sum[kSize];
    for (int j = 0; j < kSize; ++j) sum[j] = AsFloat(c_is_constant ? *c : c[offset + j]);
    for (int k = 0; k < kSteps; ++k) {
      const float a = in.a[k][i];
      const float* b = in.b[kSparse ? in.k_of[i][k] : k];
      for (int j = 0; j < kSize; ++j) sum[j] = Fma(a, b[j], sum[j]);
    }
    for (int j = 0; j < kSize; ++j) d[offset + j] = ToDword(sum[j]);
  }
}

template <Format kFormat, auto kRowOffset, int kSize, int kSteps, bool kSparse>
void MultiplyAll(const Operands& in, int b_rows, const uint32_t* c, bool c_is_constant,
                 uint32_t* d) {
#if !defined(__FMA__)
  bool exact = kFormat == Format::kF16;
  if constexpr (kFormat == Format::kBf16) {
    exact = true;
    for (int k = 0; k < kSteps; ++k) exact = exact && Exact(in.a[k], kSize);
    for (int k = 0; k < b_rows; ++k) exact = exact && Exact(in.b[k], kSize);
  }
  if (!exact) {
    MultiplySlowly<kRowOffset, kSize, kSteps, kSparse>(in, c, c_is_constant, d);
    return;
  }
#else
  static_cast<void>(b_rows);
#endif
  Multiply<kRowOffset, kSize, kSteps, kSparse>(in, c, c_is_constant, d);
}

// C before any of D is written: a copy where the two overlap without being the same.
template <int kRegisters>
const uint32_t* Accumulator(Wave& wave, const Instruction& instruction, uint32_t* copy,
                            bool* is_constant) {
  const Operand& c = instruction.src[2];
  *is_constant = c.kind != OperandKind::kVgpr;
  if (*is_constant) return &c.value;
  const int distance = static_cast<int>(c.index) - static_cast<int>(instruction.dst.index);
  const uint32_t* row = wave.Row(c.index);
  if (distance == 0 || distance >= kRegisters || distance <= -kRegisters) return row;
  std::memcpy(copy, row, sizeof(uint32_t) * kRegisters * kLaneStride);
  return copy;
}

}  // namespace
}  // namespace jax_fa::emulator::JAX_FA_SIMD

#endif  // JAX_FA_EMULATOR_SIMD_MATRIX_H_
