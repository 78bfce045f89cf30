#include <map>
#include <utility>
#include <vector>

#include "emulator/simd/valu_op.h"
#include "emulator/target/gfx950/decode.h"

namespace jax_fa::emulator {
namespace {

// Operations of gfx9 with results of 16 bits that leave the other half of their register alone; all
// others clear the upper half.
bool KeepsOtherHalf(std::string_view name) {
  return name == "v_mad_f16" || name == "v_mad_u16" || name == "v_mad_i16" || name == "v_fma_f16" ||
         name == "v_div_fixup_f16" || name == "v_cvt_pk_fp8_f32" || name == "v_cvt_pk_bf8_f32";
}

uint32_t TargetFlags(std::string_view name) {
  uint32_t flags = KeepsOtherHalf(name) ? uint32_t{kKeepsOtherHalf} : 0u;
  if (name == "v_readfirstlane_b32" || name == "v_readlane_b32") flags |= kScalarResult950;
  if (name == "v_accvgpr_read_b32" || name == "v_accvgpr_mov_b32") flags |= kAgprSource;
  if (name == "v_accvgpr_write_b32" || name == "v_accvgpr_mov_b32") flags |= kAgprResult;
  return flags;
}

class Join {
 public:
  Join() {
    Add(kSop1, Gfx950Sop1Names());
    Add(kSop2, Gfx950Sop2Names());
    Add(kSopc, Gfx950SopcNames());
    Add(kSopk, Gfx950SopkNames());
    Add(kSopp, Gfx950SoppNames());
    Add(kSmemEncoding, Gfx950SmemNames());
    Add(kVop1, Gfx950Vop1Names());
    Add(kVop2, Gfx950Vop2Names());
    Add(kVopc, Gfx950VopcNames());
    Add(kVop3, Gfx950Vop3Names());
    Add(kVop3p, Gfx950Vop3pNames());
    Add(kDs, Gfx950DsNames());
    Add(kGlobal, Gfx950GlobalNames(), "global_");
    Add(kFlat, Gfx950GlobalNames(), "flat_");
    Add(kScratch, Gfx950GlobalNames(), "scratch_");
    Add(kMubuf, Gfx950MubufNames());
    Add(kMtbuf, Gfx950MtbufNames());
    AddLdsForms();
    index_ = OpcodeIndex({rows_});
  }

  const OpcodeIndex& index() const { return index_; }
  const std::string* Missing(Encoding encoding, uint32_t number) const {
    const auto name = missing_.find({encoding, number});
    return name == missing_.end() ? nullptr : &name->second;
  }

 private:
  void Add(Encoding encoding, std::span<const OpcodeName> names, const std::string& prefix = "") {
    for (const OpcodeName& name : names) {
      const std::string mnemonic = prefix + name.mnemonic;
      const Opcode* family = FamilyRow(name.row ? std::string(name.row) : mnemonic);
      if (!family) {
        missing_[{encoding, name.number}] = mnemonic;
        continue;
      }
      Opcode row = *family;
      if (name.row) row.mnemonic = name.mnemonic;
      row.encoding = encoding;
      row.number = name.number;
      row.flags |= TargetFlags(mnemonic);
      rows_.push_back(row);
    }
  }
  // The `lds` bit turns a buffer load into LDS-DMA: no destination, M0 read.
  void AddLdsForms() {
    const size_t count = rows_.size();
    for (size_t i = 0; i < count; ++i) {
      if (rows_[i].encoding != kMubuf || rows_[i].op_class != OpClass::kVmemLoad) continue;
      Opcode row = rows_[i];
      row.number = static_cast<uint16_t>(row.number | kGfx950MubufLds);
      row.op_class = OpClass::kLdsDma;
      row.traits.lds_dwords = row.dst_dwords;
      row.dst_dwords = 0;
      row.flags = uint32_t{kReadsM0} | kLoadsToLds;
      rows_.push_back(row);
    }
  }

  std::vector<Opcode> rows_;
  std::map<std::pair<Encoding, uint32_t>, std::string> missing_;
  OpcodeIndex index_{};
};

const Join& Joined() {
  static const Join join;
  return join;
}

}  // namespace

const OpcodeIndex& Gfx950Opcodes() { return Joined().index(); }

std::string Gfx950Unknown(Encoding encoding, uint32_t number) {
  const std::string* name = Joined().Missing(encoding, number);
  return name ? *name + " is not implemented" : UnknownOpcode(encoding, number);
}

}  // namespace jax_fa::emulator
