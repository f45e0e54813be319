// Buffers without content: what is written is taken and dropped, what is read is zeros.
#include <cstdlib>

#include "tests/null_opencl/functions.h"

namespace {

std::atomic<std::uint64_t> allocated{0};

/// Whether a command's range lies within the buffer.
bool within(cl_mem memory, std::size_t offset, std::size_t bytes) {
  return bytes > 0 && offset <= memory->bytes && bytes <= memory->bytes - offset;
}

}  // namespace

_cl_mem::~_cl_mem() { allocated -= bytes; }

namespace null_opencl {

std::uint64_t bytes_alive() { return allocated; }

cl_mem create_buffer(cl_context context, cl_mem_flags flags, std::size_t bytes, void* host, cl_int* code) {
  const Profile& device = *profile();
  if (bytes == 0 || bytes > device.max_allocation) {
    set(code, CL_INVALID_BUFFER_SIZE);
    return nullptr;
  }
  if ((host != nullptr) != ((flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR)) != 0)) {
    set(code, CL_INVALID_HOST_PTR);
    return nullptr;
  }
  if (allocated.fetch_add(bytes) + bytes > device.global_memory) {
    allocated -= bytes;
    set(code, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    return nullptr;
  }
  set(code, CL_SUCCESS);
  return new _cl_mem(context, flags, bytes);
}

cl_mem create_sub_buffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* region, cl_int* code) {
  const auto* range = static_cast<const cl_buffer_region*>(region);
  if (type != CL_BUFFER_CREATE_TYPE_REGION || !range || !within(buffer, range->origin, range->size)) {
    set(code, CL_INVALID_VALUE);
    return nullptr;
  }
  return create_buffer(buffer->context.get(), flags, range->size, nullptr, code);
}

cl_int get_memory_info(cl_mem memory, cl_mem_info what, std::size_t room, void* target, std::size_t* needed) {
  const Answer answer{room, target, needed};
  switch (what) {
    case CL_MEM_TYPE: return answer.value<cl_mem_object_type>(CL_MEM_OBJECT_BUFFER);
    case CL_MEM_FLAGS: return answer.value(memory->flags);
    case CL_MEM_SIZE: return answer.value(memory->bytes);
    case CL_MEM_CONTEXT: return answer.value(memory->context.get());
    case CL_MEM_REFERENCE_COUNT: return answer.value(memory->references.load());
    default: return CL_INVALID_VALUE;
  }
}

cl_int enqueue_read(cl_command_queue queue, cl_mem memory, cl_bool, std::size_t offset, std::size_t bytes, void* target,
                    cl_uint waits, const cl_event* wait_list, cl_event* event) {
  if (!target || !within(memory, offset, bytes)) return CL_INVALID_VALUE;
  std::memset(target, 0, bytes);
  ++totals.reads;
  return completed(queue, CL_COMMAND_READ_BUFFER, waits, wait_list, event);
}

cl_int enqueue_write(cl_command_queue queue, cl_mem memory, cl_bool, std::size_t offset, std::size_t bytes, const void* source,
                     cl_uint waits, const cl_event* wait_list, cl_event* event) {
  if (!source || !within(memory, offset, bytes)) return CL_INVALID_VALUE;
  ++totals.writes;
  return completed(queue, CL_COMMAND_WRITE_BUFFER, waits, wait_list, event);
}

cl_int enqueue_copy(cl_command_queue queue, cl_mem source, cl_mem target, std::size_t source_offset, std::size_t target_offset,
                    std::size_t bytes, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  if (!within(source, source_offset, bytes) || !within(target, target_offset, bytes)) return CL_INVALID_VALUE;
  if (source == target && source_offset < target_offset + bytes && target_offset < source_offset + bytes) {
    return CL_MEM_COPY_OVERLAP;
  }
  return completed(queue, CL_COMMAND_COPY_BUFFER, waits, wait_list, event);
}

cl_int enqueue_fill(cl_command_queue queue, cl_mem memory, const void* pattern, std::size_t pattern_bytes, std::size_t offset,
                    std::size_t bytes, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  const bool power_of_two = pattern_bytes > 0 && pattern_bytes <= 128 && (pattern_bytes & (pattern_bytes - 1)) == 0;
  if (!pattern || !power_of_two || offset % pattern_bytes != 0 || bytes % pattern_bytes != 0) return CL_INVALID_VALUE;
  if (!within(memory, offset, bytes)) return CL_INVALID_VALUE;
  return completed(queue, CL_COMMAND_FILL_BUFFER, waits, wait_list, event);
}

void* enqueue_map(cl_command_queue queue, cl_mem memory, cl_bool, cl_map_flags, std::size_t offset, std::size_t bytes,
                  cl_uint waits, const cl_event* wait_list, cl_event* event, cl_int* code) {
  if (!within(memory, offset, bytes)) {
    set(code, CL_INVALID_VALUE);
    return nullptr;
  }
  const std::lock_guard lock(memory->mutex);
  // calloc leaves the pages of a large block to their first use.
  if (!memory->mapped) memory->mapped = {std::calloc(memory->bytes, 1), std::free};
  if (!memory->mapped) {
    set(code, CL_MAP_FAILURE);
    return nullptr;
  }
  const cl_int result = completed(queue, CL_COMMAND_MAP_BUFFER, waits, wait_list, event);
  set(code, result);
  return result == CL_SUCCESS ? static_cast<char*>(memory->mapped.get()) + offset : nullptr;
}

cl_int enqueue_unmap(cl_command_queue queue, cl_mem memory, void* address, cl_uint waits, const cl_event* wait_list,
                     cl_event* event) {
  {
    const std::lock_guard lock(memory->mutex);
    const auto* first = static_cast<char*>(memory->mapped.get());
    if (!first || address < first || address >= first + memory->bytes) return CL_INVALID_VALUE;
  }
  return completed(queue, CL_COMMAND_UNMAP_MEM_OBJECT, waits, wait_list, event);
}

}  // namespace null_opencl
