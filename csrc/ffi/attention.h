// The operations of attention as custom calls: what each takes, and the problem that it states.
#ifndef JAX_FA_FFI_ATTENTION_H_
#define JAX_FA_FFI_ATTENTION_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "ffi/attributes.h"
#include "ffi/operands.h"
#include "launch/problem.h"

namespace jax_fa {

// An operand or result, and what it is to the problem.
struct AttentionOperand {
  Role role;
  Operand operand;
};

struct AttentionOperation {
  size_t num_operands;
  // Attributes besides those of every operation; null: none.
  void (*read)(Attributes* attributes, AttentionProblem* problem);
  // Operands, then results. The attributes have been read; `operands` are as many as they must be.
  std::vector<AttentionOperand> (*describe)(std::span<const Array> operands,
                                            const AttentionProblem& problem);
  // Checks what legends do not say, after the ranks; null where they say everything.
  Status (*check)(std::span<const Array> operands, const AttentionProblem& problem);
  // Sets the problem's sizes.
  Status (*set_sizes)(const Sizes& sizes, AttentionProblem* problem);
};

extern const AttentionOperation kFlash;
extern const AttentionOperation kVarlen;
extern const AttentionOperation kPaged;

// Checks a call and states its problem.
Status MakeProblem(const AttentionOperation& operation, std::span<const Array> operands,
                   std::span<const Array> results, Attributes attributes,
                   std::string_view* target_name, AttentionProblem* problem);

}  // namespace jax_fa

#endif  // JAX_FA_FFI_ATTENTION_H_
