// From a lane function to an Opcode row.
//
//     constexpr Opcode kRows[] = {
//         Lanes<[](float a, float b) { return a + b; }>("v_add_f32"),
//         Lanes<[](uint32_t a, uint32_t b) { return a + b; }, AddSaturating>("v_add_u32"),
//         Lanes<[](float a, float b) { return a < b; }>("v_cmp_lt_f32"),
//     };
//
// The types of arguments and result say what the operands are (LaneType), which modifiers mean
// something, and how many registers each takes. `bool` alone: a compare. WithBit<T>: a result and a
// lane bit (carry). The rows carry neither encoding nor number: each target joins them with its own
// list by mnemonic (decode_join.h), so one row serves VOP1/VOP2, VOP3, DPP and SDWA forms of both.
//
// Included by simd_*.cc only: everything is in the namespace of the SIMD level.
#ifndef JAX_FA_EMULATOR_SIMD_VALU_H_
#define JAX_FA_EMULATOR_SIMD_VALU_H_

#include <utility>

#include "emulator/simd_row.h"

namespace jax_fa::emulator::JAX_FA_SIMD {
namespace {

template <class F>
struct Signature;
template <class F, class R, class... A>
struct Signature<R (F::*)(A...) const> {
  using Result = R;
  static constexpr int kArity = sizeof...(A);
  static constexpr std::array<LaneType, 3> kTypes = [] {
    std::array<LaneType, 3> types{};
    int i = 0;
    ((types[static_cast<size_t>(i++)] = LaneOf<A>::kType), ...);
    return types;
  }();
  template <auto Fn>
  static inline R Call(const uint32_t* const* in, int l) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return Fn(FromDwords<A>(in[2 * I][l], in[2 * I + 1] + l)...);
    }(std::index_sequence_for<A...>{});
  }
};

template <class R>
struct ResultOf {
  using Value = R;
  static constexpr LaneType kType = LaneOf<R>::kType;
  static constexpr bool kHasBit = false;
};
template <>
struct ResultOf<bool> {
  using Value = void;
  static constexpr LaneType kType = LaneType::kNone;
  static constexpr bool kHasBit = true;
};
template <class T>
struct ResultOf<WithBit<T>> {
  using Value = T;
  static constexpr LaneType kType = LaneOf<T>::kType;
  static constexpr bool kHasBit = true;
};

template <auto Fn>
using SignatureOf = Signature<decltype(&decltype(Fn)::operator())>;

template <auto Fn>
void Rows(uint32_t* const* out, const uint32_t* const* in_rows, int lanes) {
  using S = SignatureOf<Fn>;
  using R = typename S::Result;
  // Copies of the pointers: the stores below cannot change these.
  const uint32_t* in[6];
  for (int i = 0; i < 2 * S::kArity; ++i) in[i] = in_rows[i];
  for (int i = 2 * S::kArity; i < 6; ++i) in[i] = nullptr;
  uint32_t* const low = out[0];
  uint32_t* const high = out[1];
  uint32_t* const bits = out[2];
  for (int base = 0; base < lanes; base += 32) {
    JAX_FA_LANES
    for (int i = 0; i < 32; ++i) {
      const int l = base + i;
      const R result = S::template Call<Fn>(in, l);
      if constexpr (std::is_same_v<R, bool>) {
        bits[l] = result ? ~0u : 0u;
      } else if constexpr (ResultOf<R>::kHasBit) {
        bits[l] = result.bit ? ~0u : 0u;
        StoreLane(low + l, high + l, result.value);
      } else {
        StoreLane(low + l, high + l, result);
      }
    }
  }
}

struct NoClamp {};
inline constexpr NoClamp kNoClamp;

enum LanesOption : uint32_t { kPlain = 0, kAccumulates = 1, kIgnoresMode = 2 };

template <auto Fn, auto Clamped, uint32_t kOptions>
constexpr ValuOp MakeOp() {
  using S = SignatureOf<Fn>;
  using R = ResultOf<typename S::Result>;
  RowFn clamped = nullptr;
  if constexpr (!std::is_same_v<decltype(Clamped), const NoClamp> &&
                !std::is_same_v<decltype(Clamped), NoClamp>) {
    clamped = &Rows<Clamped>;
  }
  return {&Rows<Fn>,
          clamped,
          R::kType,
          S::kTypes,
          R::kHasBit,
          (kOptions & kAccumulates) != 0,
          (kOptions & kIgnoresMode) != 0};
}
template <auto Fn, auto Clamped, uint32_t kOptions>
inline constexpr ValuOp kOp = MakeOp<Fn, Clamped, kOptions>();

