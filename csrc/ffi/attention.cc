#include "ffi/attention.h"

#include <memory>
#include <string>
#include <utility>

namespace jax_fa {

ffi::Error CheckDtypes(const ffi::AnyBuffer& query, std::string_view key_name,
                       const ffi::AnyBuffer& key, std::string_view value_name,
                       const ffi::AnyBuffer& value, const ffi::AnyBuffer& out,
                       const ffi::AnyBuffer& lse, const ffi::AnyBuffer& workspace) {
  const ffi::DataType dtype = query.element_type();
  return FirstError({CheckDtype("query", query, {ffi::DataType::BF16, ffi::DataType::F16}),
                     CheckDtype(key_name, key, {dtype}), CheckDtype(value_name, value, {dtype}),
                     CheckDtype("out", out, {dtype}), CheckDtype("lse", lse, {ffi::DataType::F32}),
                     CheckDtype("workspace", workspace, {ffi::DataType::U8}),
                     CheckRank("workspace", workspace, 1, "[W]")});
}

ffi::Error CheckHeads(const ffi::AnyBuffer& query, int64_t num_kv_heads) {
  const auto dimensions = query.dimensions();
  const int64_t num_heads = dimensions[dimensions.size() - 2], head_dim = dimensions.back();
  if (head_dim < kHeadDimMultiple || head_dim > kMaxHeadDim || head_dim % kHeadDimMultiple != 0) {
    const std::string multiple = std::to_string(kHeadDimMultiple);
    return MustBe(
        "the head size H of query",
        "a multiple of " + multiple + " from " + multiple + " to " + std::to_string(kMaxHeadDim),
        std::to_string(head_dim));
  }
  if (num_kv_heads == 0 ? num_heads != 0 : num_heads % num_kv_heads != 0) {
    return MustBe("the number of query heads", "a multiple of the number of key/value heads",
                  std::to_string(num_heads) + " and " + std::to_string(num_kv_heads));
  }
  return ffi::Error::Success();
}

ffi::Error CheckIndices(std::string_view name, const ffi::AnyBuffer& indices, int64_t size,
                        std::string_view legend, bool optional) {
  const std::string ranks = std::string(legend) + (optional ? " or [0]" : "");
  if (ffi::Error error = FirstError(
          {CheckDtype(name, indices, {ffi::DataType::S32}), CheckRank(name, indices, 1, ranks)});
      error.failure()) {
    return error;
  }
  if (optional && indices.dimensions()[0] == 0) return ffi::Error::Success();
  return CheckShape(name, indices, {size}, legend);
}

ffi::Error CheckOptions(const AttentionOptions& options) {
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
  return ffi::Error::Success();
}

const int32_t* IndicesOrNull(const ffi::AnyBuffer& indices) {
  return indices.element_count() == 0 ? nullptr : indices.typed_data<int32_t>();
}

void SetCommon(const ffi::AnyBuffer& query, ffi::AnyBuffer& out, ffi::AnyBuffer& lse,
               ffi::AnyBuffer& workspace, const AttentionOptions& options,
               AttentionProblem* problem) {
  const auto dimensions = query.dimensions();
  problem->query = query.untyped_data();
  problem->out = out.untyped_data();
  problem->lse = lse.typed_data<float>();
  problem->workspace = workspace.untyped_data();
  problem->workspace_bytes = workspace.element_count();
  problem->dtype =
      query.element_type() == ffi::DataType::BF16 ? DataType::kBfloat16 : DataType::kFloat16;
  problem->num_heads = dimensions[dimensions.size() - 2];
  problem->head_dim = dimensions.back();
  problem->scale = options.scale;
  problem->soft_cap = options.soft_cap;
  problem->window_left = options.window_left;
  problem->window_right = options.window_right;
  problem->top_left = options.top_left;
  problem->num_splits = options.num_splits;
}

ffi::Error Run(const CallDevice& device, std::string_view target_name,
               const AttentionProblem& problem) {
  std::unique_ptr<Runtime> runtime;
  const Target* target = nullptr;
  if (Status status = OpenDevice(device, target_name, &runtime, &target); !status.ok) {
    return ffi::Error::InvalidArgument(status.message);
  }
  return ToError(LaunchAttention(*runtime, *target, problem));
}

}  // namespace jax_fa
