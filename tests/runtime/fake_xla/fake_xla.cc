// XLA's side of an FFI call on a GPU, without XLA: calls a handler with a frame made of what a test
// says. Built as JAX's plugin is, depending on a HIP library.
//
// It keeps the rules of the real one: every structure tells its size, attributes come sorted by
// name, the handler is asked for its version and traits first. A stage before the execution gets
// addresses only, whose contents nobody may read yet.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "xla/ffi/api/c_api.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

extern "C" int hipGetLastError();  // of the library that this one depends on

struct XLA_FFI_Error {
  std::string message;
};

// Tests are compiled with the headers of the jaxlib that is there, which renamed some things.
#if XLA_FFI_API_MINOR < 4
using XLA_FFI_Error_GetDetails_Args = XLA_FFI_Error_GetMessage_Args;
#define XLA_FFI_InvokeContext XLA_FFI_ExecutionContext
#define XLA_FFI_Error_GetDetails XLA_FFI_Error_GetMessage
#endif

struct XLA_FFI_InvokeContext {
  void* stream;
  int32_t ordinal;
  bool on_gpu;
};

// As ctypes makes them, in this order.
struct TestArray {
  int32_t dtype;
  int32_t rank;
  int64_t dims[6];
  void* data;
};

struct TestAttribute {
  const char* name;
  const char* text;  // of a string; else null
  int32_t dtype;     // of a scalar
  unsigned char value[8];
};

namespace {

int refused_allocations = 0;

XLA_FFI_Error* CreateError(XLA_FFI_Error_Create_Args* args) {
  return new XLA_FFI_Error{args->message};
}
void GetDetails(XLA_FFI_Error_GetDetails_Args* args) {
  args->message = args->error->message.c_str();
}
void DestroyError(XLA_FFI_Error_Destroy_Args* args) { delete args->error; }

XLA_FFI_Error* GetStream(XLA_FFI_Stream_Get_Args* args) {
  if (!args->ctx->on_gpu) return new XLA_FFI_Error{"XLA FFI GPU context is not available"};
  args->stream = args->ctx->stream;
  return nullptr;
}

XLA_FFI_Error* GetDeviceOrdinal(XLA_FFI_DeviceOrdinal_Get_Args* args) {
  args->device_ordinal = args->ctx->ordinal;
  return nullptr;
}

// XLA's scratch memory is gone when the handler returns, before its launches have run.
XLA_FFI_Error* RefuseAllocation(XLA_FFI_DeviceMemory_Allocate_Args*) {
  ++refused_allocations;
  return new XLA_FFI_Error{"no scratch memory for handlers that only enqueue"};
}

const XLA_FFI_Api& Api() {
  static const XLA_FFI_Api api = [] {
    XLA_FFI_Api api = {};
    api.struct_size = XLA_FFI_Api_STRUCT_SIZE;
    api.api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR,
                       XLA_FFI_API_MINOR};
    api.XLA_FFI_Error_Create = CreateError;
    api.XLA_FFI_Error_GetDetails = GetDetails;
    api.XLA_FFI_Error_Destroy = DestroyError;
    api.XLA_FFI_Stream_Get = GetStream;
    api.XLA_FFI_DeviceOrdinal_Get = GetDeviceOrdinal;
    api.XLA_FFI_DeviceMemory_Allocate = RefuseAllocation;
    return api;
  }();
  return api;
}

// The handler's answer as text; empty: success.
std::string Call(XLA_FFI_Handler* handler, XLA_FFI_CallFrame* frame) {
  frame->struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
  frame->api = &Api();
  XLA_FFI_Error* const error = handler(frame);
  if (error == nullptr) return "";
  const std::string message = error->message;
  delete error;
  return message.empty() ? "an error without a message" : message;
}

std::vector<XLA_FFI_Buffer> ToBuffers(TestArray* arrays, int count) {
  std::vector<XLA_FFI_Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    buffers.push_back({XLA_FFI_Buffer_STRUCT_SIZE, nullptr,
                       static_cast<XLA_FFI_DataType>(arrays[i].dtype), arrays[i].data,
                       arrays[i].rank, arrays[i].dims});
  }
  return buffers;
}

