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

// A tag, so that Ctx<> gives an address within the XLA that calls, by the specialisation below.
struct XlaAddress {};

// Execute stages on a GPU enqueue on the given stream, allocate nothing on the device and read no
// contents, so they may be recorded and replayed; saying so is a choice of the build
// (CMakeLists.txt).
#if JAX_FA_COMMAND_BUFFER
constexpr std::initializer_list<ffi::Traits> kGpuTraits = {ffi::Traits::kCmdBufferCompatible};
#else
constexpr std::initializer_list<ffi::Traits> kGpuTraits = {};
#endif

}  // namespace
}  // namespace jax_fa

namespace xla::ffi {

template <>
struct CtxDecoding<jax_fa::XlaAddress> {
  using Type = const void*;

  static std::optional<Type> Decode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext*,
                                    DiagnosticEngine&) {
    return reinterpret_cast<const void*>(api->XLA_FFI_Stream_Get);
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
ffi::Error Initialize(const Place& place, Attributes attributes) {
  return Guarded([&] {
    std::string_view target_name;
    if (Status status = attributes.Read("target", &target_name).status(); !status.ok) {
      return InvalidUnlessOk(status);
    }
    std::unique_ptr<Runtime> runtime;
    const Target* target = nullptr;
    if (Status status = Open(place, target_name, &runtime, &target); !status.ok) {
      return InvalidUnlessOk(status);
    }
    return InternalUnlessOk(runtime->Load(*target));
  });
}

ffi::Error Attend(const AttentionOperation& operation, const Place& place,
                  ffi::RemainingArgs operands, ffi::RemainingRets results, Attributes attributes) {
  return Guarded([&] {
    AttentionProblem problem;
    std::string_view target_name;
    if (Status status = MakeProblem(operation, ToArrays(operands), ToArrays(results), attributes,
                                    &target_name, &problem);
        !status.ok) {
      return InvalidUnlessOk(status);
    }
    std::unique_ptr<Runtime> runtime;
    const Target* target = nullptr;
    if (Status status = Open(place, target_name, &runtime, &target); !status.ok) {
      return InvalidUnlessOk(status);
    }
    return InternalUnlessOk(LaunchAttention(*runtime, *target, problem));
  });
}

// The handlers of each platform. Those of ROCm take XLA's stream and device: where XLA gives none,
// decoding the call fails, and nothing is run elsewhere instead.

ffi::Error InitializeOnCpu(ffi::RemainingArgs, ffi::RemainingRets, Attributes attributes) {
  return Initialize(EmulatedPlace{}, attributes);
}

ffi::Error InitializeOnGpu(void* stream, int32_t ordinal, const void* xla, ffi::RemainingArgs,
                           ffi::RemainingRets, Attributes attributes) {
  return Initialize(GpuPlace{stream, ordinal, xla}, attributes);
}

template <const AttentionOperation& kOperation>
ffi::Error AttendOnCpu(ffi::RemainingArgs operands, ffi::RemainingRets results,
                       Attributes attributes) {
  return Attend(kOperation, EmulatedPlace{}, operands, results, attributes);
}

template <const AttentionOperation& kOperation>
ffi::Error AttendOnGpu(void* stream, int32_t ordinal, const void* xla, ffi::RemainingArgs operands,
                       ffi::RemainingRets results, Attributes attributes) {
  return Attend(kOperation, GpuPlace{stream, ordinal, xla}, operands, results, attributes);
}

ffi::Error AppendTokens(ffi::RemainingArgs operands, ffi::RemainingRets results,
                        Attributes attributes) {
  return Guarded(
      [&] { return InvalidUnlessOk(Append(ToArrays(operands), ToArrays(results), attributes)); });
}

template <ffi::ExecutionStage kStage>
auto BindOnCpu() {
  return ffi::Ffi::Bind<kStage>().RemainingArgs().RemainingRets().template Attrs<Attributes>();
}

template <ffi::ExecutionStage kStage>
auto BindOnGpu() {
  return ffi::Ffi::Bind<kStage>()
      .template Ctx<ffi::PlatformStream<void*>>()
      .template Ctx<ffi::DeviceOrdinal>()
      .template Ctx<XlaAddress>()
      .RemainingArgs()
      .RemainingRets()
      .template Attrs<Attributes>();
}

constexpr auto kInitialize = ffi::ExecutionStage::kInitialize;
constexpr auto kExecute = ffi::ExecutionStage::kExecute;

XLA_FFI_DEFINE_HANDLER(kCpuInitialize, InitializeOnCpu, BindOnCpu<kInitialize>());
XLA_FFI_DEFINE_HANDLER(kCpuFlash, AttendOnCpu<kFlash>, BindOnCpu<kExecute>());
XLA_FFI_DEFINE_HANDLER(kCpuVarlen, AttendOnCpu<kVarlen>, BindOnCpu<kExecute>());
XLA_FFI_DEFINE_HANDLER(kCpuPaged, AttendOnCpu<kPaged>, BindOnCpu<kExecute>());
XLA_FFI_DEFINE_HANDLER(kCpuAppend, AppendTokens, BindOnCpu<kExecute>());

XLA_FFI_DEFINE_HANDLER(kGpuInitialize, InitializeOnGpu, BindOnGpu<kInitialize>());
XLA_FFI_DEFINE_HANDLER(kGpuFlash, AttendOnGpu<kFlash>, BindOnGpu<kExecute>(), kGpuTraits);
XLA_FFI_DEFINE_HANDLER(kGpuVarlen, AttendOnGpu<kVarlen>, BindOnGpu<kExecute>(), kGpuTraits);
XLA_FFI_DEFINE_HANDLER(kGpuPaged, AttendOnGpu<kPaged>, BindOnGpu<kExecute>(), kGpuTraits);

}  // namespace

std::span<const Registration> Registrations() {
  // Platforms as JAX registers them: "gpu" would mean CUDA.
  constexpr const char* kCpu = "cpu";
  constexpr const char* kRocm = "ROCM";
  static const Registration kRegistrations[] = {
      {kCpu, "jax_fa_flash", kCpuInitialize, kCpuFlash},
      {kCpu, "jax_fa_varlen", kCpuInitialize, kCpuVarlen},
      {kCpu, "jax_fa_paged", kCpuInitialize, kCpuPaged},
      {kCpu, "jax_fa_append", nullptr, kCpuAppend},
      {kRocm, "jax_fa_flash", kGpuInitialize, kGpuFlash},
      {kRocm, "jax_fa_varlen", kGpuInitialize, kGpuVarlen},
      {kRocm, "jax_fa_paged", kGpuInitialize, kGpuPaged},
  };
  return kRegistrations;
}

}  // namespace jax_fa
