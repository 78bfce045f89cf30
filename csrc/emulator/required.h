// A fact that a structure cannot be made without.
#ifndef JAX_FA_EMULATOR_REQUIRED_H_
#define JAX_FA_EMULATOR_REQUIRED_H_

#include <concepts>
#include <utility>

namespace jax_fa::emulator {

// It has no value of its own: an aggregate that leaves one of these out does not compile, and the
// compiler names the member.
template <class T>
class Required {
 public:
  template <std::convertible_to<T> U>
  constexpr Required(U&& value)  // NOLINT(google-explicit-constructor): it stands for its value
      : value_(std::forward<U>(value)) {}
  constexpr operator const T&() const { return value_; }  // NOLINT(google-explicit-constructor)
  constexpr const T& operator*() const { return value_; }
  constexpr const T* operator->() const { return &value_; }

 private:
  T value_;
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_REQUIRED_H_
