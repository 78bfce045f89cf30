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
// list by mnemonic (target/<name>/rows.cc), so one row serves VOP1/VOP2, VOP3, DPP and SDWA forms
// of both.
//
// Included by the files of simd/ only: everything is in the namespace of the SIMD level.
#ifndef JAX_FA_EMULATOR_SIMD_VALU_ROWS_H_
#define JAX_FA_EMULATOR_SIMD_VALU_ROWS_H_

#include <utility>

#include "emulator/simd/row.h"

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

// Out of line: the common and the general path share one copy of the loop.
template <auto Fn>
[[gnu::noinline]] void Rows(uint32_t* const* out, const uint32_t* const* in_rows, int lanes) {
  using S = SignatureOf<Fn>;
  using R = typename S::Result;
  // Copies of the pointers: the stores below cannot change these.
  const uint32_t* in[6];
  for (int i = 0; i < 6; ++i) in[i] = i < 2 * S::kArity ? in_rows[i] : nullptr;
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

constexpr OpClass kTransClass = OpClass::kTrans;

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
  return {.rows = &Rows<Fn>,
          .clamped = clamped,
          .result = R::kType,
          .sources = S::kTypes,
          .lane_bits = R::kHasBit,
          .accumulates = (kOptions & kAccumulates) != 0,
          .ignores_mode = (kOptions & kIgnoresMode) != 0,
          .reads_vcc = false};
}
template <auto Fn, auto Clamped, uint32_t kOptions>
inline constexpr ValuOp kOp = MakeOp<Fn, Clamped, kOptions>();

constexpr int SourceCount(const ValuOp& op) {
  return op.sources[2] != LaneType::kNone ? 3 : op.sources[1] != LaneType::kNone ? 2 : 1;
}
constexpr bool UsesFloat(const ValuOp& op) {
  return !op.ignores_mode &&
         (IsFloat(op.result) || IsFloat(op.sources[0]) || IsFloat(op.sources[1]));
}

constexpr bool AllSourcesF32(const ValuOp& op) {
  for (int i = 0; i < SourceCount(op); ++i) {
    if (op.sources[static_cast<size_t>(i)] != LaneType::kF32) return false;
  }
  return true;
}

// The row with the sign changes that source `place` has.
inline const uint32_t* WithSigns(const Modifiers& mod, int place, const uint32_t* row,
                                 uint32_t* scratch) {
  const uint32_t keep = ((mod.abs >> place) & 1) != 0 ? 0x7fffffffu : ~0u;
  const uint32_t flip = ((mod.neg >> place) & 1) != 0 ? 0x80000000u : 0u;
  if (keep == ~0u && flip == 0) return row;
  for (int l = 0; l < kLaneStride; ++l) scratch[l] = (row[l] & keep) ^ flip;
  return scratch;
}

// What a lane function's surroundings depend on: all of the operation but the function.
constexpr ValuOp ShapeOf(ValuOp op) {
  op.rows = op.clamped = nullptr;
  return op;
}

// The common case: default modes, and no modifiers but signs of float32 sources. Everything else:
// ExecValuGeneral. One copy serves all operations of a shape.
template <ValuOp kShape>
[[gnu::noinline]] void ExecShape(Wave& wave, const Instruction& instruction, const ValuOp& op) {
  constexpr bool kSigns = AllSourcesF32(kShape);
  const bool plain = kSigns ? IsPlainButSigns(instruction.mod) : IsPlain(instruction.mod);
  if (!plain || (UsesFloat(kShape) && !DefaultMode(wave)) ||
      (Is16Bit(kShape.result) && (instruction.opcode->flags & kKeepsOtherHalf) != 0)) [[unlikely]] {
    ExecValuGeneral(wave, instruction, op);
    return;
  }
  alignas(64) uint32_t scratch[8][kLaneStride];
  const uint32_t* in[8] = {};
  constexpr int kCount = SourceCount(kShape);
  for (int i = 0; i < kCount; ++i) {
    const LaneType type = kShape.sources[static_cast<size_t>(i)];
    const Operand& operand = kShape.accumulates && i == kCount - 1
                                 ? instruction.dst
                                 : instruction.src[static_cast<size_t>(i)];
    if (type == LaneType::kLaneBit) {
      ExpandMask(SourceMask(wave, operand), scratch[2 * i]);
      in[2 * i] = in[2 * i + 1] = scratch[2 * i];
      continue;
    }
    in[2 * i] = in[2 * i + 1] = SourceRow(wave, operand, 0, scratch[2 * i]);
    if constexpr (kSigns) in[2 * i] = WithSigns(instruction.mod, i, in[2 * i], scratch[2 * i]);
    if (Is64Bit(type)) in[2 * i + 1] = SourceRow(wave, operand, 1, scratch[2 * i + 1]);
  }
  if constexpr (kShape.reads_vcc) {
    ExpandMask(wave.ReadMask(kSgprVccLo), scratch[6]);
    in[6] = in[7] = scratch[6];
  }
  alignas(64) uint32_t bits[kLaneStride];
  const int lanes = wave.lanes;
  const uint64_t exec = wave.exec;
  if constexpr (kShape.result != LaneType::kNone) {
    constexpr bool k64Bit = Is64Bit(kShape.result);
    uint32_t* const low = wave.Row(instruction.dst.index);
    uint32_t* const high = k64Bit ? low + kLaneStride : low;
    const bool all = wave.AllLanes();
    alignas(64) uint32_t value[2][kLaneStride];
    uint32_t* const out[3] = {all ? low : value[0], all ? high : value[1], bits};
    op.rows(out, in, lanes);
    if (!all) {
      BlendRow(low, value[0], exec);
      if constexpr (k64Bit) BlendRow(high, value[1], exec);
    }
  } else {
    uint32_t* const out[3] = {nullptr, nullptr, bits};
    op.rows(out, in, lanes);
  }
  if constexpr (kShape.lane_bits) {
    const uint64_t mask = PackMask(bits, lanes) & exec;
    wave.WriteMask(instruction.sdst.index, mask);
    if ((instruction.opcode->flags & kWritesExec) != 0) wave.exec = mask;
  }
}

