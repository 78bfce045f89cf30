#include "emulator/exec/families.h"

#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/exec/scalar.h"
#include "emulator/simd/level.h"

namespace jax_fa::emulator {

JAX_FA_DECLARE_SIMD_ROWS(ValuF32Rows)
JAX_FA_DECLARE_SIMD_ROWS(ValuIntRows)
JAX_FA_DECLARE_SIMD_ROWS(ValuCompareRows)
JAX_FA_DECLARE_SIMD_ROWS(ValuConvertRows)
JAX_FA_DECLARE_SIMD_ROWS(ValuF16Rows)
JAX_FA_DECLARE_SIMD_ROWS(ValuWideRows)
JAX_FA_DECLARE_SIMD_ROWS(ValuDotRows)
JAX_FA_DECLARE_SIMD_ROWS(ValuLaneRows)
JAX_FA_DECLARE_SIMD_ROWS(MatrixRows)
JAX_FA_DECLARE_SIMD_ROWS(MatrixBlockRows)
JAX_FA_DECLARE_SIMD_ROWS(MatrixNarrowRows)

namespace {

using Rows = std::unordered_map<std::string_view, const Opcode*>;

// The scalar operations as rows.
std::span<const Opcode> ScalarRows() {
  static const std::vector<Opcode> rows = [] {
    std::vector<Opcode> made;
    for (std::span<const ScalarOp> ops :
         {ScalarAluOps(), ScalarMoveOps(), ScalarFloatOps(), ScalarControlOps(), ScalarModeOps(),
          ScalarMemoryOps(), ScalarStoreOps()}) {
      for (const ScalarOp& op : ops) {
        made.push_back({op.encoding, 0, op.name, op.op_class, op.exec, op.dst_dwords, 0,
                        op.src_dwords, op.flags, op.traits});
      }
    }
    return made;
  }();
  return rows;
}

using Families = std::vector<std::span<const Opcode>>;

Families SimdFamilies(SimdLevel level) {
  return {SimdValuF32Rows(level),     SimdValuIntRows(level),     SimdValuCompareRows(level),
          SimdValuConvertRows(level), SimdValuF16Rows(level),     SimdValuWideRows(level),
          SimdValuDotRows(level),     SimdValuLaneRows(level),    SimdMatrixRows(level),
          SimdMatrixBlockRows(level), SimdMatrixNarrowRows(level)};
}

Rows RowsOf(const Families& families) {
  Rows rows;
  for (std::span<const Opcode> family : families) {
    for (const Opcode& row : family) {
      if (!rows.emplace(row.mnemonic, &row).second) {
        throw std::logic_error(std::string("two family rows named ") + row.mnemonic);
      }
    }
  }
  return rows;
}

Rows AllRows() {
  Families families = SimdFamilies(HostSimdLevel());
  for (std::span<const Opcode> family :
       {DsRows(), DsLaneRows(), VmemRows(), MubufRows(), ScalarRows()}) {
    families.push_back(family);
  }
  return RowsOf(families);
}

}  // namespace

const Opcode* FamilyRow(std::string_view mnemonic) {
  static const Rows rows = AllRows();
  const auto row = rows.find(mnemonic);
  return row == rows.end() ? nullptr : row->second;
}

std::unordered_map<std::string_view, const Opcode*> SimdRows(SimdLevel level) {
  return RowsOf(SimdFamilies(level));
}

}  // namespace jax_fa::emulator
