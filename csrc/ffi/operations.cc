// What flash, varlen and paged attention take, in the order of the custom calls' operands.
#include <string>

#include "ffi/attention.h"

namespace jax_fa {
namespace {

AttentionOperand Half(Role role, std::string_view name, std::string_view legend) {
  const auto type = role == Role::kQuery ? ElementType::kHalf : ElementType::kAsFirst;
  return {role, {.name = name, .legend = legend, .type = type}};
}

AttentionOperand Indices(Role role, std::string_view name, std::string_view legend) {
  return {role, {.name = name, .legend = legend, .type = ElementType::kInt32}};
}

AttentionOperand OptionalIndices(Role role, std::string_view name, std::string_view legend) {
  return {role, {.name = name, .legend = legend, .type = ElementType::kInt32, .optional = true}};
}

// The operands, followed by the results, which all operations have in common.
std::vector<AttentionOperand> WithResults(std::vector<AttentionOperand> operands,
                                          std::string_view out_legend,
                                          std::string_view lse_legend) {
  operands.push_back(Half(Role::kOut, "out", out_legend));
  operands.push_back(
      {Role::kLse, {.name = "lse", .legend = lse_legend, .type = ElementType::kFloat32}});
  operands.push_back(
      {Role::kWorkspace, {.name = "workspace", .legend = "[W]", .type = ElementType::kByte}});
  return operands;
}

void SetHeads(const Sizes& sizes, AttentionProblem* problem) {
  problem->num_heads = sizes["N"];
  problem->num_kv_heads = sizes["K"];
  problem->head_dim = sizes["H"];
}

std::vector<AttentionOperand> DescribeFlash(std::span<const Array>, const AttentionProblem&) {
  return WithResults(
      {Half(Role::kQuery, "query", "[B, T, N, H]"), Half(Role::kKey, "key", "[B, S, K, H]"),
       Half(Role::kValue, "value", "[B, S, K, H]"),
       OptionalIndices(Role::kQueryLengths, "query_lengths", "[B]"),
       OptionalIndices(Role::kKeyLengths, "key_lengths", "[B]")},
      "[B, T, N, H]", "[B, T, N]");
}

Status SetFlashSizes(const Sizes& sizes, AttentionProblem* problem) {
  SetHeads(sizes, problem);
  problem->batch = sizes["B"];
  problem->seqlen_q = sizes["T"];
  problem->seqlen_k = sizes["S"];
  return Status::Ok();
}

void ReadVarlen(Attributes* attributes, AttentionProblem* problem) {
  attributes->Read("grid_sequences", &problem->grid_sequences);
}

std::vector<AttentionOperand> DescribeVarlen(std::span<const Array>, const AttentionProblem&) {
  return WithResults(
      {Half(Role::kQuery, "query", "[tq, N, H]"), Half(Role::kKey, "key", "[tk, K, H]"),
       Half(Role::kValue, "value", "[tk, K, H]"),
       Indices(Role::kCuSeqlensQ, "cu_seqlens_q", "[n + 1]"),
       Indices(Role::kCuSeqlensK, "cu_seqlens_k", "[n + 1]"),
       OptionalIndices(Role::kNumSequences, "num_sequences", "[1]")},
      "[tq, N, H]", "[tq, N]");
}

Status SetVarlenSizes(const Sizes& sizes, AttentionProblem* problem) {
  SetHeads(sizes, problem);
  problem->batch = sizes["n"];
  problem->seqlen_q = sizes["tq"];
  problem->seqlen_k = sizes["tk"];
  if (problem->grid_sequences < 0 || problem->grid_sequences > problem->batch) {
    return MustBe("grid_sequences", "from 0 to " + std::to_string(problem->batch),
                  std::to_string(problem->grid_sequences));
  }
  return Status::Ok();
}

void ReadPaged(Attributes* attributes, AttentionProblem* problem) {
  attributes->Read("hnd", &problem->heads_first);
}

// Where in a pool's shape the page size and the head size stand.
size_t PageSizeAt(const AttentionProblem& problem) { return problem.heads_first ? 2 : 1; }
constexpr size_t kHeadDimAt = 3;

std::vector<AttentionOperand> DescribePaged(std::span<const Array> operands,
                                            const AttentionProblem& problem) {
  const std::string_view pool = problem.heads_first ? "[P, K, page, H]" : "[P, page, K, H]";
  const AttentionOperand offsets = OptionalIndices(Role::kCuSeqlensQ, "cu_seqlens_q", "[B + 1]");
  const bool packed = !IsAbsent(offsets.operand, operands[6]);
  const std::string_view query = packed ? "[tq, N, H]" : "[B, T, N, H]";
  return WithResults(
      {Half(Role::kQuery, "query", query), Half(Role::kKey, "k_pages", pool),
       Half(Role::kValue, "v_pages", pool), Indices(Role::kBlockTables, "block_tables", "[B, M]"),
       Indices(Role::kKeyLengths, "key_lengths", "[B]"),
       OptionalIndices(Role::kQueryLengths, "query_lengths", "[B]"), offsets},
      query, packed ? "[tq, N]" : "[B, T, N]");
}

Status CheckPaged(std::span<const Array> operands, const AttentionProblem& problem) {
  const auto query = operands[0].shape, pool = operands[1].shape;
  if (pool[PageSizeAt(problem)] < 1) return MustBe("the page size of k_pages", "1 or more", "0");
  if (pool[kHeadDimAt] != query.back()) {
    return MustBe("the head size of k_pages", "that of query", std::to_string(pool[kHeadDimAt]));
  }
  return Status::Ok();
}

Status SetPagedSizes(const Sizes& sizes, AttentionProblem* problem) {
  SetHeads(sizes, problem);
  problem->batch = problem->grid_sequences = sizes["B"];
  problem->seqlen_q = problem->packed() ? sizes["tq"] : sizes["T"];
  problem->num_pages = sizes["P"];
  problem->page_size = sizes["page"];
  problem->max_pages = sizes["M"];
  return Status::Ok();
}

}  // namespace

const AttentionOperation kFlash = {.num_operands = 5,
                                   .read = nullptr,
                                   .describe = &DescribeFlash,
                                   .check = nullptr,
                                   .set_sizes = &SetFlashSizes};
const AttentionOperation kVarlen = {.num_operands = 6,
                                    .read = &ReadVarlen,
                                    .describe = &DescribeVarlen,
                                    .check = nullptr,
                                    .set_sizes = &SetVarlenSizes};
const AttentionOperation kPaged = {.num_operands = 7,
                                   .read = &ReadPaged,
                                   .describe = &DescribePaged,
                                   .check = &CheckPaged,
                                   .set_sizes = &SetPagedSizes};

}  // namespace jax_fa
