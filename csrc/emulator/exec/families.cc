#include "emulator/exec/families.h"

#include <stdexcept>
#include <string>
#include <unordered_map>

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

Rows AllRows() {
  Rows rows;
  for (std::span<const Opcode> family :
       {SimdValuF32Rows(), SimdValuIntRows(), SimdValuCompareRows(), SimdValuConvertRows(),
        SimdValuF16Rows(), SimdValuWideRows(), SimdValuDotRows(), SimdValuLaneRows(),
        SimdMatrixRows(), SimdMatrixBlockRows(), SimdMatrixNarrowRows(), DsRows(), DsLaneRows(),
        VmemRows(), MubufRows()}) {
    for (const Opcode& row : family) {
      if (!rows.emplace(row.mnemonic, &row).second) {
        throw std::logic_error(std::string("two family rows named ") + row.mnemonic);
      }
    }
  }
  return rows;
}

}  // namespace

const Opcode* FamilyRow(std::string_view mnemonic) {
  static const Rows rows = AllRows();
  const auto row = rows.find(mnemonic);
  return row == rows.end() ? nullptr : row->second;
}

}  // namespace jax_fa::emulator
