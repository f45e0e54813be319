// Kernels as functions of another kernel.
#pragma once

#include <string>
#include <string_view>

#include "lib/cl/program_cache.h"

namespace clnet::ocl {

/// The text of a program as one part of a larger program, with its kernels as functions. All its names get the part's number as
/// suffix, and none of its definitions applies after it. The functions take the kernel's arguments, then the work-item's index
/// and the range's size, three dimensions of int each. Each work-group is one work-item.
std::string functions_of(const ProgramSource& program, std::size_t part);
/// The text before the first part, and after the last one.
std::string_view before_functions();
std::string_view after_functions();
/// The name of a kernel's function.
std::string function_name(std::string_view kernel, std::size_t part);

/// Whether the program's kernels can become functions. They need no other work-items and no user's functions. No macro outside of
/// functions stands alone and defines something.
bool may_be_function(const ProgramSource& program);

}  // namespace clnet::ocl
