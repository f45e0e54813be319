// Division of work on many rows among work-items, for reductions, softmax, normalisation and losses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clnet/device.h"
#include "lib/exec/options/config.h"

namespace clnet::ops {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Lanes of the explicit vectors of kernels for CPUs: VW in kernels/vector.clh.
inline std::int64_t vector_width(const DeviceInfo& device) {
  return device.native_float_width >= 16 ? 16 : device.native_float_width >= 8 ? 8 : 4;
}

/// The lanes to choose from, the device's own first: cores that run vectors of 16 in two halves may be faster with 8.
inline std::vector<std::int64_t> vector_widths(const DeviceInfo& device) {
  const auto own = vector_width(device);
  return own == 16 ? std::vector<std::int64_t>{16, 8} : std::vector<std::int64_t>{own};
}

/// The largest power of two up to 256 that the device allows as a work-group.
inline std::int64_t group_size(const DeviceInfo& device) {
  std::int64_t size = 256;
  while (size > static_cast<std::int64_t>(device.max_work_group_size)) size /= 2;
  return size;
}

/// The most elements of a row that a work-item of a GPU kernel keeps in registers, CLNET_AT_ONCE and MOMENTS_AT_ONCE. Rows of up
/// to this times `threads_per_row` elements are loaded once.
inline constexpr std::int64_t row_in_registers = 8;

/// The number of work-items that share a row: a power of two, each with about four elements or more.
inline std::int64_t threads_per_row(std::int64_t length, std::int64_t group) {
  std::int64_t threads = 1;
  while (threads < group && threads * 4 <= length) threads *= 2;
  return threads;
}

/// Rows per work-item on a CPU: enough elements to be worth starting one, few enough to keep all cores busy.
inline std::int64_t rows_per_item(std::int64_t rows, std::int64_t length, std::int64_t elements, const DeviceInfo& device) {
  const auto enough = std::max<std::int64_t>(1, elements / std::max<std::int64_t>(length, 1));
  return std::clamp<std::int64_t>(rows / (std::int64_t{4} * device.compute_units), 1, enough);
}

/// `rejects` of the solvers with explicit vectors.
template <class Problem>
std::optional<std::string> needs_vectors(const Problem&, const DeviceInfo& device) {
  if (!device.prefers_vector_kernels) return "the device does not prefer vector kernels";
  return std::nullopt;
}

/// Their `configs` where only the vector width varies.
template <class Problem>
std::vector<exec::Config> lane_configs(const Problem&, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  for (const auto lanes : vector_widths(device)) result.push_back({{"lanes", lanes}});
  return result;
}

}  // namespace clnet::ops
