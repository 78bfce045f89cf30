// What the attention handlers share: options, checks, and running the problem.
#ifndef JAX_FA_FFI_ATTENTION_H_
#define JAX_FA_FFI_ATTENTION_H_

#include <string_view>

#include "ffi/checks.h"
#include "ffi/device.h"
#include "launch/attention.h"

namespace jax_fa {

// The attributes of every attention call, besides `target`.
struct AttentionOptions {
  float scale;
  float soft_cap;
  int64_t window_left;
  int64_t window_right;
  bool top_left;
  int64_t num_splits;
};

// Binds context and attributes: (device, operands and results, target, each of AttentionOptions).
inline auto BindDevice() { return ffi::Ffi::Bind().Ctx<CallDeviceContext>(); }
template <class Binding>
auto BindOptions(Binding binding) {
  return std::move(binding)
      .template Attr<std::string_view>("target")
      .template Attr<float>("scale")
      .template Attr<float>("soft_cap")
      .template Attr<int64_t>("window_left")
      .template Attr<int64_t>("window_right")
      .template Attr<bool>("top_left")
      .template Attr<int64_t>("num_splits");
}

// Data types of query, key and value, and of the results.
ffi::Error CheckDtypes(const ffi::AnyBuffer& query, std::string_view key_name,
                       const ffi::AnyBuffer& key, std::string_view value_name,
                       const ffi::AnyBuffer& value, const ffi::AnyBuffer& out,
                       const ffi::AnyBuffer& lse, const ffi::AnyBuffer& workspace);

// Head size and the ratio of heads, from the query's shape and K.
ffi::Error CheckHeads(const ffi::AnyBuffer& query, int64_t num_kv_heads);

// int32 of shape `legend` = [size]; where `optional`, [0] stands for absent.
ffi::Error CheckIndices(std::string_view name, const ffi::AnyBuffer& indices, int64_t size,
                        std::string_view legend, bool optional);

ffi::Error CheckOptions(const AttentionOptions& options);

// The data of int32 operands; null where they are absent: of size 0.
const int32_t* IndicesOrNull(const ffi::AnyBuffer& indices);

// Fills in what every problem has from operands and options: data of query and results, heads.
void SetCommon(const ffi::AnyBuffer& query, ffi::AnyBuffer& out, ffi::AnyBuffer& lse,
               ffi::AnyBuffer& workspace, const AttentionOptions& options,
               AttentionProblem* problem);

ffi::Error Run(const CallDevice& device, std::string_view target_name,
               const AttentionProblem& problem);

}  // namespace jax_fa

#endif  // JAX_FA_FFI_ATTENTION_H_
