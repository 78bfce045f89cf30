// Operand checks of the FFI handlers: each gives ffi::Error text that names the operand, what it
// must be and what it was. The Python side checks first and better; these keep a wrong direct call
// from touching memory. Nothing is thrown across XLA's boundary.
#ifndef JAX_FA_FFI_CHECKS_H_
#define JAX_FA_FFI_CHECKS_H_

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>

#include "runtime/runtime.h"
#include "xla/ffi/api/ffi.h"

namespace jax_fa {

namespace ffi = ::xla::ffi;

// "bf16", "f32", ... as StableHLO spells them.
std::string_view DataTypeName(ffi::DataType dtype);

// "[2, 64, 8, 128]"
std::string ShapeText(ffi::AnyBuffer::Dimensions dimensions);

// The dtype is one of `allowed`.
ffi::Error CheckDtype(std::string_view name, const ffi::AnyBuffer& buffer,
                      std::initializer_list<ffi::DataType> allowed);

// The rank is `legend`'s number of dimensions, e.g. "[B, T, N, H]" has 4.
ffi::Error CheckRank(std::string_view name, const ffi::AnyBuffer& buffer, size_t rank,
                     std::string_view legend);

// The shape is exactly `expected`.
ffi::Error CheckShape(std::string_view name, const ffi::AnyBuffer& buffer,
                      std::initializer_list<int64_t> expected, std::string_view legend);

// InvalidArgument "<name> must be <expected>; got <received>".
ffi::Error MustBe(std::string_view name, std::string_view expected, std::string_view received);

// The first of `errors` that is one.
ffi::Error FirstError(std::initializer_list<ffi::Error> errors);

inline ffi::Error ToError(const Status& status) {
  return status.ok ? ffi::Error::Success() : ffi::Error::Internal(status.message);
}

// Runs `body() -> ffi::Error`; an exception becomes an error.
template <class Body>
ffi::Error Guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    return ffi::Error::Internal(error.what());
  } catch (...) {
    return ffi::Error::Internal("unknown exception");
  }
}

}  // namespace jax_fa

#endif  // JAX_FA_FFI_CHECKS_H_
