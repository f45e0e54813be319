// Launches that compute nothing, and events that are complete from the start.
#include <chrono>
#include <cstdint>

#include "tests/null_opencl/dump.h"
#include "tests/null_opencl/functions.h"
#include "tests/null_opencl/profiles.h"

_cl_event::_cl_event(cl_command_queue its_queue, cl_command_type its_type)
    : queue(its_queue),
      type(its_type),
      nanoseconds(static_cast<cl_ulong>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count())) {}

namespace null_opencl {

Totals totals;

Counts counts() {
  return {Counted<_cl_mem>::alive,
          bytes_alive(),
          Counted<_cl_program>::alive,
          Counted<_cl_kernel>::alive,
          Counted<_cl_event>::alive,
          totals.launches,
          totals.reads,
          totals.writes,
          totals.builds,
          totals.waits,
          totals.arguments,
          totals.repeated_arguments};
}

cl_int completed(cl_command_queue queue, cl_command_type type, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  if ((waits == 0) != (wait_list == nullptr)) return CL_INVALID_EVENT_WAIT_LIST;
  for (cl_uint i = 0; i < waits; ++i) {
    if (!wait_list[i]) return CL_INVALID_EVENT_WAIT_LIST;
  }
  if (event) *event = new _cl_event(queue, type);
  return CL_SUCCESS;
}

cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t*, const std::size_t* global,
                      const std::size_t* local, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  if (dimensions < 1 || dimensions > 3) return CL_INVALID_WORK_DIMENSION;
  // As CUDA's grids, which NVIDIA's OpenCL launches.
  const std::size_t most = profile()->capability_major > 0 ? 65535 : SIZE_MAX;
  std::size_t group = 1;
  for (cl_uint i = 0; i < dimensions; ++i) {
    if (global[i] == 0) return CL_INVALID_GLOBAL_WORK_SIZE;
    if (i > 0 && global[i] / (local ? local[i] : 1) > most) return CL_INVALID_GLOBAL_WORK_SIZE;
    if (!local) continue;
    if (local[i] == 0 || global[i] % local[i] != 0) return CL_INVALID_WORK_GROUP_SIZE;
    group *= local[i];
  }
  if (group > kernel_group_limit()) return CL_INVALID_WORK_GROUP_SIZE;
  ++totals.launches;
  dump_launch(*kernel, dimensions, global, local);
  return completed(queue, CL_COMMAND_NDRANGE_KERNEL, waits, wait_list, event);
}

cl_int enqueue_marker(cl_command_queue queue, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  return completed(queue, CL_COMMAND_MARKER, waits, wait_list, event);
}

cl_int enqueue_barrier(cl_command_queue queue, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  return completed(queue, CL_COMMAND_BARRIER, waits, wait_list, event);
}

cl_int flush(cl_command_queue) { return CL_SUCCESS; }

cl_int finish(cl_command_queue) {
  ++totals.waits;
  return CL_SUCCESS;
}

cl_int wait_for_events(cl_uint count, const cl_event* events) {
  if (count == 0 || !events) return CL_INVALID_VALUE;
  ++totals.waits;
  return CL_SUCCESS;
}

cl_int get_event_info(cl_event event, cl_event_info what, std::size_t room, void* target, std::size_t* needed) {
  const Answer answer{room, target, needed};
  switch (what) {
    case CL_EVENT_COMMAND_QUEUE: return answer.value(event->queue.get());
    case CL_EVENT_CONTEXT: return answer.value(event->queue.get()->context.get());
    case CL_EVENT_COMMAND_TYPE: return answer.value(event->type);
    case CL_EVENT_COMMAND_EXECUTION_STATUS: return answer.value<cl_int>(CL_COMPLETE);
    case CL_EVENT_REFERENCE_COUNT: return answer.value(event->references.load());
    default: return CL_INVALID_VALUE;
  }
}

cl_int get_profiling_info(cl_event event, cl_profiling_info what, std::size_t room, void* target, std::size_t* needed) {
  if ((event->queue.get()->properties & CL_QUEUE_PROFILING_ENABLE) == 0) return CL_PROFILING_INFO_NOT_AVAILABLE;
  if (what < CL_PROFILING_COMMAND_QUEUED || what > CL_PROFILING_COMMAND_END) return CL_INVALID_VALUE;
  return Answer{room, target, needed}.value(event->nanoseconds);
}

cl_int set_event_callback(cl_event event, cl_int status, void (*notify)(cl_event, cl_int, void*), void* data) {
  if (!notify || status < CL_COMPLETE || status > CL_SUBMITTED) return CL_INVALID_VALUE;
  notify(event, CL_COMPLETE, data);
  return CL_SUCCESS;
}

}  // namespace null_opencl
