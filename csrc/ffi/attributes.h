// The attributes of a custom call, read by name. XLA's own decoding into a structure would list the
// common options once for each operation, and its errors do not name the attribute.
#ifndef JAX_FA_FFI_ATTRIBUTES_H_
#define JAX_FA_FFI_ATTRIBUTES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/runtime.h"
#include "xla/ffi/api/c_api.h"

namespace jax_fa {

class Attributes {
 public:
  explicit Attributes(const XLA_FFI_Attrs* attributes);

  // Reads one attribute; a missing one or one of another type is an error of status().
  Attributes& Read(std::string_view name, bool* value);
  Attributes& Read(std::string_view name, int64_t* value);
  Attributes& Read(std::string_view name, float* value);
  Attributes& Read(std::string_view name, std::string_view* value);

  // The first error of those that were read.
  const Status& status() const { return status_; }
  // The first error; one too when there are attributes that nobody has read.
  Status Finish() const;

 private:
  template <class T>
  Attributes& ReadScalar(std::string_view name, XLA_FFI_DataType dtype, T* value);
  // The attribute's place, -1 when it is missing.
  int64_t Find(std::string_view name);
  void Fail(std::string text);

  const XLA_FFI_Attrs* attributes_;
  std::vector<bool> read_;
  Status status_;
};

}  // namespace jax_fa

#endif  // JAX_FA_FFI_ATTRIBUTES_H_
