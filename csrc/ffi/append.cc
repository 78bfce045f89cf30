#include "ffi/append.h"

#include <cstddef>
#include <cstring>

#include "ffi/checks.h"

namespace jax_fa {
namespace {

using Buffer = ffi::AnyBuffer;
using Result = ffi::Result<ffi::AnyBuffer>;

ffi::Error CheckOperands(const Buffer& pages, const Buffer& page, const Buffer& row,
                         const Buffer& tokens, const Buffer& out, bool head_major) {
  const char* const pages_legend = head_major ? "[P, K, page, H]" : "[P, page, K, H]";
  if (ffi::Error error = FirstError({CheckRank("pages", pages, 4, pages_legend),
                                     CheckRank("new", tokens, 4, "[B, T, K, H]")});
      error.failure()) {
    return error;
  }
  const auto pool = pages.dimensions();
  const auto shape = tokens.dimensions();
  return FirstError(
      {CheckDtype("new", tokens, {pages.element_type()}),
       CheckDtype("out", out, {pages.element_type()}),
       CheckDtype("page", page, {ffi::DataType::S32}), CheckDtype("row", row, {ffi::DataType::S32}),
       CheckShape("new", tokens, {shape[0], shape[1], pool[head_major ? 1 : 2], pool[3]},
                  "[B, T, K, H]"),
       CheckShape("page", page, {shape[0], shape[1]}, "[B, T]"),
       CheckShape("row", row, {shape[0], shape[1]}, "[B, T]"),
       CheckShape("out", out, {pool[0], pool[1], pool[2], pool[3]}, pages_legend)});
}

ffi::Error Execute(Buffer pages, Buffer page, Buffer row, Buffer tokens, Result out,
                   bool head_major) {
  return Guarded([&] {
    if (ffi::Error error = CheckOperands(pages, page, row, tokens, *out, head_major);
        error.failure()) {
      return error;
    }
    const auto pool = pages.dimensions();
    const int64_t rows = pool[head_major ? 2 : 1];
    const int64_t heads = pool[head_major ? 1 : 2];
    // What lies together in a page: one head of a token, or all of them.
    const int64_t pieces = head_major ? heads : 1;
    const int64_t head_bytes = pool[3] * static_cast<int64_t>(ffi::ByteWidth(pages.element_type()));
    const int64_t piece_bytes = head_major ? head_bytes : heads * head_bytes;

    auto* const base = static_cast<std::byte*>(out->untyped_data());
    if (base != pages.untyped_data()) std::memcpy(base, pages.untyped_data(), pages.size_bytes());
    const auto* from = static_cast<const std::byte*>(tokens.untyped_data());
    const int32_t* const page_of = page.typed_data<int32_t>();
    const int32_t* const row_of = row.typed_data<int32_t>();
    for (size_t token = 0; token < page.element_count(); ++token) {
      const int64_t p = page_of[token], r = row_of[token];
      const bool kept = p >= 0 && p < pool[0] && r >= 0 && r < rows;
      for (int64_t piece = 0; piece < pieces; ++piece, from += piece_bytes) {
        if (!kept) continue;
        std::memcpy(base + ((p * pieces + piece) * rows + r) * piece_bytes, from, piece_bytes);
      }
    }
    return ffi::Error::Success();
  });
}

}  // namespace
}  // namespace jax_fa

XLA_FFI_DEFINE_HANDLER_SYMBOL(jax_fa_append_execute, jax_fa::Execute,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::AnyBuffer>()  // pages
                                  .Arg<xla::ffi::AnyBuffer>()  // page
                                  .Arg<xla::ffi::AnyBuffer>()  // row
                                  .Arg<xla::ffi::AnyBuffer>()  // new
                                  .Ret<xla::ffi::AnyBuffer>()  // out
                                  .Attr<bool>("hnd"));
