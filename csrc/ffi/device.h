// Which runtime a handler's call belongs to. One handler serves platforms "cpu" and "ROCM": a call
// with a GPU stream is HIP's, one without is the emulator's.
#ifndef JAX_FA_FFI_DEVICE_H_
#define JAX_FA_FFI_DEVICE_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

#include "runtime/runtime.h"
#include "xla/ffi/api/ffi.h"

namespace jax_fa {

// The GPU stream and device ordinal of a call, or neither.
struct CallDevice {
  bool on_gpu = false;
  void* stream = nullptr;
  int32_t ordinal = 0;
};

// Tag for Ctx<>.
struct CallDeviceContext {};

// Parses the attribute `target` (a target's name, or "any": whichever of them the device is), makes
// the call's runtime and tells the target; the error names what does not fit.
Status OpenDevice(const CallDevice& device, std::string_view target_name,
                  std::unique_ptr<Runtime>* runtime, const Target** target);

}  // namespace jax_fa

namespace xla::ffi {

template <>
struct CtxDecoding<jax_fa::CallDeviceContext> {
  using Type = jax_fa::CallDevice;

  // Off a GPU XLA answers with an error, which is no failure here.
  static std::optional<Type> Decode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* context,
                                    DiagnosticEngine& diagnostic) {
    XLA_FFI_Stream_Get_Args args = {};
    args.struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE;
    args.ctx = context;
    if (XLA_FFI_Error* error = api->XLA_FFI_Stream_Get(&args)) {
      internal::DestroyError(api, error);
      return Type{};
    }
    const std::optional<int32_t> ordinal =
        CtxDecoding<DeviceOrdinal>::Decode(api, context, diagnostic);
    if (!ordinal) return std::nullopt;
    return Type{.on_gpu = true, .stream = args.stream, .ordinal = *ordinal};
  }
};

}  // namespace xla::ffi

namespace jax_fa {

// The initialize stage, the same for every op: loads the code object of the attribute `target`.
// Loading is not allowed while a stream is captured, which may happen around the execute stage.
::xla::ffi::Error LoadModule(CallDevice device, ::xla::ffi::RemainingArgs,
                             ::xla::ffi::RemainingRets, ::xla::ffi::Dictionary attributes);

inline auto InitializeBinding() {
  return ::xla::ffi::Ffi::Bind<::xla::ffi::ExecutionStage::kInitialize>()
      .Ctx<CallDeviceContext>()
      .RemainingArgs()
      .RemainingRets()
      .Attrs();
}

// Execute stages enqueue on the given stream, allocate nothing and read no contents, so they may be
// recorded and replayed; saying so is a choice of the build (CMakeLists.txt).
#if JAX_FA_COMMAND_BUFFER
inline constexpr std::initializer_list<::xla::ffi::Traits> kExecuteTraits = {
    ::xla::ffi::Traits::kCmdBufferCompatible};
#else
inline constexpr std::initializer_list<::xla::ffi::Traits> kExecuteTraits = {};
#endif

}  // namespace jax_fa

#endif  // JAX_FA_FFI_DEVICE_H_
