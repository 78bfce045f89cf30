#include "ffi/varlen.h"

#include <string>

#include "ffi/attention.h"

namespace jax_fa {
namespace {

using Buffer = ffi::AnyBuffer;
using Result = ffi::Result<ffi::AnyBuffer>;

ffi::Error CheckOperands(const Buffer& query, const Buffer& key, const Buffer& value,
                         const Buffer& cu_seqlens_q, const Buffer& cu_seqlens_k,
                         const Buffer& num_sequences, const Buffer& out, const Buffer& lse,
                         const Buffer& workspace) {
  if (ffi::Error error = FirstError(
          {CheckDtypes(query, "key", key, "value", value, out, lse, workspace),
           CheckRank("query", query, 3, "[tq, N, H]"), CheckRank("key", key, 3, "[tk, K, H]"),
           CheckRank("cu_seqlens_q", cu_seqlens_q, 1, "[n + 1]")});
      error.failure()) {
    return error;
  }
  const int64_t total_q = query.dimensions()[0], num_heads = query.dimensions()[1];
  const int64_t head_dim = query.dimensions()[2];
  const int64_t total_k = key.dimensions()[0], num_kv_heads = key.dimensions()[1];
  const int64_t bounds = cu_seqlens_q.dimensions()[0];
  if (bounds == 0) return MustBe("cu_seqlens_q", "[n + 1]", "[0]");
  return FirstError(
      {CheckShape("key", key, {total_k, num_kv_heads, head_dim}, "[tk, K, H]"),
       CheckShape("value", value, {total_k, num_kv_heads, head_dim}, "[tk, K, H]"),
       CheckShape("out", out, {total_q, num_heads, head_dim}, "[tq, N, H]"),
       CheckShape("lse", lse, {total_q, num_heads}, "[tq, N]"),
       CheckIndices("cu_seqlens_q", cu_seqlens_q, bounds, "[n + 1]", /*optional=*/false),
       CheckIndices("cu_seqlens_k", cu_seqlens_k, bounds, "[n + 1]", /*optional=*/false),
       CheckIndices("num_sequences", num_sequences, 1, "[1]", /*optional=*/true),
       CheckHeads(query, num_kv_heads)});
}

ffi::Error Execute(CallDevice device, Buffer query, Buffer key, Buffer value, Buffer cu_seqlens_q,
                   Buffer cu_seqlens_k, Buffer num_sequences, Result out, Result lse,
                   Result workspace, std::string_view target_name, float scale, float soft_cap,
                   int64_t window_left, int64_t window_right, bool top_left, int64_t num_splits,
                   int64_t grid_sequences) {
  return Guarded([&] {
    const AttentionOptions options = {scale,        soft_cap, window_left,
                                      window_right, top_left, num_splits};
    if (ffi::Error error = FirstError({CheckOperands(query, key, value, cu_seqlens_q, cu_seqlens_k,
                                                     num_sequences, *out, *lse, *workspace),
                                       CheckOptions(options)});
        error.failure()) {
      return error;
    }
    const int64_t sequences = cu_seqlens_q.dimensions()[0] - 1;
    if (grid_sequences < 0 || grid_sequences > sequences) {
      return MustBe("grid_sequences", "from 0 to " + std::to_string(sequences),
                    std::to_string(grid_sequences));
    }
    AttentionProblem problem;
    SetCommon(query, *out, *lse, *workspace, options, &problem);
    problem.key = key.untyped_data();
    problem.value = value.untyped_data();
    problem.cu_seqlens_q = cu_seqlens_q.typed_data<int32_t>();
    problem.cu_seqlens_k = cu_seqlens_k.typed_data<int32_t>();
    problem.num_sequences = IndicesOrNull(num_sequences);
    problem.batch = sequences;
    problem.grid_sequences = grid_sequences;
    problem.seqlen_q = query.dimensions()[0];
    problem.seqlen_k = key.dimensions()[0];
    problem.num_kv_heads = key.dimensions()[1];
    return Run(device, target_name, problem);
  });
}

}  // namespace
}  // namespace jax_fa

XLA_FFI_DEFINE_HANDLER_SYMBOL(jax_fa_varlen_initialize, jax_fa::LoadModule,
                              jax_fa::InitializeBinding());

XLA_FFI_DEFINE_HANDLER_SYMBOL(jax_fa_varlen_execute, jax_fa::Execute,
                              jax_fa::BindOptions(jax_fa::BindDevice()
                                                      .Arg<xla::ffi::AnyBuffer>()   // query
                                                      .Arg<xla::ffi::AnyBuffer>()   // key
                                                      .Arg<xla::ffi::AnyBuffer>()   // value
                                                      .Arg<xla::ffi::AnyBuffer>()   // cu_seqlens_q
                                                      .Arg<xla::ffi::AnyBuffer>()   // cu_seqlens_k
                                                      .Arg<xla::ffi::AnyBuffer>()   // num_sequences
                                                      .Ret<xla::ffi::AnyBuffer>()   // out
                                                      .Ret<xla::ffi::AnyBuffer>()   // lse
                                                      .Ret<xla::ffi::AnyBuffer>())  // workspace
                                  .Attr<int64_t>("grid_sequences"),
                              jax_fa::kExecuteTraits);
