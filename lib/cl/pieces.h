// A launch of more work-groups than the device takes in its second or third dimension, in several.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// A part of a launch: kernels see the same get_global_id() in it as in the whole, but not the same get_group_id(),
/// get_num_groups() and get_global_size(). Kernels of more than one dimension do without these.
struct Piece {
  cl::NDRange offset, size;
};

/// The pieces that make up `global`, none of which has more than `most` work-groups in its second or third dimension. `local` is
/// empty where the driver chooses, which may be a group for each work-item.
std::vector<Piece> pieces(const cl::NDRange& global, const cl::NDRange& local, std::size_t most);
/// Whether there is more than one.
bool in_pieces(const std::vector<std::size_t>& global, const std::vector<std::size_t>& local, std::size_t most);

}  // namespace clnet::ocl
