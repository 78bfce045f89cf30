// XLA's side of a custom call, as a GPU's backend has it: call frames with a stream and a device
// ordinal, for the stages in which XLA calls a handler. Built as a library that depends on a HIP
// library, as JAX's plugin does, so that handlers find theirs through it.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "xla/ffi/api/c_api.h"

// XLA's own, opaque to handlers; null stands for a call that has no stream.
struct XLA_FFI_ExecutionContext {
  void* stream;
  int32_t ordinal;
};

struct XLA_FFI_Error {
  XLA_FFI_Error_Code code;
  std::string message;
};

extern "C" int hipGetLastError();

namespace {

XLA_FFI_Error* CreateError(XLA_FFI_Error_Create_Args* args) {
  return new XLA_FFI_Error{args->errc, args->message};
}

void GetMessage(XLA_FFI_Error_GetMessage_Args* args) {
  args->message = args->error->message.c_str();
}

void DestroyError(XLA_FFI_Error_Destroy_Args* args) { delete args->error; }

XLA_FFI_Error* GetStream(XLA_FFI_Stream_Get_Args* args) {
  if (args->ctx->stream == nullptr) {
    return new XLA_FFI_Error{XLA_FFI_Error_Code_UNIMPLEMENTED, "no stream on this platform"};
  }
  args->stream = args->ctx->stream;
  return nullptr;
}

XLA_FFI_Error* GetOrdinal(XLA_FFI_DeviceOrdinal_Get_Args* args) {
  args->device_ordinal = args->ctx->ordinal;
  return nullptr;
}

const XLA_FFI_Api* Api() {
  static const XLA_FFI_Api* const api = [] {
    auto* const all = new XLA_FFI_Api{};
    all->struct_size = XLA_FFI_Api_STRUCT_SIZE;
    all->api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR,
                        XLA_FFI_API_MINOR};
    all->XLA_FFI_Error_Create = CreateError;
    all->XLA_FFI_Error_GetMessage = GetMessage;
    all->XLA_FFI_Error_Destroy = DestroyError;
    all->XLA_FFI_Stream_Get = GetStream;
    all->XLA_FFI_DeviceOrdinal_Get = GetOrdinal;
    return all;
  }();
  return api;
}

}  // namespace

// What the test's ctypes fill.
struct FrameArray {
  int32_t dtype;  // XLA_FFI_DataType
  int32_t rank;
  int64_t* dims;
  void* data;
};
struct FrameAttribute {
  const char* name;
  uint64_t name_bytes;
  int32_t dtype;     // 0: a string
  const void* data;  // of a scalar, or of a string
  uint64_t bytes;    // of a string
};

// Calls a handler; the message of its error goes to `message`, and the result is its code, or -1.
extern "C" __attribute__((visibility("default"))) int ffi_frame_call(
    XLA_FFI_Handler* handler, int stage, void* stream, int32_t ordinal, const FrameArray* operands,
    int64_t num_operands, const FrameArray* results, int64_t num_results,
    const FrameAttribute* attributes, int64_t num_attributes, char* message, size_t message_bytes) {
  XLA_FFI_ExecutionContext context = {stream, ordinal};
  std::vector<XLA_FFI_Buffer> buffers;
  buffers.reserve(num_operands + num_results);
  const auto pointers = [&](const FrameArray* arrays, int64_t count) {
    std::vector<void*> all;
    for (int64_t i = 0; i < count; ++i) {
      const FrameArray& array = arrays[i];
      buffers.push_back({XLA_FFI_Buffer_STRUCT_SIZE, nullptr,
                         static_cast<XLA_FFI_DataType>(array.dtype), array.data, array.rank,
                         array.dims});
      all.push_back(&buffers.back());
    }
    return all;
  };
  std::vector<void*> arguments = pointers(operands, num_operands);
  std::vector<void*> returned = pointers(results, num_results);
  std::vector<XLA_FFI_ArgType> argument_types(num_operands, XLA_FFI_ArgType_BUFFER);
  std::vector<XLA_FFI_RetType> result_types(num_results, XLA_FFI_RetType_BUFFER);

  std::vector<XLA_FFI_ByteSpan> names(num_attributes), texts(num_attributes);
  std::vector<XLA_FFI_Scalar> scalars(num_attributes);
  std::vector<XLA_FFI_ByteSpan*> name_pointers;
  std::vector<XLA_FFI_AttrType> types;
  std::vector<void*> values;
  for (int64_t i = 0; i < num_attributes; ++i) {
    const FrameAttribute& attribute = attributes[i];
    names[i] = {attribute.name, attribute.name_bytes};
    name_pointers.push_back(&names[i]);
    if (attribute.dtype == 0) {
      texts[i] = {static_cast<const char*>(attribute.data), attribute.bytes};
      types.push_back(XLA_FFI_AttrType_STRING);
      values.push_back(&texts[i]);
    } else {
      scalars[i] = {static_cast<XLA_FFI_DataType>(attribute.dtype),
                    const_cast<void*>(attribute.data)};
      types.push_back(XLA_FFI_AttrType_SCALAR);
      values.push_back(&scalars[i]);
    }
  }

  XLA_FFI_CallFrame frame = {};
  frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
  frame.api = Api();
  frame.ctx = &context;
  frame.stage = static_cast<XLA_FFI_ExecutionStage>(stage);
  frame.args = {XLA_FFI_Args_STRUCT_SIZE, nullptr, num_operands, argument_types.data(),
                arguments.data()};
  frame.rets = {XLA_FFI_Rets_STRUCT_SIZE, nullptr, num_results, result_types.data(),
                returned.data()};
  frame.attrs = {XLA_FFI_Attrs_STRUCT_SIZE, nullptr,      num_attributes, types.data(),
                 name_pointers.data(),      values.data()};
  XLA_FFI_Error* const error = handler(&frame);
  if (error == nullptr) return -1;
  std::snprintf(message, message_bytes, "%s", error->message.c_str());
  const int code = error->code;
  delete error;
  return code;
}

// The dependency on the HIP library, which makes this file look like a plugin.
extern "C" __attribute__((visibility("default"))) int ffi_frame_uses_hip() {
  return hipGetLastError();
}
