// Which of the loaded files is the HIP library that XLA uses.
#ifndef JAX_FA_RUNTIME_HIP_LIBRARY_H_
#define JAX_FA_RUNTIME_HIP_LIBRARY_H_

#include <string>

#include "runtime/runtime.h"

namespace jax_fa {

// The file of the HIP library, as FindHipApi() looks for it; an error says what is loaded instead,
// and what to do.
Status FindHipLibrary(const void* xla, std::string* file);

}  // namespace jax_fa

#endif  // JAX_FA_RUNTIME_HIP_LIBRARY_H_
