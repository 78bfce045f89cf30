#include "ffi/paged.h"

#include <initializer_list>

#include "ffi/attention.h"

namespace jax_fa {
namespace {

using Buffer = ffi::AnyBuffer;
using Result = ffi::Result<ffi::AnyBuffer>;

// A pool's shape by name.
struct Pages {
  int64_t num_pages, page_size, num_kv_heads, head_dim;
};

// [P, page, K, H], or [P, K, page, H] where `head_major`.
Pages GetPages(const Buffer& pages, bool head_major) {
  const auto dimensions = pages.dimensions();
  return {dimensions[0], dimensions[head_major ? 2 : 1], dimensions[head_major ? 1 : 2],
          dimensions[3]};
}

ffi::Error CheckOperands(const Buffer& query, const Buffer& k_pages, const Buffer& v_pages,
                         const Buffer& block_tables, const Buffer& key_lengths,
                         const Buffer& query_lengths, const Buffer& cu_seqlens_q, const Buffer& out,
                         const Buffer& lse, const Buffer& workspace, bool head_major) {
  const char* const pages_legend = head_major ? "[P, K, page, H]" : "[P, page, K, H]";
  if (ffi::Error error = FirstError(
          {CheckDtypes(query, "k_pages", k_pages, "v_pages", v_pages, out, lse, workspace),
           CheckDtype("block_tables", block_tables, {ffi::DataType::S32}),
           CheckRank("k_pages", k_pages, 4, pages_legend),
           CheckRank("block_tables", block_tables, 2, "[B, M]"),
           CheckRank("cu_seqlens_q", cu_seqlens_q, 1, "[B + 1] or [0]")});
      error.failure()) {
    return error;
  }
  const bool packed = cu_seqlens_q.dimensions()[0] != 0;
  const char* const query_legend = packed ? "[tq, N, H]" : "[B, T, N, H]";
  if (ffi::Error error = CheckRank("query", query, packed ? 3 : 4, query_legend); error.failure()) {
    return error;
  }
  const int64_t batch = block_tables.dimensions()[0];
  const auto shape = query.dimensions();
  const Pages pages = GetPages(k_pages, head_major);
  const auto pool = k_pages.dimensions();
  if (pages.page_size < 1) return MustBe("the page size of k_pages", "1 or more", "0");
  if (pages.head_dim != shape.back()) {
    return MustBe("the head size of k_pages", "that of query", std::to_string(pages.head_dim));
  }
  if (!packed && shape[0] != batch) {
    return MustBe("block_tables", "[B, M] with the query's B",
                  ShapeText(block_tables.dimensions()));
  }
  return FirstError(
      {CheckShape("v_pages", v_pages, {pool[0], pool[1], pool[2], pool[3]}, pages_legend),
       packed ? CheckShape("out", out, {shape[0], shape[1], shape[2]}, query_legend)
              : CheckShape("out", out, {shape[0], shape[1], shape[2], shape[3]}, query_legend),
       packed ? CheckShape("lse", lse, {shape[0], shape[1]}, "[tq, N]")
              : CheckShape("lse", lse, {shape[0], shape[1], shape[2]}, "[B, T, N]"),
       CheckIndices("key_lengths", key_lengths, batch, "[B]", /*optional=*/false),
       CheckIndices("query_lengths", query_lengths, batch, "[B]", /*optional=*/true),
       CheckIndices("cu_seqlens_q", cu_seqlens_q, batch + 1, "[B + 1]", /*optional=*/true),
       CheckHeads(query, pages.num_kv_heads)});
}

ffi::Error Execute(CallDevice device, Buffer query, Buffer k_pages, Buffer v_pages,
                   Buffer block_tables, Buffer key_lengths, Buffer query_lengths,
                   Buffer cu_seqlens_q, Result out, Result lse, Result workspace,
                   std::string_view target_name, float scale, float soft_cap, int64_t window_left,
                   int64_t window_right, bool top_left, int64_t num_splits, bool head_major) {
  return Guarded([&] {
    const AttentionOptions options = {scale,        soft_cap, window_left,
                                      window_right, top_left, num_splits};
    if (ffi::Error error = FirstError(
            {CheckOperands(query, k_pages, v_pages, block_tables, key_lengths, query_lengths,
                           cu_seqlens_q, *out, *lse, *workspace, head_major),
             CheckOptions(options)});
        error.failure()) {
      return error;
    }
    const Pages pages = GetPages(k_pages, head_major);
    AttentionProblem problem;
    SetCommon(query, *out, *lse, *workspace, options, &problem);
    problem.key = k_pages.untyped_data();
    problem.value = v_pages.untyped_data();
    problem.block_tables = block_tables.typed_data<int32_t>();
    problem.key_lengths = key_lengths.typed_data<int32_t>();
    problem.query_lengths = IndicesOrNull(query_lengths);
    problem.cu_seqlens_q = IndicesOrNull(cu_seqlens_q);
    problem.batch = problem.grid_sequences = block_tables.dimensions()[0];
    problem.seqlen_q = query.dimensions()[problem.cu_seqlens_q != nullptr ? 0 : 1];
    problem.num_kv_heads = pages.num_kv_heads;
    problem.paged = true;
    problem.head_major = head_major;
    problem.num_pages = pages.num_pages;
    problem.page_size = pages.page_size;
    problem.max_pages = block_tables.dimensions()[1];
    return Run(device, target_name, problem);
  });
}

}  // namespace
}  // namespace jax_fa

XLA_FFI_DEFINE_HANDLER_SYMBOL(jax_fa_paged_initialize, jax_fa::LoadModule,
                              jax_fa::InitializeBinding());

XLA_FFI_DEFINE_HANDLER_SYMBOL(jax_fa_paged_execute, jax_fa::Execute,
                              jax_fa::BindOptions(jax_fa::BindDevice()
                                                      .Arg<xla::ffi::AnyBuffer>()   // query
                                                      .Arg<xla::ffi::AnyBuffer>()   // k_pages
                                                      .Arg<xla::ffi::AnyBuffer>()   // v_pages
                                                      .Arg<xla::ffi::AnyBuffer>()   // block_tables
                                                      .Arg<xla::ffi::AnyBuffer>()   // key_lengths
                                                      .Arg<xla::ffi::AnyBuffer>()   // query_lengths
                                                      .Arg<xla::ffi::AnyBuffer>()   // cu_seqlens_q
                                                      .Ret<xla::ffi::AnyBuffer>()   // out
                                                      .Ret<xla::ffi::AnyBuffer>()   // lse
                                                      .Ret<xla::ffi::AnyBuffer>())  // workspace
                                  .Attr<bool>("hnd"),
                              jax_fa::kExecuteTraits);
