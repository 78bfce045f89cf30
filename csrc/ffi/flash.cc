#include "ffi/flash.h"

#include <memory>
#include <string>

#include "ffi/checks.h"
#include "ffi/device.h"
#include "launch/flash.h"

namespace jax_fa {
namespace {

using Buffer = ffi::AnyBuffer;
using Result = ffi::Result<ffi::AnyBuffer>;

constexpr int64_t kMaxHeadDim = 256;

// [B] int32, or [0] where absent.
ffi::Error CheckLengths(std::string_view name, const Buffer& lengths, int64_t batch) {
  if (ffi::Error error = FirstError({CheckDtype(name, lengths, {ffi::DataType::S32}),
                                     CheckRank(name, lengths, 1, "[B] or [0]")});
      error.failure()) {
    return error;
  }
  if (lengths.dimensions()[0] == 0) return ffi::Error::Success();
  return CheckShape(name, lengths, {batch}, "[B]");
}

const int32_t* LengthsOrNull(const Buffer& lengths) {
  return lengths.dimensions()[0] == 0 ? nullptr : lengths.typed_data<int32_t>();
}

ffi::Error CheckOperands(const Buffer& query, const Buffer& key, const Buffer& value,
                         const Buffer& query_lengths, const Buffer& key_lengths, const Buffer& out,
                         const Buffer& lse, const Buffer& workspace) {
  const ffi::DataType dtype = query.element_type();
  if (ffi::Error error = FirstError(
          {CheckDtype("query", query, {ffi::DataType::BF16, ffi::DataType::F16}),
           CheckDtype("key", key, {dtype}), CheckDtype("value", value, {dtype}),
           CheckDtype("out", out, {dtype}), CheckDtype("lse", lse, {ffi::DataType::F32}),
           CheckDtype("workspace", workspace, {ffi::DataType::U8}),
           CheckRank("query", query, 4, "[B, T, N, H]"), CheckRank("key", key, 4, "[B, S, K, H]"),
           CheckRank("workspace", workspace, 1, "[W]")});
      error.failure()) {
    return error;
  }
  const int64_t batch = query.dimensions()[0], seqlen_q = query.dimensions()[1];
  const int64_t num_heads = query.dimensions()[2], head_dim = query.dimensions()[3];
  const int64_t seqlen_k = key.dimensions()[1], num_kv_heads = key.dimensions()[2];
  if (ffi::Error error = FirstError(
          {CheckShape("key", key, {batch, seqlen_k, num_kv_heads, head_dim}, "[B, S, K, H]"),
           CheckShape("value", value, {batch, seqlen_k, num_kv_heads, head_dim}, "[B, S, K, H]"),
           CheckShape("out", out, {batch, seqlen_q, num_heads, head_dim}, "[B, T, N, H]"),
           CheckShape("lse", lse, {batch, seqlen_q, num_heads}, "[B, T, N]"),
           CheckLengths("query_lengths", query_lengths, batch),
           CheckLengths("key_lengths", key_lengths, batch)});
      error.failure()) {
    return error;
  }
  if (head_dim < 8 || head_dim > kMaxHeadDim || head_dim % 8 != 0) {
    return MustBe("the head size H of query", "a multiple of 8 from 8 to 256",
                  std::to_string(head_dim));
  }
  if (num_kv_heads == 0 ? num_heads != 0 : num_heads % num_kv_heads != 0) {
    return MustBe("the number of query heads", "a multiple of the number of key/value heads",
                  std::to_string(num_heads) + " and " + std::to_string(num_kv_heads));
  }
  return ffi::Error::Success();
}

ffi::Error CheckOptions(float scale, float soft_cap, int64_t window_left, int64_t window_right,
                        int64_t num_splits) {
  const auto finite = [](float x) { return x - x == 0; };
  if (!finite(scale)) return MustBe("scale", "finite", std::to_string(scale));
  if (!finite(soft_cap) || soft_cap < 0) {
    return MustBe("soft_cap", "0 (none) or positive and finite", std::to_string(soft_cap));
  }
  for (const auto& [name, window] :
       {std::pair{"window_left", window_left}, std::pair{"window_right", window_right}}) {
    if (window < -1) return MustBe(name, "-1 (open) or more", std::to_string(window));
  }
  if (num_splits < 1) return MustBe("num_splits", "1 or more", std::to_string(num_splits));
  return ffi::Error::Success();
}

ffi::Error Execute(CallDevice device, Buffer query, Buffer key, Buffer value, Buffer query_lengths,
                   Buffer key_lengths, Result out, Result lse, Result workspace,
                   std::string_view target_name, float scale, float soft_cap, int64_t window_left,
                   int64_t window_right, bool top_left, int64_t num_splits) {
  return Guarded([&] {
    if (ffi::Error error = FirstError(
            {CheckOperands(query, key, value, query_lengths, key_lengths, *out, *lse, *workspace),
             CheckOptions(scale, soft_cap, window_left, window_right, num_splits)});
        error.failure()) {
      return error;
    }
    FlashProblem problem;
    problem.query = query.untyped_data();
    problem.key = key.untyped_data();
    problem.value = value.untyped_data();
    problem.query_lengths = LengthsOrNull(query_lengths);
    problem.key_lengths = LengthsOrNull(key_lengths);
    problem.out = out->untyped_data();
    problem.lse = lse->typed_data<float>();
    problem.workspace = workspace->untyped_data();
    problem.workspace_bytes = workspace->element_count();
    problem.dtype =
        query.element_type() == ffi::DataType::BF16 ? DataType::kBfloat16 : DataType::kFloat16;
    problem.batch = query.dimensions()[0];
    problem.seqlen_q = query.dimensions()[1];
    problem.num_heads = query.dimensions()[2];
    problem.head_dim = query.dimensions()[3];
    problem.seqlen_k = key.dimensions()[1];
    problem.num_kv_heads = key.dimensions()[2];
    problem.scale = scale;
    problem.soft_cap = soft_cap;
    problem.window_left = window_left;
    problem.window_right = window_right;
    problem.top_left = top_left;
    problem.num_splits = num_splits;

    std::unique_ptr<Runtime> runtime;
    Target target;
    if (Status status = OpenDevice(device, target_name, &runtime, &target); !status.ok) {
      return ffi::Error::InvalidArgument(status.message);
    }
    return ToError(LaunchFlash(*runtime, target, problem));
  });
}

}  // namespace
}  // namespace jax_fa

