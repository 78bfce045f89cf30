#include "ffi/operands.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace jax_fa {
namespace {

// The type as StableHLO spells it.
std::string_view StableHloName(XLA_FFI_DataType dtype) {
  switch (dtype) {
    case XLA_FFI_DataType_PRED:
      return "i1";
    case XLA_FFI_DataType_S8:
      return "i8";
    case XLA_FFI_DataType_S16:
      return "i16";
    case XLA_FFI_DataType_S32:
      return "i32";
    case XLA_FFI_DataType_S64:
      return "i64";
    case XLA_FFI_DataType_U8:
      return "u8";
    case XLA_FFI_DataType_U16:
      return "u16";
    case XLA_FFI_DataType_U32:
      return "u32";
    case XLA_FFI_DataType_U64:
      return "u64";
    case XLA_FFI_DataType_F16:
      return "f16";
    case XLA_FFI_DataType_BF16:
      return "bf16";
    case XLA_FFI_DataType_F32:
      return "f32";
    case XLA_FFI_DataType_F64:
      return "f64";
    default:
      return "another type";
  }
}

std::vector<XLA_FFI_DataType> AllowedTypes(ElementType type, XLA_FFI_DataType first) {
  switch (type) {
    case ElementType::kAny:
      return {};
    case ElementType::kHalf:
      return {XLA_FFI_DataType_BF16, XLA_FFI_DataType_F16};
    case ElementType::kAsFirst:
      return {first};
    case ElementType::kInt32:
      return {XLA_FFI_DataType_S32};
    case ElementType::kFloat32:
      return {XLA_FFI_DataType_F32};
    case ElementType::kByte:
      return {XLA_FFI_DataType_U8};
  }
  return {};
}

// A shape as errors print it: "[2, 64, 8, 128]".
std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

// The dimensions of a legend: "B" and "n + 1" of "[B, n + 1]".
std::vector<std::string_view> Dimensions(std::string_view legend) {
  std::vector<std::string_view> dimensions;
  legend = legend.substr(1, legend.size() - 2);
  while (!legend.empty()) {
    const size_t end = std::min(legend.find(", "), legend.size());
    dimensions.push_back(legend.substr(0, end));
    legend.remove_prefix(std::min(end + 2, legend.size()));
  }
  return dimensions;
}

}  // namespace

Status MustBe(std::string_view name, std::string_view expected, std::string_view received) {
  std::string text(name);
  text.append(" must be ").append(expected).append("; got ").append(received);
  return Status::Error(std::move(text));
}

int64_t Sizes::operator[](std::string_view name) const {
  const auto found = std::ranges::find(known_, name, &std::pair<std::string_view, int64_t>::first);
  return found != known_.end() ? found->second : 0;
}

int64_t Sizes::Resolve(std::string_view dimension, int64_t received) {
  int64_t number = 0;
  const char* const end = dimension.data() + dimension.size();
  if (std::from_chars(dimension.data(), end, number).ptr == end) return number;

  constexpr std::string_view kOneMore = " + 1";
  const int64_t more = dimension.ends_with(kOneMore) ? 1 : 0;
  if (more != 0) dimension.remove_suffix(kOneMore.size());
  const auto found =
      std::ranges::find(known_, dimension, &std::pair<std::string_view, int64_t>::first);
  if (found != known_.end()) return found->second + more;
  if (received < more) return -1;
  known_.emplace_back(dimension, received - more);
  return received;
}

bool IsAbsent(const Operand& operand, const Array& array) {
  return operand.optional && array.shape.size() == 1 && array.shape[0] == 0;
}

Status CheckType(const Operand& operand, const Array& array, XLA_FFI_DataType first) {
  const auto allowed = AllowedTypes(operand.type, first);
  if (!allowed.empty() && std::ranges::find(allowed, array.dtype) == allowed.end()) {
    std::string expected;
    for (const XLA_FFI_DataType dtype : allowed) {
      if (!expected.empty()) expected += " or ";
      expected += StableHloName(dtype);
    }
    return MustBe(operand.name, expected, StableHloName(array.dtype));
  }
  if (array.shape.size() != Dimensions(operand.legend).size() && !IsAbsent(operand, array)) {
    const std::string expected = std::string(operand.legend) + (operand.optional ? " or [0]" : "");
    return MustBe(operand.name, expected, ShapeText(array.shape));
  }
  return Status::Ok();
}

Status CheckShape(const Operand& operand, const Array& array, Sizes* sizes) {
  if (IsAbsent(operand, array)) return Status::Ok();
  std::vector<int64_t> expected;
  for (const std::string_view dimension : Dimensions(operand.legend)) {
    expected.push_back(sizes->Resolve(dimension, array.shape[expected.size()]));
  }
  if (std::ranges::equal(expected, array.shape)) return Status::Ok();
  if (std::ranges::find(expected, -1) != expected.end()) {
    return MustBe(operand.name, operand.legend, ShapeText(array.shape));
  }
  return MustBe(operand.name, std::string(operand.legend) + " = " + ShapeText(expected),
                ShapeText(array.shape));
}

}  // namespace jax_fa
