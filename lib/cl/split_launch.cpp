#include "lib/cl/split_launch.h"

#include <algorithm>
#include <array>
#include <limits>

namespace clnet::ocl {

namespace {

/// How many work-items one launch may have in each dimension.
std::array<std::size_t, 3> most_items(std::size_t dimensions, const std::size_t* local, std::size_t most) {
  std::array<std::size_t, 3> result;
  result.fill(std::numeric_limits<std::size_t>::max());
  for (std::size_t i = 1; i < dimensions; ++i) {
    const auto group = local ? local[i] : 1;
    if (most <= result[i] / group) result[i] = most * group;
  }
  return result;
}

cl::NDRange range(std::size_t dimensions, const std::array<std::size_t, 3>& sizes) {
  if (dimensions == 1) return cl::NDRange(sizes[0]);
  return dimensions == 2 ? cl::NDRange(sizes[0], sizes[1]) : cl::NDRange(sizes[0], sizes[1], sizes[2]);
}

}  // namespace

bool is_split(const std::vector<std::size_t>& global, const std::vector<std::size_t>& local, std::size_t most) {
  const auto items = most_items(global.size(), local.empty() ? nullptr : local.data(), most);
  for (std::size_t i = 0; i < global.size(); ++i)
    if (global[i] > items[i]) return true;
  return false;
}

std::vector<LaunchPiece> split_launch(const cl::NDRange& global, const cl::NDRange& local, std::size_t most) {
  const auto dimensions = global.dimensions();
  const auto items = most_items(dimensions, local.dimensions() ? local.get() : nullptr, most);
  std::array<std::size_t, 3> all{1, 1, 1};
  std::copy_n(global.get(), dimensions, all.begin());
  std::vector<LaunchPiece> result;
  for (std::size_t z = 0; z < all[2]; z += std::min(items[2], all[2]))
    for (std::size_t y = 0; y < all[1]; y += std::min(items[1], all[1]))
      result.push_back({range(dimensions, {0, y, z}),
                        range(dimensions, {all[0], std::min(items[1], all[1] - y), std::min(items[2], all[2] - z)})});
  // Drivers may have faster kernels for launches that begin at 0.
  if (result.size() == 1) result[0].offset = cl::NullRange;
  return result;
}

}  // namespace clnet::ocl
