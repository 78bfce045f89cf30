#include "ffi/attention.h"

#include <string>
#include <utility>

namespace jax_fa {
namespace {

constexpr size_t kResults = 3;

void ReadOptions(Attributes* attributes, AttentionOptions* options) {
  attributes->Read("scale", &options->scale)
      .Read("soft_cap", &options->soft_cap)
      .Read("window_left", &options->window_left)
      .Read("window_right", &options->window_right)
      .Read("top_left", &options->top_left)
      .Read("num_splits", &options->num_splits);
}

Status CheckOptions(const AttentionOptions& options) {
  const auto finite = [](float x) { return x - x == 0; };
  if (!finite(options.scale)) return MustBe("scale", "finite", std::to_string(options.scale));
  if (!finite(options.soft_cap) || options.soft_cap < 0) {
    return MustBe("soft_cap", "0 (none) or positive and finite", std::to_string(options.soft_cap));
  }
  for (const auto& [name, window] : {std::pair{"window_left", options.window_left},
                                     std::pair{"window_right", options.window_right}}) {
    if (window < -1) return MustBe(name, "-1 (open) or more", std::to_string(window));
  }
  if (options.num_splits < 1) {
    return MustBe("num_splits", "1 or more", std::to_string(options.num_splits));
  }
  return Status::Ok();
}

Status CheckHeads(const AttentionProblem& problem) {
  const int64_t head_dim = problem.head_dim;
  if (head_dim < kHeadDimMultiple || head_dim > kMaxHeadDim || head_dim % kHeadDimMultiple != 0) {
    const std::string multiple = std::to_string(kHeadDimMultiple);
    return MustBe(
        "the head size H of query",
        "a multiple of " + multiple + " from " + multiple + " to " + std::to_string(kMaxHeadDim),
        std::to_string(head_dim));
  }
  const int64_t num_heads = problem.num_heads, num_kv_heads = problem.num_kv_heads;
  if (num_kv_heads == 0 ? num_heads != 0 : num_heads % num_kv_heads != 0) {
    return MustBe("the number of query heads", "a multiple of the number of key/value heads",
                  std::to_string(num_heads) + " and " + std::to_string(num_kv_heads));
  }
  return Status::Ok();
}

// Checks the arrays against their descriptions and hands their data to the problem.
Status BindOperands(const AttentionOperation& operation, std::span<const Array> arrays,
                    Sizes* sizes, AttentionProblem* problem) {
  const auto described = operation.describe(arrays, *problem);
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (Status status = CheckType(described[i].operand, arrays[i], arrays[0].dtype); !status.ok) {
      return status;
    }
  }
  if (operation.check != nullptr) {
    if (Status status = operation.check(arrays, *problem); !status.ok) return status;
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto& [role, operand] = described[i];
    if (Status status = CheckShape(operand, arrays[i], sizes); !status.ok) return status;
    const bool absent = IsAbsent(operand, arrays[i]);
    (*problem)[role] = {.name = operand.name,
                        .data = absent ? nullptr : arrays[i].data,
                        .bytes = arrays[i].bytes,
                        .writable = i >= operation.num_operands};
  }
  problem->dtype =
      arrays[0].dtype == XLA_FFI_DataType_BF16 ? DataType::kBfloat16 : DataType::kFloat16;
  return Status::Ok();
}

}  // namespace

Status MakeProblem(const AttentionOperation& operation, std::span<const Array> operands,
                   std::span<const Array> results, Attributes attributes,
                   std::string_view* target_name, AttentionProblem* problem) {
  attributes.Read("target", target_name);
  ReadOptions(&attributes, &problem->options);
  if (operation.read != nullptr) operation.read(&attributes, problem);
  if (Status status = attributes.Finish(); !status.ok) return status;

  if (operands.size() != operation.num_operands || results.size() != kResults) {
    return MustBe("the numbers of operands and results",
                  std::to_string(operation.num_operands) + " and " + std::to_string(kResults),
                  std::to_string(operands.size()) + " and " + std::to_string(results.size()));
  }
  std::vector<Array> arrays(operands.begin(), operands.end());
  arrays.insert(arrays.end(), results.begin(), results.end());
  Sizes sizes;
  if (Status status = BindOperands(operation, arrays, &sizes, problem); !status.ok) return status;
  if (Status status = operation.set_sizes(sizes, problem); !status.ok) return status;
  if (Status status = CheckHeads(*problem); !status.ok) return status;
  return CheckOptions(problem->options);
}

}  // namespace jax_fa
