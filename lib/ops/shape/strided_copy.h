// Copying blocks between tensors: what permute, slice and concat are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "clnet/shape.h"
#include "lib/exec/launch/recorder.h"

namespace clnet::ops {

struct StridedCopy {
  exec::Ref from, to;
  struct Dim {
    std::int64_t extent, from_step, to_step;
  };
  std::vector<Dim> dims;  ///< outermost first
};

/// The steps from element to element along each dimension of a tensor.
std::vector<std::int64_t> strides_of(const Shape& shape);

/// Rows that one work-item of a CPU copies: enough elements to be worth a work-group, few enough for every core to get some. 0
/// where a work-item per element is better.
std::int64_t rows_per_item(std::int64_t rows, std::int64_t length, const DeviceInfo& device);

/// Records the copy; converts when the dtypes differ.
void strided_copy(StridedCopy copy, exec::Recorder& recorder);

}  // namespace clnet::ops
