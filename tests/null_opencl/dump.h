// What the null driver writes down for other programs: the folder NULL_OPENCL_DUMP gets each program once, as HASH.cl, whose
// first line has the options that it was built with, and a line per launch in the file `launches`:
//   HASH KERNEL 1x1x1 1x1x1 0 4,7     global size, work-group (0x0x0: the driver's choice), bytes of local memory among the
//                                     arguments, and those of four bytes in their order, as int ("-": none)
// Several processes may write to one folder, and their launches mix.
#pragma once

#include <string>

#include "tests/null_opencl/objects.h"

namespace null_opencl {

/// Writes a program that is being built, and returns its hash; empty: nobody wants it, nor its launches.
std::string dump_program(const std::string& source, const char* options);
void dump_launch(const _cl_kernel& kernel, cl_uint dimensions, const std::size_t* global, const std::size_t* local);

}  // namespace null_opencl
