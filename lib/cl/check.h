// Turns the bindings' exceptions into clnet's, with the name of OpenCL's error code.
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

/// Runs `call` and converts its exceptions. `what` names the call in the error text: a text, or a function that makes one when
/// needed.
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
