// Scalar instructions: how the exec files offer their rows, and how they read and write operands.
//
// The targets give the operations their numbers and, where they differ, their names
// (target/<name>/names.cc).
#ifndef JAX_FA_EMULATOR_EXEC_SCALAR_H_
#define JAX_FA_EMULATOR_EXEC_SCALAR_H_

#include <cstdint>
#include <span>

#include "emulator/state/instruction.h"
#include "emulator/state/operand.h"

namespace jax_fa::emulator {

struct ScalarOp {
  Encoding encoding;
  const char* name;
  OpClass op_class;
  ExecFn exec;
  uint8_t dst_dwords;
  std::array<uint8_t, 3> src_dwords;
  uint32_t flags;
  OpTraits traits = {};
};

// What rows are made of: flags, and dwords of the sources.
inline constexpr OpClass kAlu = OpClass::kSalu;
inline constexpr uint32_t kW = kWritesScc, kRW = kReadsScc | kWritesScc;
inline constexpr std::array<uint8_t, 3> k1 = {1, 0, 0}, k2 = {2, 0, 0}, k11 = {1, 1, 0},
                                        k22 = {2, 2, 0}, k21 = {2, 1, 0}, k111 = {1, 1, 1};

// An instruction that has no effect here.
inline void Nothing(Wave&, const Instruction&) {}

std::span<const ScalarOp> ScalarAluOps();      // exec/sop2.cc
std::span<const ScalarOp> ScalarMoveOps();     // exec/sop1.cc
std::span<const ScalarOp> ScalarFloatOps();    // exec/scalar_float.cc
std::span<const ScalarOp> ScalarControlOps();  // exec/control.cc: branches, waits, barriers, MODE
std::span<const ScalarOp> ScalarModeOps();     // exec/modes.cc
std::span<const ScalarOp> ScalarMemoryOps();   // exec/smem.cc
std::span<const ScalarOp> ScalarStoreOps();    // exec/smem_store.cc

inline uint32_t ReadScalar32(const Wave& wave, const Operand& operand) {
  if (operand.kind == OperandKind::kSgpr) return wave.ReadSgpr(operand.index);
  if (operand.kind == OperandKind::kConstant) return operand.value;
  return static_cast<uint32_t>(ReadScalarSource(wave, operand));
}
inline void WriteScalar32(Wave& wave, const Operand& operand, uint32_t value) {
  wave.WriteSgpr(operand.index, value);
}
inline void WriteScalar64(Wave& wave, const Operand& operand, uint64_t value) {
  if (operand.index == kSgprNull) return;
  wave.WriteSgpr(operand.index, static_cast<uint32_t>(value));
  wave.WriteSgpr(operand.index + 1u, static_cast<uint32_t>(value >> 32));
}

template <class T>
T ReadScalar(const Wave& wave, const Operand& operand) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<T>(ReadScalarSource(wave, operand));
  } else {
    return static_cast<T>(ReadScalar32(wave, operand));
  }
}
template <class T>
void WriteScalar(Wave& wave, const Operand& operand, T value) {
  if constexpr (sizeof(T) == 8) {
    WriteScalar64(wave, operand, static_cast<uint64_t>(value));
  } else {
    WriteScalar32(wave, operand, static_cast<uint32_t>(value));
  }
}

// What an instruction does to SCC.
enum class Scc : uint8_t {
  kKeep,     // fn(a, b)
  kNonZero,  // fn(a, b); SCC = result is not zero
  kOwn,      // fn(a, b, scc): reads and writes it
};

template <class D, class A, class B, Scc kScc, auto kFn>
void ScalarBinary(Wave& wave, const Instruction& instruction) {
  const A a = ReadScalar<A>(wave, instruction.src[0]);
  const B b = ReadScalar<B>(wave, instruction.src[1]);
  D result;
  if constexpr (kScc == Scc::kOwn) {
    result = kFn(a, b, wave.scc);
  } else {
    result = kFn(a, b);
    if constexpr (kScc == Scc::kNonZero) wave.scc = result != 0;
  }
  WriteScalar<D>(wave, instruction.dst, result);
}

template <class D, class A, Scc kScc, auto kFn>
void ScalarUnary(Wave& wave, const Instruction& instruction) {
  const A a = ReadScalar<A>(wave, instruction.src[0]);
  D result;
  if constexpr (kScc == Scc::kOwn) {
    result = kFn(a, wave.scc);
  } else {
    result = kFn(a);
    if constexpr (kScc == Scc::kNonZero) wave.scc = result != 0;
  }
  WriteScalar<D>(wave, instruction.dst, result);
}

template <class A, class B, auto kFn>
void ScalarCompare(Wave& wave, const Instruction& instruction) {
  wave.scc = kFn(ReadScalar<A>(wave, instruction.src[0]), ReadScalar<B>(wave, instruction.src[1]));
}

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_EXEC_SCALAR_H_
