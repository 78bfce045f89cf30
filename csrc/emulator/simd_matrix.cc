// Matrix instructions of gfx950 on half precision, bfloat16 and single precision: D = A B + C.
//
// One instruction multiplies an S x K by a K x S matrix (S = 16 or 32) held by the wave's 64 lanes:
//     A[i][k], B[k][j]   lane S * (k / e) + i (or j), element k % e, e = K * S / 64 elements a lane
//     C, D[i][j]         S = 16: register i % 4, lane 16 * (i / 4) + j
//                        S = 32: register 4 * (i / 8) + i % 4, lane 32 * (i / 4 % 2) + j
// Sparse ones (smfmac) take an A with two of every four elements, and where they stand as 2-bit
// numbers.
//
// Numerics: D[i][j] = fma(A[i][k], B[k][j], ...) in single precision over ascending k, starting
// from C. Products of 16-bit numbers are exact, so this is one rounding per step; what the hardware
// does inside is not documented. EXEC is ignored.
#include "emulator/simd_level.h"
#include "emulator/simd_math.h"
#include "emulator/simd_valu.h"

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
bool Exact(const float* values, int count) {
  // Magnitudes in [2^-60, 2^60] or zero.
  uint32_t bad = 0;
  for (int i = 0; i < count; ++i) {
    const uint32_t magnitude = AsBits(values[i]) & 0x7fffffffu;
    bad |= (magnitude != 0 && magnitude - (67u << 23) > (120u << 23)) ? 1u : 0u;
  }
  return bad == 0;
}
#endif

