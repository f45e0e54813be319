// Turns the bindings' exceptions into clnet's, with OpenCL's code by name.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "clnet/error.h"
#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// The name of an OpenCL error code: "CL_INVALID_KERNEL_ARGS".
std::string error_name(cl_int code);

/// "launch of relu: CL_OUT_OF_RESOURCES from clEnqueueNDRangeKernel".
DeviceError device_error(std::string_view what, const cl::Error& error);

/// Runs `call`; `what` says what it does, in an error's text: a text, or a function that makes it then.
template <class What, class Call>
decltype(auto) checked(const What& what, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (const cl::Error& error) {
    if constexpr (std::is_invocable_v<const What&>)
      throw device_error(what(), error);
    else
      throw device_error(what, error);
  }
}

}  // namespace clnet::ocl
