#include "clnet/opencl.h"

#include <fmt/format.h>

#include "clnet/error.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/evaluate.h"
#include "lib/exec/upload.h"

namespace clnet::opencl {

Device wrap(cl_context context, cl_device_id device, cl_command_queue queue) {
  return device_with(ocl::Context::wrap(context, device, queue));
}

cl_context context(const Device& device) { return context_of(device)->context()(); }
cl_device_id device_id(const Device& device) { return context_of(device)->device()(); }
cl_command_queue queue(const Device& device) { return context_of(device)->queue()(); }

Tensor from_buffer(const Device& device, cl_mem memory, const Spec& spec, std::size_t offset) {
  const auto what = fmt::format("from_buffer of {}", to_string(spec));
  if (!memory) throw DeviceError(what + ": the buffer is null");
  auto buffer = context_of(device)->memory().import(memory);
  if (buffer->memory().getInfo<CL_MEM_CONTEXT>()() != context(device))
    throw DeviceError(what + ": the buffer belongs to another context than the device");
  const auto element = size_of(spec.dtype);
  if (offset % element != 0) throw DeviceError(fmt::format("{}: offset {} is not a multiple of {} bytes", what, offset, element));
  const auto bytes = static_cast<std::size_t>(spec.bytes());
  if (offset > buffer->bytes() || bytes > buffer->bytes() - offset)
    throw DeviceError(fmt::format("{}: needs {} bytes from offset {}, the buffer has {}", what, bytes, offset, buffer->bytes()));
  return make_leaf(spec, std::make_shared<exec::DeviceValue>(context_of(device), std::move(buffer),
                                                             static_cast<std::int64_t>(offset / element)));
}

Memory buffer(const Tensor& tensor) {
  const auto value_of = [](const Tensor& t) { return std::dynamic_pointer_cast<exec::DeviceValue>(exec::evaluated(t)); };
  auto value = value_of(tensor);
  if (!value) value = value_of(exec::copy_now(tensor, Device::current()));
  value->is_lent = true;
  auto held = std::make_shared<ValueCell>();
  held->set(value);
  return {value->buffer->memory()(), static_cast<std::size_t>(value->offset) * size_of(tensor.dtype()), std::move(held)};
}

}  // namespace clnet::opencl
