#include "ffi/append.h"

#include <cstddef>
#include <cstring>
#include <string>

namespace jax_fa {

Status Append(std::span<const Array> operands, std::span<const Array> results,
              Attributes attributes) {
  bool heads_first = false;
  if (Status status = attributes.Read("hnd", &heads_first).Finish(); !status.ok) return status;
  const char* const pool = heads_first ? "[P, K, page, H]" : "[P, page, K, H]";
  const Operand described[] = {
      {.name = "pages", .legend = pool, .type = ElementType::kAny},
      {.name = "page", .legend = "[B, T]", .type = ElementType::kInt32},
      {.name = "row", .legend = "[B, T]", .type = ElementType::kInt32},
      {.name = "new", .legend = "[B, T, K, H]", .type = ElementType::kAsFirst},
      {.name = "out", .legend = pool, .type = ElementType::kAsFirst},
  };
  if (operands.size() != 4 || results.size() != 1) {
    return MustBe("the operands and results", "4 and 1",
                  std::to_string(operands.size()) + " and " + std::to_string(results.size()));
  }
  const Array pages = operands[0], page = operands[1], row = operands[2], tokens = operands[3];
  const Array out = results[0];
  // The new tokens tell the sizes B and T, the pages tell the others, so these two come first.
  const std::pair<int, Array> order[] = {{0, pages}, {3, tokens}, {1, page}, {2, row}, {4, out}};
  for (const auto& [place, array] : order) {
    if (Status status = CheckType(described[place], array, pages.dtype); !status.ok) return status;
  }
  Sizes sizes;
  for (const auto& [place, array] : order) {
    if (Status status = CheckShape(described[place], array, &sizes); !status.ok) return status;
  }

  const int64_t rows = sizes["page"], heads = sizes["K"];
  const int64_t token_count = sizes["B"] * sizes["T"];
  if (token_count == 0 || heads == 0 || sizes["H"] == 0) {
    if (out.data != pages.data) std::memcpy(out.data, pages.data, pages.bytes);
    return Status::Ok();
  }
  // A piece of a token lies together in a page: one head with heads_first, else all of them.
  const int64_t pieces = heads_first ? heads : 1;
  const int64_t piece_bytes = static_cast<int64_t>(tokens.bytes) / (token_count * pieces);

  auto* const base = static_cast<std::byte*>(out.data);
  if (base != pages.data) std::memcpy(base, pages.data, pages.bytes);
  const auto* from = static_cast<const std::byte*>(tokens.data);
  const auto* const page_of = static_cast<const int32_t*>(page.data);
  const auto* const row_of = static_cast<const int32_t*>(row.data);
  for (int64_t token = 0; token < token_count; ++token) {
    const int64_t p = page_of[token], r = row_of[token];
    const bool kept = p >= 0 && p < sizes["P"] && r >= 0 && r < rows;
    for (int64_t piece = 0; piece < pieces; ++piece, from += piece_bytes) {
      if (!kept) continue;
      std::memcpy(base + ((p * pieces + piece) * rows + r) * piece_bytes, from,
                  static_cast<size_t>(piece_bytes));
    }
  }
  return Status::Ok();
}

}  // namespace jax_fa
