// The one file that sees XLA's C++ headers, which take longest to compile: it unpacks a call, and
// turns a status into XLA's error. Nothing is thrown across XLA's boundary.
#include "ffi/handlers.h"

#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ffi/append.h"
#include "ffi/attention.h"
#include "ffi/device.h"
#include "launch/attention.h"
#include "xla/ffi/api/ffi.h"

namespace jax_fa {
namespace {

namespace ffi = ::xla::ffi;

// A tag, so that Ctx<> gives a CallDevice by the specialisation below.
struct CallDeviceContext {};

// Execute stages enqueue on the given stream, allocate nothing on the device and read no contents,
// so they may be recorded and replayed; saying so is a choice of the build (CMakeLists.txt).
#if JAX_FA_COMMAND_BUFFER
constexpr std::initializer_list<ffi::Traits> kExecuteTraits = {ffi::Traits::kCmdBufferCompatible};
#else
constexpr std::initializer_list<ffi::Traits> kExecuteTraits = {};
#endif

}  // namespace
}  // namespace jax_fa

namespace xla::ffi {

template <>
struct CtxDecoding<jax_fa::CallDeviceContext> {
  using Type = jax_fa::CallDevice;

  // A call on a CPU has no stream: XLA answers with an error, which is no failure here.
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

template <>
struct AttrDecoding<jax_fa::Attributes> {
  using Type = jax_fa::Attributes;

  static std::optional<Type> Decode(XLA_FFI_AttrType, void* attributes, DiagnosticEngine&) {
    return Type(static_cast<const XLA_FFI_Attrs*>(attributes));
  }
};

}  // namespace xla::ffi

namespace jax_fa {
namespace {

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

ffi::Error InvalidUnlessOk(const Status& status) {
  return status.ok ? ffi::Error::Success() : ffi::Error::InvalidArgument(status.message);
}

ffi::Error InternalUnlessOk(const Status& status) {
  return status.ok ? ffi::Error::Success() : ffi::Error::Internal(status.message);
}

Array ToArray(const ffi::AnyBuffer& buffer) {
  const auto shape = buffer.dimensions();
  return {.dtype = static_cast<XLA_FFI_DataType>(buffer.element_type()),
          .shape = {shape.begin(), shape.size()},
          .data = buffer.untyped_data(),
          .bytes = buffer.size_bytes()};
}

std::vector<Array> ToArrays(const ffi::RemainingArgs& operands) {
  std::vector<Array> arrays;
  for (size_t i = 0; i < operands.size(); ++i) {
    arrays.push_back(ToArray(operands.get<ffi::AnyBuffer>(i).value()));
  }
  return arrays;
}

std::vector<Array> ToArrays(const ffi::RemainingRets& results) {
  std::vector<Array> arrays;
  for (size_t i = 0; i < results.size(); ++i) {
    arrays.push_back(ToArray(*results.get<ffi::AnyBuffer>(i).value()));
  }
  return arrays;
}

// The initialize stage of every operation: loads the code object of the attribute `target`.
// Loading is not allowed while a stream is captured, which may happen around the execute stage.
ffi::Error Initialize(CallDevice device, ffi::RemainingArgs, ffi::RemainingRets,
                      Attributes attributes) {
  return Guarded([&] {
    std::string_view target_name;
    if (Status status = attributes.Read("target", &target_name).status(); !status.ok) {
      return InvalidUnlessOk(status);
    }
    std::unique_ptr<Runtime> runtime;
    const Target* target = nullptr;
    if (Status status = OpenDevice(device, target_name, &runtime, &target); !status.ok) {
      return InvalidUnlessOk(status);
    }
    return InternalUnlessOk(runtime->Load(*target));
  });
}

template <const AttentionOperation& kOperation>
ffi::Error Attend(CallDevice device, ffi::RemainingArgs operands, ffi::RemainingRets results,
                  Attributes attributes) {
  return Guarded([&] {
    AttentionProblem problem;
    std::string_view target_name;
    if (Status status = MakeProblem(kOperation, ToArrays(operands), ToArrays(results), attributes,
                                    &target_name, &problem);
        !status.ok) {
      return InvalidUnlessOk(status);
    }
    std::unique_ptr<Runtime> runtime;
    const Target* target = nullptr;
    if (Status status = OpenDevice(device, target_name, &runtime, &target); !status.ok) {
      return InvalidUnlessOk(status);
    }
    return InternalUnlessOk(LaunchAttention(*runtime, *target, problem));
  });
}

ffi::Error AppendTokens(ffi::RemainingArgs operands, ffi::RemainingRets results,
                        Attributes attributes) {
  return Guarded(
      [&] { return InvalidUnlessOk(Append(ToArrays(operands), ToArrays(results), attributes)); });
}

auto BindAttention() {
  return ffi::Ffi::Bind()
      .Ctx<CallDeviceContext>()
      .RemainingArgs()
      .RemainingRets()
      .Attrs<Attributes>();
}

XLA_FFI_DEFINE_HANDLER(kInitialize, Initialize,
                       ffi::Ffi::Bind<ffi::ExecutionStage::kInitialize>()
                           .Ctx<CallDeviceContext>()
                           .RemainingArgs()
                           .RemainingRets()
                           .Attrs<Attributes>());
XLA_FFI_DEFINE_HANDLER(kFlashExecute, Attend<kFlash>, BindAttention(), kExecuteTraits);
XLA_FFI_DEFINE_HANDLER(kVarlenExecute, Attend<kVarlen>, BindAttention(), kExecuteTraits);
XLA_FFI_DEFINE_HANDLER(kPagedExecute, Attend<kPaged>, BindAttention(), kExecuteTraits);
XLA_FFI_DEFINE_HANDLER(kAppendExecute, AppendTokens,
                       ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attrs<Attributes>());

}  // namespace

std::span<const Registration> Registrations() {
  static const Registration kRegistrations[] = {
      {"jax_fa_flash", kInitialize, kFlashExecute},
      {"jax_fa_varlen", kInitialize, kVarlenExecute},
      {"jax_fa_paged", kInitialize, kPagedExecute},
      {"jax_fa_append", nullptr, kAppendExecute},
  };
  return kRegistrations;
}

}  // namespace jax_fa
