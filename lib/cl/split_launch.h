// Splits a launch with more work-groups than the device allows in its second or third dimension.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// A piece of a launch. Kernels see the whole launch's get_global_id() in it, but other values of get_group_id(),
/// get_num_groups() and get_global_size(). Kernels of more than one dimension do without these.
struct LaunchPiece {
  cl::NDRange offset, size;
};

/// The pieces of `global`, each with at most `most` work-groups in its second and third dimension. `local` is empty where the
/// driver chooses, possibly one work-item per group.
std::vector<LaunchPiece> split_launch(const cl::NDRange& global, const cl::NDRange& local, std::size_t most);
/// Whether there is more than one piece.
bool is_split(const std::vector<std::size_t>& global, const std::vector<std::size_t>& local, std::size_t most);

}  // namespace clnet::ocl