constexpr bool UsesFloat(const ValuOp& op) {
  return !op.ignores_mode &&
         (IsFloat(op.result) || IsFloat(op.sources[0]) || IsFloat(op.sources[1]));
}

// The common case inline: no modifiers, default modes. Everything else: ExecValuGeneral.
template <auto Fn, auto Clamped, uint32_t kOptions>
void ExecLanes(Wave& wave, const Instruction& instruction) {
  using S = SignatureOf<Fn>;
  using R = ResultOf<typename S::Result>;
  constexpr const ValuOp& op = kOp<Fn, Clamped, kOptions>;
  if (!IsPlain(instruction.mod) || (UsesFloat(op) && !DefaultMode(wave)) ||
      (Is16Bit(op.result) && (instruction.opcode->flags & kKeepsOtherHalf) != 0)) [[unlikely]] {
    ExecValuGeneral(wave, instruction, op);
    return;
  }
  alignas(64) uint32_t scratch[6][kLaneStride];
  const uint32_t* in[6] = {};
  for (int i = 0; i < S::kArity; ++i) {
    const Operand& operand = op.accumulates && i == S::kArity - 1
                                 ? instruction.dst
                                 : instruction.src[static_cast<size_t>(i)];
    if (op.sources[static_cast<size_t>(i)] == LaneType::kLaneBit) {
      ExpandMask(SourceMask(wave, operand), scratch[2 * i]);
      in[2 * i] = in[2 * i + 1] = scratch[2 * i];
      continue;
    }
    in[2 * i] = in[2 * i + 1] = SourceRow(wave, operand, 0, scratch[2 * i]);
    if (Is64Bit(op.sources[static_cast<size_t>(i)])) {
      in[2 * i + 1] = SourceRow(wave, operand, 1, scratch[2 * i + 1]);
    }
  }
  alignas(64) uint32_t bits[kLaneStride];
  const int lanes = wave.lanes;
  const uint64_t exec = wave.exec;
  if constexpr (R::kType != LaneType::kNone) {
    uint32_t* const low = wave.Row(instruction.dst.index);
    uint32_t* const high = Is64Bit(R::kType) ? low + kLaneStride : low;
    if (wave.AllLanes()) {
      uint32_t* const out[3] = {low, high, bits};
      Rows<Fn>(out, in, lanes);
    } else {
      alignas(64) uint32_t value[2][kLaneStride];
      uint32_t* const out[3] = {value[0], value[1], bits};
      Rows<Fn>(out, in, lanes);
      BlendRow(low, value[0], exec);
      if (Is64Bit(R::kType)) BlendRow(high, value[1], exec);
    }
  } else {
    uint32_t* const out[3] = {nullptr, nullptr, bits};
    Rows<Fn>(out, in, lanes);
  }
  if constexpr (R::kHasBit) {
    const uint64_t mask = PackMask(bits, lanes) & exec;
    wave.WriteMask(instruction.sdst.index, mask);
    if ((instruction.opcode->flags & kWritesExec) != 0) wave.exec = mask;
  }
}

constexpr uint8_t DwordsOf(LaneType type) {
  return type == LaneType::kNone ? 0 : Is64Bit(type) || type == LaneType::kLaneBit ? 2 : 1;
}

template <auto Fn, auto Clamped = kNoClamp, uint32_t kOptions = kPlain>
constexpr Opcode Lanes(const char* mnemonic, OpClass op_class = OpClass::kValu,
                       uint32_t flags = 0) {
  constexpr const ValuOp& op = kOp<Fn, Clamped, kOptions>;
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = op_class;
  row.exec = &ExecLanes<Fn, Clamped, kOptions>;
  row.dst_dwords = DwordsOf(op.result);
  row.sdst_dwords = op.lane_bits ? 2 : 0;
  bool any_float = IsFloat(op.result);
  const int sources = SignatureOf<Fn>::kArity - (op.accumulates ? 1 : 0);
  for (int i = 0; i < sources; ++i) {
    const LaneType type = op.sources[static_cast<size_t>(i)];
    row.src_dwords[static_cast<size_t>(i)] = DwordsOf(type);
    any_float |= IsFloat(type) || type == LaneType::kB32;
  }
  const LaneType first = op.sources[0];
  if (first == LaneType::kF16) flags |= kF16Sources;
  if (first == LaneType::kF64) flags |= kF64Sources;
  if (!any_float) flags |= kIntSources;
  if (op.accumulates) flags |= kReadsDst;
  row.flags = flags;
  return row;
}

}  // namespace
}  // namespace jax_fa::emulator::JAX_FA_SIMD

#endif  // JAX_FA_EMULATOR_SIMD_VALU_H_