XLA_FFI_DEFINE_HANDLER_SYMBOL(jax_fa_flash_initialize, jax_fa::LoadModule,
                              jax_fa::InitializeBinding());

XLA_FFI_DEFINE_HANDLER_SYMBOL(jax_fa_flash_execute, jax_fa::Execute,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<jax_fa::CallDeviceContext>()
                                  .Arg<xla::ffi::AnyBuffer>()  // query
                                  .Arg<xla::ffi::AnyBuffer>()  // key
                                  .Arg<xla::ffi::AnyBuffer>()  // value
                                  .Arg<xla::ffi::AnyBuffer>()  // query_lengths
                                  .Arg<xla::ffi::AnyBuffer>()  // key_lengths
                                  .Ret<xla::ffi::AnyBuffer>()  // out
                                  .Ret<xla::ffi::AnyBuffer>()  // lse
                                  .Ret<xla::ffi::AnyBuffer>()  // workspace
                                  .Attr<std::string_view>("target")
                                  .Attr<float>("scale")
                                  .Attr<float>("soft_cap")
                                  .Attr<int64_t>("window_left")
                                  .Attr<int64_t>("window_right")
                                  .Attr<bool>("top_left")
                                  .Attr<int64_t>("num_splits"),
                              jax_fa::kExecuteTraits);
