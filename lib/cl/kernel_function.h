// Kernels as functions that another kernel calls.
#pragma once

#include <string>
#include <string_view>

#include "lib/cl/program_cache.h"

namespace clnet::ocl {

/// The texts of several programs as parts of one, whose kernels are functions: what each defines is known by its own name with
/// the number of the part after it, and nothing of it holds behind it. The functions take what the kernel took, and then the
/// work-item's index and the range's size, of three dimensions, as int. Each work-group is one work-item.
std::string functions_of(const ProgramSource& program, std::size_t part);
/// What stands before the first part, and after the last one.
std::string_view before_functions();
std::string_view after_functions();
/// The function of a kernel.
std::string function_name(std::string_view kernel, std::size_t part);

/// Whether the program's kernels need nothing but such an index: no work-items beside theirs, no functions that a user chose; and
/// nothing is defined by a macro that stands alone outside of functions.
bool may_be_function(const ProgramSource& program);

}  // namespace clnet::ocl
