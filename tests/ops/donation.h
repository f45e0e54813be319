// What tests of values made in the memory of others have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/collect/work.h"
#include "tests/ops/values.h"

namespace clnet::testing {

inline std::uint64_t memory_of(const Tensor& tensor) {
  tensor.eval();
  return dynamic_cast<const exec::DeviceValue&>(*exec::value_of(tensor)).buffer->id();
}

/// Rows of so many floats, on the device.
inline Tensor rows(std::int64_t count, std::int64_t width, float first) {
  Floats values(static_cast<std::size_t>(count * width));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  const Tensor x = Tensor::from(values, Shape{count, width});
  (void)sum(x).item<float>();  // so that it is there, in memory that only it refers to
  return x;
}

/// What slice_update makes of x, on the host.
inline Floats updated(Floats x, std::int64_t width, std::int64_t row, const Floats& slice) {
  std::copy(slice.begin(), slice.end(), x.begin() + row * width);
  return x;
}

}  // namespace clnet::testing