// Registers [kDwords][64 lanes] to rows [k][kSize]; element e of lane l has k = k_of(l / kSize, e).
template <Format kFormat, int kSize, int kDwords, class KOf>
void Unpack(const uint32_t* registers, float (*rows)[kMaxSize], KOf k_of) {
  for (int d = 0; d < kDwords; ++d) {
    for (int group = 0; group < kLaneStride / kSize; ++group) {
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

// Where row i of C or D starts: register and lane.
template <int kSize>
inline size_t RowOffset(int i) {
  const int reg = kSize == 16 ? i % 4 : 4 * (i / 8) + i % 4;
  const int lane = kSize == 16 ? 16 * (i / 4) : 32 * (i / 4 % 2);
  return static_cast<size_t>(reg * kLaneStride + lane);
}

inline void StoreRow(uint32_t* out, Vector sum) {
  float values[kWidth];
  Store(values, sum);
  for (int i = 0; i < kWidth; ++i) out[i] = ToDword(values[i]);
}

// C is at `c` (registers of 64 lanes), or the scalar *c where it is a constant.
template <int kSize, int kSteps, bool kSparse>
void Multiply(const Operands& in, const uint32_t* c, bool c_is_constant, uint32_t* d) {
  for (int column = 0; column < kSize; column += 16) {
    for (int row = 0; row < kSize; row += kBlockRows) {
      Vector sum[kBlockRows][kVectors];
      for (int r = 0; r < kBlockRows; ++r) {
        const uint32_t* from = c_is_constant ? nullptr : c + RowOffset<kSize>(row + r) + column;
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
        uint32_t* to = d + RowOffset<kSize>(row + r) + column;
        for (int v = 0; v < kVectors; ++v) StoreRow(to + v * kWidth, sum[r][v]);
      }
    }
  }
}

// The same by the exact substitute for the fused instruction, for operands that need it.
template <int kSize, int kSteps, bool kSparse>
void MultiplySlowly(const Operands& in, const uint32_t* c, bool c_is_constant, uint32_t* d) {
  for (int i = 0; i < kSize; ++i) {
    const size_t offset = RowOffset<kSize>(i);
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

template <Format kFormat, int kSize, int kSteps, bool kSparse>
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
    MultiplySlowly<kSize, kSteps, kSparse>(in, c, c_is_constant, d);
    return;
  }
#else
  static_cast<void>(b_rows);
#endif
  Multiply<kSize, kSteps, kSparse>(in, c, c_is_constant, d);
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

template <Format kFormat, int kSize, int kDepth>
void ExecMfma(Wave& wave, const Instruction& instruction) {
  const Modifiers& mod = instruction.mod;
  if ((mod.cbsz | mod.abid | mod.blgp) != 0) {
    Fail(wave, instruction, "cbsz, abid or blgp on this matrix instruction");
  }
  constexpr int kElements = kDepth * kSize / kLaneStride;  // of A or B, per lane
  constexpr int kDwords = kFormat == Format::kF32 ? kElements : kElements / 2;
  constexpr int kRegisters = kSize * kSize / kLaneStride;
  Operands in;
  const auto k_of = [](int group, int e) { return group * kElements + e; };
  Unpack<kFormat, kSize, kDwords>(wave.Row(instruction.src[0].index), in.a, k_of);
  Unpack<kFormat, kSize, kDwords>(wave.Row(instruction.src[1].index), in.b, k_of);
  alignas(64) uint32_t copy[kRegisters * kLaneStride];
  bool c_is_constant = false;
  const uint32_t* c = Accumulator<kRegisters>(wave, instruction, copy, &c_is_constant);
  MultiplyAll<kFormat, kSize, kDepth, false>(in, kDepth, c, c_is_constant,
                                             wave.Row(instruction.dst.index));
}

// smfmac: kDepth counts the columns of A with its zeros; half as many are stored. D is also C, and
// source 2 holds the positions: of the elements of one lane, 2 bits each, in the low bits or, with
// cbsz zero, in set number abid.
template <Format kFormat, int kSize, int kDepth>
void ExecSmfmac(Wave& wave, const Instruction& instruction) {
  constexpr int kGroups = kLaneStride / kSize;
  constexpr int kStored = kDepth / 2 / kGroups;  // elements of A per lane
  constexpr int kIndexBits = 2 * kStored;
  const Modifiers& mod = instruction.mod;
  const uint32_t set = mod.cbsz == 0 ? mod.abid : 0;
  if (mod.blgp != 0 || set * kIndexBits >= 32) {
    Fail(wave, instruction, "abid or blgp on this sparse matrix instruction");
  }
  Operands in;
  Unpack<kFormat, kSize, kStored / 2>(wave.Row(instruction.src[0].index), in.a,
                                      [](int group, int e) { return group * kStored + e; });
  // B: blocks of 8 rows go round the groups of lanes.
  Unpack<kFormat, kSize, kStored>(wave.Row(instruction.src[1].index), in.b, [](int group, int e) {
    return 8 * group + e % 8 + 8 * kGroups * (e / 8);
  });
  const uint32_t* positions = wave.Row(instruction.src[2].index);
  for (int l = 0; l < kLaneStride; ++l) {
    const uint32_t bits = positions[l] >> (set * kIndexBits);
    uint8_t* k_of = in.k_of[l % kSize] + (l / kSize) * kStored;
    for (int e = 0; e < kStored; ++e) {
      const uint32_t in_four = (bits >> (2 * e)) & 3;
      k_of[e] = static_cast<uint8_t>(2u * kStored * static_cast<uint32_t>(l / kSize) +
                                     4u * static_cast<uint32_t>(e / 2) + in_four);
    }
  }
  uint32_t* d = wave.Row(instruction.dst.index);
  MultiplyAll<kFormat, kSize, kDepth / 2, true>(in, kDepth, d, false, d);
}

template <Format kFormat, int kSize, int kDepth>
constexpr Opcode Mfma(const char* mnemonic) {
  constexpr int kElements = kDepth * kSize / kLaneStride;
  constexpr uint8_t kDwords = kFormat == Format::kF32 ? kElements : kElements / 2;
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kMatrix;
  row.exec = &ExecMfma<kFormat, kSize, kDepth>;
  row.dst_dwords = kSize * kSize / kLaneStride;
  row.src_dwords = {kDwords, kDwords, kSize * kSize / kLaneStride};
  row.flags = kIgnoresExec | kCrossLane;
  return row;
}
template <Format kFormat, int kSize, int kDepth>
constexpr Opcode Smfmac(const char* mnemonic) {
  constexpr int kStored = kDepth * kSize / kLaneStride / 2;
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = OpClass::kSparseMatrix;
  row.exec = &ExecSmfmac<kFormat, kSize, kDepth>;
  row.dst_dwords = kSize * kSize / kLaneStride;
  row.src_dwords = {kStored / 2, kStored, 1};
  row.flags = kIgnoresExec | kCrossLane | kReadsDst;
  return row;
}

constexpr Opcode kRows[] = {
    Mfma<Format::kBf16, 16, 32>("v_mfma_f32_16x16x32_bf16"),
    Mfma<Format::kF16, 16, 32>("v_mfma_f32_16x16x32_f16"),
    Mfma<Format::kBf16, 32, 16>("v_mfma_f32_32x32x16_bf16"),
    Mfma<Format::kF16, 32, 16>("v_mfma_f32_32x32x16_f16"),
    Mfma<Format::kBf16, 16, 16>("v_mfma_f32_16x16x16_bf16"),
    Mfma<Format::kF16, 16, 16>("v_mfma_f32_16x16x16_f16"),
    Mfma<Format::kBf16, 32, 8>("v_mfma_f32_32x32x8_bf16"),
    Mfma<Format::kF16, 32, 8>("v_mfma_f32_32x32x8_f16"),
    Mfma<Format::kF32, 16, 4>("v_mfma_f32_16x16x4_f32"),
    Mfma<Format::kF32, 32, 2>("v_mfma_f32_32x32x2_f32"),
    Smfmac<Format::kBf16, 16, 64>("v_smfmac_f32_16x16x64_bf16"),
    Smfmac<Format::kF16, 16, 64>("v_smfmac_f32_16x16x64_f16"),
    Smfmac<Format::kBf16, 32, 32>("v_smfmac_f32_32x32x32_bf16"),
    Smfmac<Format::kF16, 32, 32>("v_smfmac_f32_32x32x32_f16"),
    Smfmac<Format::kBf16, 16, 32>("v_smfmac_f32_16x16x32_bf16"),
    Smfmac<Format::kF16, 16, 32>("v_smfmac_f32_16x16x32_f16"),
    Smfmac<Format::kBf16, 32, 16>("v_smfmac_f32_32x32x16_bf16"),
    Smfmac<Format::kF16, 32, 16>("v_smfmac_f32_32x32x16_f16"),
};

}  // namespace

std::span<const Opcode> MatrixRows() { return kRows; }

}  // namespace jax_fa::emulator::JAX_FA_SIMD