template <const ValuOp& op>
void ExecOp(Wave& wave, const Instruction& instruction) {
  ExecShape<ShapeOf(op)>(wave, instruction, op);
}

constexpr uint8_t DwordsOf(LaneType type) {
  return type == LaneType::kNone ? 0 : Is64Bit(type) || type == LaneType::kLaneBit ? 2 : 1;
}

// The row of an operation, its operands described by the operation.
constexpr Opcode OpRow(const ValuOp& op, ExecFn exec, const char* mnemonic, OpClass op_class,
                       uint32_t flags) {
  Opcode row{};
  row.mnemonic = mnemonic;
  row.op_class = op_class;
  row.exec = exec;
  row.dst_dwords = DwordsOf(op.result);
  row.sdst_dwords = op.lane_bits ? 2 : 0;
  bool any_float = IsFloat(op.result);
  const int sources = SourceCount(op) - (op.accumulates ? 1 : 0);
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
  if (op.reads_vcc) flags |= kReadsVccImplicitly;
  row.flags = flags;
  return row;
}

template <auto Fn, auto Clamped = kNoClamp, uint32_t kOptions = kPlain>
constexpr Opcode Lanes(const char* mnemonic, OpClass op_class = OpClass::kValu,
                       uint32_t flags = 0) {
  return OpRow(kOp<Fn, Clamped, kOptions>, &ExecOp<kOp<Fn, Clamped, kOptions>>, mnemonic, op_class,
               flags);
}

// A packed instruction (VOP3P) does one operation in both halves: Fn works on one half, which is
// a 16-bit value or, of a register pair, a float.
template <ValuOp kShape>
[[gnu::noinline]] void ExecPackedShape(Wave& wave, const Instruction& instruction,
                                       const ValuOp& op) {
  const Modifiers& mod = instruction.mod;
  constexpr bool kDwords = kShape.result == LaneType::kF32 || kShape.result == LaneType::kB32;
  if constexpr (kDwords) {
    constexpr int kCount = SourceCount(kShape);
    bool plain = (mod.neg | mod.abs | static_cast<uint8_t>(mod.clamp)) == 0 && DefaultMode(wave);
    for (int i = 0; i < kCount; ++i) {
      plain &= instruction.src[static_cast<size_t>(i)].kind == OperandKind::kVgpr;
    }
    if (plain) [[likely]] {
      alignas(64) uint32_t value[2][kLaneStride];
      for (int half = 0; half < 2; ++half) {
        const uint32_t* in[8] = {};
        const uint8_t select = half == 0 ? mod.op_sel : mod.op_sel_hi;
        for (int i = 0; i < kCount; ++i) {
          in[2 * i] = in[2 * i + 1] =
              wave.Row(instruction.src[static_cast<size_t>(i)].index + ((select >> i) & 1u));
        }
        uint32_t* const out[3] = {value[half], value[half], nullptr};
        op.rows(out, in, wave.lanes);
      }
      uint32_t* const low = wave.Row(instruction.dst.index);
      BlendRow(low, value[0], wave.exec);
      BlendRow(low + kLaneStride, value[1], wave.exec);
      return;
    }
  }
  ExecPackedGeneral(wave, instruction, op);
}

template <const ValuOp& op>
void ExecPacked(Wave& wave, const Instruction& instruction) {
  ExecPackedShape<ShapeOf(op)>(wave, instruction, op);
}

template <auto Fn, auto Clamped = kNoClamp, uint32_t kOptions = kPlain>
constexpr Opcode Packed(const char* mnemonic, OpClass op_class = OpClass::kValu) {
  constexpr const ValuOp& op = kOp<Fn, Clamped, kOptions>;
  Opcode row = OpRow(op, &ExecPacked<op>, mnemonic, op_class, kPackedMath);
  if (!Is16Bit(op.result)) {
    row.dst_dwords = 2;
    for (uint8_t& dwords : row.src_dwords) dwords = static_cast<uint8_t>(dwords * 2);
  }
  return row;
}

}  // namespace
}  // namespace jax_fa::emulator::JAX_FA_SIMD

#endif  // JAX_FA_EMULATOR_SIMD_VALU_ROWS_H_
