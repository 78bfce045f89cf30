// The decode table of gfx1201: its opcode numbers joined with the instruction families.
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

#include "emulator/exec/families.h"
#include "emulator/exec/gfx1201.h"
#include "emulator/simd/level.h"
#include "emulator/simd/valu_op.h"
#include "emulator/target/gfx1201/decode.h"

namespace jax_fa::emulator {

JAX_FA_DECLARE_SIMD_ROWS(ValuGfx1201Rows)
JAX_FA_DECLARE_SIMD_ROWS(WmmaRows)

namespace {

bool Is16BitType(std::string_view type) {
  return type == "f16" || type == "b16" || type == "i16" || type == "u16";
}

// Which operands are halves of registers, from the types at the end of the mnemonic: one type is
// that of all operands, two are those of result and sources. Packed results fill their register.
uint32_t HalfFlags(std::string_view mnemonic) {
  const size_t last_at = mnemonic.rfind('_');
  const std::string_view sources = mnemonic.substr(last_at + 1);
  const std::string_view rest = mnemonic.substr(0, last_at);
  const std::string_view before = rest.substr(rest.rfind('_') + 1);
  const bool converts =
      before.size() >= 2 && before.size() <= 4 &&
      (before.ends_with("16") || before.ends_with("32") || before.ends_with("64"));
  const std::string_view result = converts ? before : sources;
  uint32_t flags = 0;
  for (const char* whole : {"_pk_", "_dot2"}) {  // sources that are pairs of halves
    if (mnemonic.find(whole) != std::string_view::npos) return flags;
  }
  if (Is16BitType(sources)) flags |= kHalfSrc0 | kHalfSrc1 | kHalfSrc2;
  if (Is16BitType(result)) flags |= kHalfDst;
  return flags;
}

class Table {
 public:
  Table() {
    AddOwn(SimdValuGfx1201Rows());
    AddOwn(SimdWmmaRows());
    AddOwn(Gfx1201OwnRows());
    AddScalar(kSop1, Gfx1201Sop1Names());
    AddScalar(kSop2, Gfx1201Sop2Names());
    AddScalar(kSopc, Gfx1201SopcNames());
    AddScalar(kSopk, Gfx1201SopkNames());
    AddScalar(kSopp, Gfx1201SoppNames());
    AddScalar(kSmemEncoding, Gfx1201SmemNames());
    AddAlu(kVop1, Gfx1201Vop1Names(), kVop1InVop3);
    AddAlu(kVop2, Gfx1201Vop2Names(), kVop2InVop3);
    AddAlu(kVop3, Gfx1201Vop3Names(), 0);
    AddAlu(kVop3p, Gfx1201Vop3pNames(), 0);
    AddCompares();
    for (const Gfx1201Name& name : Gfx1201VopdNames()) {
      AddAluRow(kVopd, name.number, name.mnemonic, name).op_class = OpClass::kValuDual;
    }
    AddMemory(kFlat, "flat_", Gfx1201MemoryNames());
    AddMemory(kGlobal, "global_", Gfx1201MemoryNames());
    AddMemory(kGlobal, "global_", Gfx1201GlobalOnlyNames());
    AddMemory(kScratch, "scratch_", Gfx1201MemoryNames());
    AddMemory(kMubuf, "buffer_", Gfx1201MemoryNames());
    for (const Gfx1201Name& name : Gfx1201DsNames()) {
      const std::string_view mnemonic = name.mnemonic;
      Opcode& row = Add(kDs, name.number, name.mnemonic, *Find(name.row ? name.row : mnemonic));
      if (mnemonic.starts_with("ds_cmpstore")) row.flags |= kSwappedData;
    }
  }
  std::span<const Opcode> rows() {
    flat_.assign(rows_.begin(), rows_.end());
    return flat_;
  }

 private:
  void AddOwn(std::span<const Opcode> rows) {
    for (const Opcode& row : rows) own_.emplace(row.mnemonic, &row);
  }
  const Opcode* FindOrNull(std::string_view mnemonic) const {
    const auto own = own_.find(mnemonic);
    return own != own_.end() ? own->second : FamilyRow(mnemonic);
  }
  const Opcode* Find(std::string_view mnemonic) const {
    const Opcode* row = FindOrNull(mnemonic);
    if (!row) throw std::logic_error("no family has " + std::string(mnemonic));
    return row;
  }
  Opcode& Add(Encoding encoding, uint16_t number, const char* mnemonic, const Opcode& family) {
    Opcode& row = rows_.emplace_back(family);
    row.encoding = encoding;
    row.number = number;
    row.mnemonic = mnemonic;
    return row;
  }
  const char* Keep(std::string text) { return texts_.emplace_back(std::move(text)).c_str(); }

