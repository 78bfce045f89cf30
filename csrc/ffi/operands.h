// Operands and results of a custom call, as they come and as they must be. What a legend such as
// "[B, T, N, H]" says is checked here for every operation: the rank, and that the same letter is
// the same size wherever it stands.
//
// Errors name the operand, what it must be and what it was. The Python side checks first and
// better; these keep a wrong direct call from touching memory.
#ifndef JAX_FA_FFI_OPERANDS_H_
#define JAX_FA_FFI_OPERANDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/runtime.h"
#include "xla/ffi/api/c_api.h"

namespace jax_fa {

// An operand or result as it came.
struct Array {
  XLA_FFI_DataType dtype;
  std::span<const int64_t> shape;
  void* data;
  size_t bytes;
};

enum class ElementType { kAny, kHalf, kAsFirst, kInt32, kFloat32, kByte };

// How one operand or result must be.
struct Operand {
  std::string_view name;
  std::string_view legend;  // "[B, T, N, H]"; a dimension is a name, a name + 1 or a number
  ElementType type;         // kHalf: bf16 or f16; kAsFirst: that of the first operand
  bool optional = false;    // [0] stands for absent
};

// Sizes by the names that legends give them.
class Sizes {
 public:
  // 0 where no legend had the name.
  int64_t operator[](std::string_view name) const;
  // The size of a dimension as a legend spells it ("n + 1"); names of unknown size become known
  // from `received`, which gives -1 where no size fits.
  int64_t Resolve(std::string_view dimension, int64_t received);

 private:
  std::vector<std::pair<std::string_view, int64_t>> known_;
};

// Element type and rank. `first` is the type of the first operand.
Status CheckType(const Operand& operand, const Array& array, XLA_FFI_DataType first);

// The shape, once types and ranks are known to be right. An absent operand tells no size.
Status CheckShape(const Operand& operand, const Array& array, Sizes* sizes);

bool IsAbsent(const Operand& operand, const Array& array);

// "<name> must be <expected>; got <received>"
Status MustBe(std::string_view name, std::string_view expected, std::string_view received);

}  // namespace jax_fa

#endif  // JAX_FA_FFI_OPERANDS_H_