std::vector<void*> ToPointers(std::vector<XLA_FFI_Buffer>& buffers) {
  std::vector<void*> pointers;
  for (XLA_FFI_Buffer& buffer : buffers) pointers.push_back(&buffer);
  return pointers;
}

}  // namespace

// Traits of a handler, -1 where it refuses to tell or is of another version.
EXPORT int64_t fake_xla_traits(XLA_FFI_Handler* handler) {
  XLA_FFI_Metadata metadata = {};
  metadata.struct_size = XLA_FFI_Metadata_STRUCT_SIZE;
  metadata.api_version.struct_size = XLA_FFI_Api_Version_STRUCT_SIZE;
  XLA_FFI_Metadata_Extension extension = {
      {XLA_FFI_Metadata_Extension_STRUCT_SIZE, XLA_FFI_Extension_Metadata, nullptr}, &metadata};
  XLA_FFI_CallFrame frame = {};
  frame.extension_start = &extension.extension_base;
  if (!Call(handler, &frame).empty()) return -1;
  if (metadata.api_version.major_version != XLA_FFI_API_MAJOR) return -1;
  return metadata.traits;
}

// Calls a handler for a stage; the error's text, empty on success. `on_gpu`: 0 gives no stream.
EXPORT const char* fake_xla_call(XLA_FFI_Handler* handler, int stage, int on_gpu, void* stream,
                                 int32_t ordinal, TestArray* operands, int num_operands,
                                 TestArray* results, int num_results, TestAttribute* attributes,
                                 int num_attributes) {
  thread_local std::string answer;
  XLA_FFI_ExecutionContext context = {stream, ordinal, on_gpu != 0};

  std::vector<XLA_FFI_Buffer> given = ToBuffers(operands, num_operands);
  std::vector<XLA_FFI_Buffer> made = ToBuffers(results, num_results);
  std::vector<void*> given_pointers = ToPointers(given), made_pointers = ToPointers(made);
  std::vector<XLA_FFI_ArgType> given_types(given.size(), XLA_FFI_ArgType_BUFFER);
  std::vector<XLA_FFI_RetType> made_types(made.size(), XLA_FFI_RetType_BUFFER);

  std::vector<XLA_FFI_ByteSpan> names(num_attributes), texts(num_attributes);
  std::vector<XLA_FFI_Scalar> scalars(num_attributes);
  std::vector<XLA_FFI_ByteSpan*> name_pointers;
  std::vector<XLA_FFI_AttrType> types;
  std::vector<void*> values;
  for (int i = 0; i < num_attributes; ++i) {
    TestAttribute& attribute = attributes[i];
    names[i] = {attribute.name, std::strlen(attribute.name)};
    name_pointers.push_back(&names[i]);
    if (attribute.text != nullptr) {
      texts[i] = {attribute.text, std::strlen(attribute.text)};
      types.push_back(XLA_FFI_AttrType_STRING);
      values.push_back(&texts[i]);
    } else {
      scalars[i] = {static_cast<XLA_FFI_DataType>(attribute.dtype), attribute.value};
      types.push_back(XLA_FFI_AttrType_SCALAR);
      values.push_back(&scalars[i]);
    }
  }

  XLA_FFI_CallFrame frame = {};
  frame.ctx = &context;
  frame.stage = static_cast<XLA_FFI_ExecutionStage>(stage);
  frame.args = {XLA_FFI_Args_STRUCT_SIZE, nullptr, num_operands, given_types.data(),
                given_pointers.data()};
  frame.rets = {XLA_FFI_Rets_STRUCT_SIZE, nullptr, num_results, made_types.data(),
                made_pointers.data()};
  frame.attrs = {XLA_FFI_Attrs_STRUCT_SIZE, nullptr,      num_attributes, types.data(),
                 name_pointers.data(),      values.data()};
  answer = Call(handler, &frame);
  return answer.c_str();
}

// Calls of handlers for scratch memory, all of them refused.
EXPORT int fake_xla_refused_allocations() { return refused_allocations; }
// What XLA would find with its next call of HIP: a failure that a handler has left behind.
EXPORT int fake_xla_last_error() { return hipGetLastError(); }
