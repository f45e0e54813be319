// OpenCL's objects as the null driver keeps them: each begins with the table that the ICD loader calls through, is counted, and
// holds what OpenCL says that it keeps alive.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_icd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "tests/null_opencl/profiles.h"

namespace null_opencl {

extern const cl_icd_dispatch dispatch_table;

struct Object {
  const cl_icd_dispatch* dispatch = &dispatch_table;
  std::atomic<cl_uint> references{1};
};

/// Counts alive objects of one kind.
template <class Kind>
struct Counted {
  static inline std::atomic<std::uint64_t> alive{0};
  Counted() { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

template <class Handle>
cl_int retain(Handle object) {
  ++object->references;
  return CL_SUCCESS;
}

template <class Handle>
cl_int release(Handle object) {
  if (--object->references == 0) delete object;
  return CL_SUCCESS;
}

/// Keeps an object alive.
template <class Handle>
class Held {
 public:
  explicit Held(Handle object) : object_(object) { retain(object_); }
  ~Held() { release(object_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  Handle get() const { return object_; }

 private:
  Handle object_;
};

inline void set(cl_int* code, cl_int value) {
  if (code) *code = value;
}

/// Answers one of the clGet...Info questions.
struct Answer {
  std::size_t room;
  void* target;
  std::size_t* needed;

  cl_int bytes(const void* from, std::size_t count) const {
    if (needed) *needed = count;
    if (!target) return CL_SUCCESS;
    if (room < count) return CL_INVALID_VALUE;
    std::memcpy(target, from, count);
    return CL_SUCCESS;
  }
  cl_int text(std::string_view value) const { return bytes(std::string(value).c_str(), value.size() + 1); }
  template <class Value>
  cl_int value(Value value) const {
    return bytes(&value, sizeof value);
  }
};

}  // namespace null_opencl

struct _cl_platform_id : null_opencl::Object {};

struct _cl_device_id : null_opencl::Object {};

struct _cl_context : null_opencl::Object {
  explicit _cl_context(cl_device_id its_device) : device(its_device) {}
  cl_device_id device;
};

struct _cl_command_queue : null_opencl::Object {
  _cl_command_queue(cl_context its_context, cl_command_queue_properties its_properties)
      : context(its_context), properties(its_properties) {}
  null_opencl::Held<cl_context> context;
  cl_command_queue_properties properties;
};

struct _cl_mem : null_opencl::Object, null_opencl::Counted<_cl_mem> {
  _cl_mem(cl_context its_context, cl_mem_flags its_flags, std::size_t its_bytes)
      : context(its_context), flags(its_flags), bytes(its_bytes) {}
  ~_cl_mem();
  null_opencl::Held<cl_context> context;
  cl_mem_flags flags;
  std::size_t bytes;
  std::mutex mutex;
  std::unique_ptr<void, void (*)(void*)> mapped{nullptr, nullptr};  ///< made by the first map
};

struct _cl_program : null_opencl::Object, null_opencl::Counted<_cl_program> {
  _cl_program(cl_context its_context, std::string its_source) : context(its_context), source(std::move(its_source)) {}
  null_opencl::Held<cl_context> context;
  std::string source;
  std::string dumped;  ///< see dump_program()
};

struct _cl_kernel : null_opencl::Object, null_opencl::Counted<_cl_kernel> {
  _cl_kernel(cl_program its_program, const char* its_name) : program(its_program), name(its_name) {}
  null_opencl::Held<cl_program> program;
  std::string name;
  std::map<cl_uint, std::uint64_t> arguments;      ///< what was set last, by index
  std::map<cl_uint, std::size_t> local_arguments;  ///< bytes of local memory by index
  std::map<cl_uint, cl_int> numbers;               ///< arguments of four bytes by index
};

struct _cl_event : null_opencl::Object, null_opencl::Counted<_cl_event> {
  _cl_event(cl_command_queue its_queue, cl_command_type its_type);
  null_opencl::Held<cl_command_queue> queue;
  cl_command_type type;
  cl_ulong nanoseconds;
};

namespace null_opencl {

extern _cl_platform_id the_platform;
extern _cl_device_id the_devices[most_devices];

/// Checks a command's wait list and makes its event; nothing ever runs, so everything is complete at once.
cl_int completed(cl_command_queue queue, cl_command_type type, cl_uint waits, const cl_event* wait_list, cl_event* event);

}  // namespace null_opencl