  void AddScalar(Encoding encoding, std::span<const Gfx1201Name> names) {
    for (const Gfx1201Name& name : names) {
      Add(encoding, name.number, name.mnemonic, *Find(name.row ? name.row : name.mnemonic));
    }
  }

  // Family rows have wave64 masks, of two scalar registers; here they have one.
  Opcode& AddAluRow(Encoding encoding, uint16_t number, const char* mnemonic,
                    const Gfx1201Name& name) {
    Opcode& row = Add(encoding, number, mnemonic, *Find(name.row ? name.row : mnemonic));
    const std::string_view text = mnemonic;
    row.flags |= kKeepsOtherHalf | HalfFlags(text);
    if (row.sdst_dwords != 0) row.sdst_dwords = 1;
    if (text.find("cndmask") != text.npos || text.find("_co_ci_") != text.npos) {
      row.src_dwords[2] = 1;
      row.flags |= kMaskSrc2;
    }
    if (text.find("_fmamk_") != text.npos) row.flags |= kLiteralMiddle;
    if (text.find("_fmaak_") != text.npos) row.flags |= kLiteralLast;
    if (text.starts_with("v_s_") || text.starts_with("v_read")) row.flags |= kScalarResult;
    return row;
  }
  static bool HasVop3Form(std::string_view mnemonic) {
    for (const char* without :
         {"v_fmamk_f32", "v_fmaak_f32", "v_fmamk_f16", "v_fmaak_f16", "v_pk_fmac_f16", "v_swap_b32",
          "v_readfirstlane_b32", "v_permlane64_b32"}) {
      if (mnemonic == without) return false;
    }
    return true;
  }
  void AddAlu(Encoding encoding, std::span<const Gfx1201Name> names, uint16_t in_vop3) {
    for (const Gfx1201Name& name : names) {
      AddAluRow(encoding, name.number, name.mnemonic, name);
      if (in_vop3 != 0 && HasVop3Form(name.mnemonic)) {
        AddAluRow(kVop3, static_cast<uint16_t>(name.number + in_vop3), name.mnemonic, name);
      }
    }
  }
  void AddCompare(int number, const std::string& relation_and_type) {
    for (const auto& [distance, prefix] : {std::pair(0, "v_cmp_"), std::pair(128, "v_cmpx_")}) {
      const Gfx1201Name name{static_cast<uint16_t>(number + distance),
                             Keep(prefix + relation_and_type)};
      AddAluRow(kVopc, name.number, name.mnemonic, name);
      AddAluRow(kVop3, name.number, name.mnemonic, name);
    }
  }
  void AddCompares() {
    for (const Gfx1201Name& type : Gfx1201CompareTypes()) {
      const bool is_float = type.mnemonic[0] == 'f';
      for (const Gfx1201Name& relation :
           is_float ? Gfx1201FloatRelations() : Gfx1201IntRelations()) {
        AddCompare(type.number + relation.number,
                   std::string(relation.mnemonic) + "_" + type.mnemonic);
      }
    }
    for (const Gfx1201Name& type : Gfx1201ClassCompares()) {
      AddCompare(type.number, std::string("class_") + type.mnemonic);
    }
  }
  // Not every operation exists in every segment: scratch has no atomics.
  void AddMemory(Encoding encoding, const char* prefix, std::span<const Gfx1201Name> names) {
    for (const Gfx1201Name& name : names) {
      const std::string family = std::string(prefix) + (name.row ? name.row : name.mnemonic);
      const Opcode* row = FindOrNull(family);
      if (row) Add(encoding, name.number, Keep(std::string(prefix) + name.mnemonic), *row);
    }
  }

  std::unordered_map<std::string_view, const Opcode*> own_;
  std::deque<Opcode> rows_;
  std::vector<Opcode> flat_;
  std::deque<std::string> texts_;
};

}  // namespace

const OpcodeIndex& Gfx1201Opcodes() {
  static Table table;
  static const OpcodeIndex index({table.rows()});
  return index;
}

}  // namespace jax_fa::emulator
