// Programs that are never compiled, and their kernels.
#include <algorithm>

#include "tests/null_opencl/dump.h"
#include "tests/null_opencl/functions.h"

namespace null_opencl {

cl_program create_program(cl_context context, cl_uint count, const char** texts, const std::size_t* lengths, cl_int* code) {
  std::string source;
  for (cl_uint i = 0; i < count; ++i) source += lengths && lengths[i] ? std::string(texts[i], lengths[i]) : std::string(texts[i]);
  set(code, CL_SUCCESS);
  return new _cl_program(context, std::move(source));
}

cl_program create_program_of_binary(cl_context context, cl_uint count, const cl_device_id*, const std::size_t*,
                                    const unsigned char**, cl_int* status, cl_int* code) {
  for (cl_uint i = 0; status && i < count; ++i) status[i] = CL_SUCCESS;
  set(code, CL_SUCCESS);
  return new _cl_program(context, "");
}

cl_int build_program(cl_program program, cl_uint, const cl_device_id*, const char* options, void (*notify)(cl_program, void*),
                     void* data) {
  ++totals.builds;
  program->dumped = dump_program(program->source, options);
  if (notify) notify(program, data);
  return CL_SUCCESS;
}

cl_int get_program_info(cl_program program, cl_program_info what, std::size_t room, void* target, std::size_t* needed) {
  const Answer answer{room, target, needed};
  switch (what) {
    case CL_PROGRAM_REFERENCE_COUNT: return answer.value(program->references.load());
    case CL_PROGRAM_CONTEXT: return answer.value(program->context.get());
    case CL_PROGRAM_NUM_DEVICES: return answer.value<cl_uint>(1);
    case CL_PROGRAM_DEVICES: return answer.value(program->context.get()->device);
    case CL_PROGRAM_SOURCE: return answer.text(program->source);
    // There is no binary, which also keeps such programs out of caches on disk.
    case CL_PROGRAM_BINARY_SIZES: return answer.value<std::size_t>(0);
    case CL_PROGRAM_BINARIES:
      if (needed) *needed = sizeof(unsigned char*);
      return CL_SUCCESS;
    default: return CL_INVALID_VALUE;
  }
}

cl_int get_build_info(cl_program, cl_device_id, cl_program_build_info what, std::size_t room, void* target, std::size_t* needed) {
  const Answer answer{room, target, needed};
  switch (what) {
    case CL_PROGRAM_BUILD_STATUS: return answer.value<cl_build_status>(CL_BUILD_SUCCESS);
    case CL_PROGRAM_BUILD_OPTIONS:
    case CL_PROGRAM_BUILD_LOG: return answer.text("");
    default: return CL_INVALID_VALUE;
  }
}

cl_kernel create_kernel(cl_program program, const char* name, cl_int* code) {
  set(code, CL_SUCCESS);
  return new _cl_kernel(program, name);
}

cl_int set_kernel_argument(cl_kernel kernel, cl_uint index, std::size_t bytes, const void* value) {
  if (bytes == 0) return CL_INVALID_ARG_SIZE;
  std::uint64_t now = 0;
  if (value) std::memcpy(&now, value, std::min(bytes, sizeof now));
  const auto [before, fresh] = kernel->arguments.try_emplace(index, now);
  ++totals.arguments;
  if (value && !fresh && before->second == now) ++totals.repeated_arguments;
  before->second = now;
  if (!value) kernel->local_arguments[index] = bytes;
  if (value && bytes == sizeof(cl_int)) std::memcpy(&kernel->numbers[index], value, bytes);
  return CL_SUCCESS;
}

cl_int get_kernel_info(cl_kernel kernel, cl_kernel_info what, std::size_t room, void* target, std::size_t* needed) {
  const Answer answer{room, target, needed};
  switch (what) {
    case CL_KERNEL_FUNCTION_NAME: return answer.text(kernel->name);
    case CL_KERNEL_REFERENCE_COUNT: return answer.value(kernel->references.load());
    case CL_KERNEL_CONTEXT: return answer.value(kernel->program.get()->context.get());
    case CL_KERNEL_PROGRAM: return answer.value(kernel->program.get());
    default: return CL_INVALID_VALUE;
  }
}

cl_int get_kernel_group_info(cl_kernel, cl_device_id, cl_kernel_work_group_info what, std::size_t room, void* target,
                             std::size_t* needed) {
  const Answer answer{room, target, needed};
  const std::size_t any[3] = {0, 0, 0};
  switch (what) {
    case CL_KERNEL_WORK_GROUP_SIZE: return answer.value(kernel_group_limit());
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE: return answer.bytes(any, sizeof any);
    case CL_KERNEL_LOCAL_MEM_SIZE:
    case CL_KERNEL_PRIVATE_MEM_SIZE: return answer.value<cl_ulong>(0);
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
      return answer.value<std::size_t>(profile()->type == CL_DEVICE_TYPE_GPU ? 32 : 1);
    default: return CL_INVALID_VALUE;
  }
}

}  // namespace null_opencl
