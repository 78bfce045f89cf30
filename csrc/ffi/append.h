// New tokens into the pages of a pool, in place, on CPUs.
#ifndef JAX_FA_FFI_APPEND_H_
#define JAX_FA_FFI_APPEND_H_

#include <span>

#include "ffi/attributes.h"
#include "ffi/operands.h"

namespace jax_fa {

// The call of jax_fa_append: operands pages, page, row, new; result out.
Status Append(std::span<const Array> operands, std::span<const Array> results,
              Attributes attributes);

}  // namespace jax_fa

#endif  // JAX_FA_FFI_APPEND_H_
