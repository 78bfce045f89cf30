#include "ffi/flash.h"

#include "ffi/attention.h"

namespace jax_fa {
namespace {

using Buffer = ffi::AnyBuffer;
using Result = ffi::Result<ffi::AnyBuffer>;

ffi::Error CheckOperands(const Buffer& query, const Buffer& key, const Buffer& value,
                         const Buffer& query_lengths, const Buffer& key_lengths, const Buffer& out,
                         const Buffer& lse, const Buffer& workspace) {
  if (ffi::Error error = FirstError(
          {CheckDtypes(query, "key", key, "value", value, out, lse, workspace),
           CheckRank("query", query, 4, "[B, T, N, H]"), CheckRank("key", key, 4, "[B, S, K, H]")});
      error.failure()) {
    return error;
  }
  const int64_t batch = query.dimensions()[0], seqlen_q = query.dimensions()[1];
  const int64_t num_heads = query.dimensions()[2], head_dim = query.dimensions()[3];
  const int64_t seqlen_k = key.dimensions()[1], num_kv_heads = key.dimensions()[2];
  return FirstError(
      {CheckShape("key", key, {batch, seqlen_k, num_kv_heads, head_dim}, "[B, S, K, H]"),
       CheckShape("value", value, {batch, seqlen_k, num_kv_heads, head_dim}, "[B, S, K, H]"),
       CheckShape("out", out, {batch, seqlen_q, num_heads, head_dim}, "[B, T, N, H]"),
       CheckShape("lse", lse, {batch, seqlen_q, num_heads}, "[B, T, N]"),
       CheckIndices("query_lengths", query_lengths, batch, "[B]", /*optional=*/true),
       CheckIndices("key_lengths", key_lengths, batch, "[B]", /*optional=*/true),
       CheckHeads(query, num_kv_heads)});
}

ffi::Error Execute(CallDevice device, Buffer query, Buffer key, Buffer value, Buffer query_lengths,
                   Buffer key_lengths, Result out, Result lse, Result workspace,
                   std::string_view target_name, float scale, float soft_cap, int64_t window_left,
                   int64_t window_right, bool top_left, int64_t num_splits) {
  return Guarded([&] {
    const AttentionOptions options = {scale,        soft_cap, window_left,
                                      window_right, top_left, num_splits};
    if (ffi::Error error = FirstError(
            {CheckOperands(query, key, value, query_lengths, key_lengths, *out, *lse, *workspace),
             CheckOptions(options)});
        error.failure()) {
      return error;
    }
    AttentionProblem problem;
    SetCommon(query, *out, *lse, *workspace, options, &problem);
    problem.key = key.untyped_data();
    problem.value = value.untyped_data();
    problem.query_lengths = IndicesOrNull(query_lengths);
    problem.key_lengths = IndicesOrNull(key_lengths);
    problem.batch = query.dimensions()[0];
    problem.seqlen_q = query.dimensions()[1];
    problem.seqlen_k = key.dimensions()[1];
    problem.num_kv_heads = key.dimensions()[2];
    return Run(device, target_name, problem);
  });
}

}  // namespace
}  // namespace jax_fa

XLA_FFI_DEFINE_HANDLER_SYMBOL(jax_fa_flash_initialize, jax_fa::LoadModule,
                              jax_fa::InitializeBinding());

XLA_FFI_DEFINE_HANDLER_SYMBOL(jax_fa_flash_execute, jax_fa::Execute,
                              jax_fa::BindOptions(jax_fa::BindDevice()
                                                      .Arg<xla::ffi::AnyBuffer>()  // query
                                                      .Arg<xla::ffi::AnyBuffer>()  // key
                                                      .Arg<xla::ffi::AnyBuffer>()  // value
                                                      .Arg<xla::ffi::AnyBuffer>()  // query_lengths
                                                      .Arg<xla::ffi::AnyBuffer>()  // key_lengths
                                                      .Ret<xla::ffi::AnyBuffer>()  // out
                                                      .Ret<xla::ffi::AnyBuffer>()  // lse
                                                      .Ret<xla::ffi::AnyBuffer>()),  // workspace
                              jax_fa::kExecuteTraits);
