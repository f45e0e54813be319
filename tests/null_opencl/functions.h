// The functions of OpenCL 1.2 that the null driver has, for its dispatch table; OpenCL's documentation says what each one does.
#pragma once

#include "tests/null_opencl/counts.h"
#include "tests/null_opencl/objects.h"

namespace null_opencl {

// platform.cpp
cl_int get_platforms(cl_uint room, cl_platform_id* platforms, cl_uint* count);
cl_int get_platform_info(cl_platform_id, cl_platform_info what, std::size_t room, void* target, std::size_t* needed);
cl_int get_devices(cl_platform_id, cl_device_type type, cl_uint room, cl_device_id* devices, cl_uint* count);
cl_int get_device_info(cl_device_id, cl_device_info what, std::size_t room, void* target, std::size_t* needed);
cl_context create_context(const cl_context_properties*, cl_uint count, const cl_device_id* devices,
                          void (*notify)(const char*, const void*, std::size_t, void*), void* data, cl_int* code);
cl_int get_context_info(cl_context context, cl_context_info what, std::size_t room, void* target, std::size_t* needed);
cl_command_queue create_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int* code);
cl_int get_queue_info(cl_command_queue queue, cl_command_queue_info what, std::size_t room, void* target, std::size_t* needed);

// memory.cpp
std::uint64_t bytes_alive();
cl_mem create_buffer(cl_context context, cl_mem_flags flags, std::size_t bytes, void* host, cl_int* code);
cl_mem create_sub_buffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* region, cl_int* code);
cl_int get_memory_info(cl_mem memory, cl_mem_info what, std::size_t room, void* target, std::size_t* needed);
cl_int enqueue_read(cl_command_queue queue, cl_mem memory, cl_bool blocking, std::size_t offset, std::size_t bytes, void* target,
                    cl_uint waits, const cl_event* wait_list, cl_event* event);
cl_int enqueue_write(cl_command_queue queue, cl_mem memory, cl_bool blocking, std::size_t offset, std::size_t bytes,
                     const void* source, cl_uint waits, const cl_event* wait_list, cl_event* event);
cl_int enqueue_copy(cl_command_queue queue, cl_mem source, cl_mem target, std::size_t source_offset, std::size_t target_offset,
                    std::size_t bytes, cl_uint waits, const cl_event* wait_list, cl_event* event);
cl_int enqueue_fill(cl_command_queue queue, cl_mem memory, const void* pattern, std::size_t pattern_bytes, std::size_t offset,
                    std::size_t bytes, cl_uint waits, const cl_event* wait_list, cl_event* event);
void* enqueue_map(cl_command_queue queue, cl_mem memory, cl_bool blocking, cl_map_flags flags, std::size_t offset,
                  std::size_t bytes, cl_uint waits, const cl_event* wait_list, cl_event* event, cl_int* code);
cl_int enqueue_unmap(cl_command_queue queue, cl_mem memory, void* address, cl_uint waits, const cl_event* wait_list,
                     cl_event* event);

// program.cpp
cl_program create_program(cl_context context, cl_uint count, const char** texts, const std::size_t* lengths, cl_int* code);
cl_program create_program_of_binary(cl_context context, cl_uint count, const cl_device_id* devices, const std::size_t* lengths,
                                    const unsigned char** binaries, cl_int* status, cl_int* code);
cl_int build_program(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
                     void (*notify)(cl_program, void*), void* data);
cl_int get_program_info(cl_program program, cl_program_info what, std::size_t room, void* target, std::size_t* needed);
cl_int get_build_info(cl_program program, cl_device_id device, cl_program_build_info what, std::size_t room, void* target,
                      std::size_t* needed);
cl_kernel create_kernel(cl_program program, const char* name, cl_int* code);
cl_int set_kernel_argument(cl_kernel kernel, cl_uint index, std::size_t bytes, const void* value);
cl_int get_kernel_info(cl_kernel kernel, cl_kernel_info what, std::size_t room, void* target, std::size_t* needed);
cl_int get_kernel_group_info(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, std::size_t room,
                             void* target, std::size_t* needed);

// commands.cpp
cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t* offset,
                      const std::size_t* global, const std::size_t* local, cl_uint waits, const cl_event* wait_list,
                      cl_event* event);
cl_int enqueue_marker(cl_command_queue queue, cl_uint waits, const cl_event* wait_list, cl_event* event);
cl_int enqueue_barrier(cl_command_queue queue, cl_uint waits, const cl_event* wait_list, cl_event* event);
cl_int flush(cl_command_queue queue);
cl_int finish(cl_command_queue queue);
cl_int wait_for_events(cl_uint count, const cl_event* events);
cl_int get_event_info(cl_event event, cl_event_info what, std::size_t room, void* target, std::size_t* needed);
cl_int get_profiling_info(cl_event event, cl_profiling_info what, std::size_t room, void* target, std::size_t* needed);
cl_int set_event_callback(cl_event event, cl_int status, void (*notify)(cl_event, cl_int, void*), void* data);

/// So far; see Counts.
struct Totals {
  std::atomic<std::uint64_t> launches{0}, reads{0}, writes{0}, builds{0}, waits{0}, arguments{0}, repeated_arguments{0};
};
extern Totals totals;
Counts counts();

}  // namespace null_opencl
