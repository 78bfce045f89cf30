#include "ffi/attributes.h"

#include <cstring>
#include <utility>

namespace jax_fa {
namespace {

std::string_view NameAt(const XLA_FFI_Attrs* attributes, int64_t place) {
  return {attributes->names[place]->ptr, attributes->names[place]->len};
}

// The type as XLA spells it.
std::string TypeName(XLA_FFI_DataType dtype) {
  switch (dtype) {
    case XLA_FFI_DataType_PRED:
      return "PRED";
    case XLA_FFI_DataType_S32:
      return "S32";
    case XLA_FFI_DataType_S64:
      return "S64";
    case XLA_FFI_DataType_F32:
      return "F32";
    case XLA_FFI_DataType_F64:
      return "F64";
    default:
      return "another type";
  }
}

std::string TypeNameAt(const XLA_FFI_Attrs* attributes, int64_t place) {
  switch (attributes->types[place]) {
    case XLA_FFI_AttrType_SCALAR:
      return TypeName(static_cast<const XLA_FFI_Scalar*>(attributes->attrs[place])->dtype);
    case XLA_FFI_AttrType_STRING:
      return "a string";
    case XLA_FFI_AttrType_ARRAY:
      return "an array";
    case XLA_FFI_AttrType_DICTIONARY:
      return "a dictionary";
  }
  return "another type";
}

}  // namespace

Attributes::Attributes(const XLA_FFI_Attrs* attributes)
    : attributes_(attributes), read_(static_cast<size_t>(attributes->size)) {}

Attributes& Attributes::Read(std::string_view name, bool* value) {
  return ReadScalar(name, XLA_FFI_DataType_PRED, value);
}

Attributes& Attributes::Read(std::string_view name, int64_t* value) {
  return ReadScalar(name, XLA_FFI_DataType_S64, value);
}

Attributes& Attributes::Read(std::string_view name, float* value) {
  return ReadScalar(name, XLA_FFI_DataType_F32, value);
}

Attributes& Attributes::Read(std::string_view name, std::string_view* value) {
  const int64_t place = Find(name);
  if (place < 0) return *this;
  if (attributes_->types[place] != XLA_FFI_AttrType_STRING) {
    Fail("attribute " + std::string(name) + ": expected a string but got " +
         TypeNameAt(attributes_, place));
    return *this;
  }
  const auto* const text = static_cast<const XLA_FFI_ByteSpan*>(attributes_->attrs[place]);
  *value = {text->ptr, text->len};
  return *this;
}

template <class T>
Attributes& Attributes::ReadScalar(std::string_view name, XLA_FFI_DataType dtype, T* value) {
  const int64_t place = Find(name);
  if (place < 0) return *this;
  const auto* const scalar = static_cast<const XLA_FFI_Scalar*>(attributes_->attrs[place]);
  if (attributes_->types[place] != XLA_FFI_AttrType_SCALAR || scalar->dtype != dtype) {
    Fail("attribute " + std::string(name) + ": expected " + TypeName(dtype) + " but got " +
         TypeNameAt(attributes_, place));
    return *this;
  }
  std::memcpy(value, scalar->value, sizeof(T));
  return *this;
}

int64_t Attributes::Find(std::string_view name) {
  for (int64_t place = 0; place < attributes_->size; ++place) {
    if (NameAt(attributes_, place) != name) continue;
    read_[static_cast<size_t>(place)] = true;
    return place;
  }
  Fail("the attribute " + std::string(name) + " is missing");
  return -1;
}

void Attributes::Fail(std::string text) {
  if (status_.ok) status_ = Status::Error(std::move(text));
}

Status Attributes::Finish() const {
  if (!status_.ok) return status_;
  for (int64_t place = 0; place < attributes_->size; ++place) {
    if (!read_[static_cast<size_t>(place)]) {
      return Status::Error("there is no attribute " + std::string(NameAt(attributes_, place)));
    }
  }
  return Status::Ok();
}

}  // namespace jax_fa
