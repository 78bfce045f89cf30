#include "ffi/checks.h"

#include <algorithm>

namespace jax_fa {

std::string_view DataTypeName(ffi::DataType dtype) {
  switch (dtype) {
    case ffi::DataType::PRED:
      return "i1";
    case ffi::DataType::S8:
      return "i8";
    case ffi::DataType::S16:
      return "i16";
    case ffi::DataType::S32:
      return "i32";
    case ffi::DataType::S64:
      return "i64";
    case ffi::DataType::U8:
      return "u8";
    case ffi::DataType::U16:
      return "u16";
    case ffi::DataType::U32:
      return "u32";
    case ffi::DataType::U64:
      return "u64";
    case ffi::DataType::F16:
      return "f16";
    case ffi::DataType::BF16:
      return "bf16";
    case ffi::DataType::F32:
      return "f32";
    case ffi::DataType::F64:
      return "f64";
    default:
      return "another type";
  }
}

namespace {

template <class Range>
std::string ListText(const Range& values) {
  std::string text = "[";
  for (const int64_t value : values) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(value);
  }
  return text + "]";
}

}  // namespace

std::string ShapeText(ffi::AnyBuffer::Dimensions dimensions) { return ListText(dimensions); }

ffi::Error MustBe(std::string_view name, std::string_view expected, std::string_view received) {
  std::string text(name);
  text.append(" must be ").append(expected).append("; got ").append(received);
  return ffi::Error::InvalidArgument(std::move(text));
}

ffi::Error CheckDtype(std::string_view name, const ffi::AnyBuffer& buffer,
                      std::initializer_list<ffi::DataType> allowed) {
  std::string expected;
  for (const ffi::DataType dtype : allowed) {
    if (dtype == buffer.element_type()) return ffi::Error::Success();
    if (!expected.empty()) expected += " or ";
    expected += DataTypeName(dtype);
  }
  return MustBe(name, expected, DataTypeName(buffer.element_type()));
}

ffi::Error CheckRank(std::string_view name, const ffi::AnyBuffer& buffer, size_t rank,
                     std::string_view legend) {
  if (buffer.dimensions().size() == rank) return ffi::Error::Success();
  return MustBe(name, legend, ShapeText(buffer.dimensions()));
}

ffi::Error CheckShape(std::string_view name, const ffi::AnyBuffer& buffer,
                      std::initializer_list<int64_t> expected, std::string_view legend) {
  const auto dimensions = buffer.dimensions();
  if (std::equal(dimensions.begin(), dimensions.end(), expected.begin(), expected.end())) {
    return ffi::Error::Success();
  }
  return MustBe(name, std::string(legend) + " = " + ListText(expected), ShapeText(dimensions));
}

ffi::Error FirstError(std::initializer_list<ffi::Error> errors) {
  for (const ffi::Error& error : errors) {
    if (error.failure()) return error;
  }
  return ffi::Error::Success();
}

}  // namespace jax_fa
