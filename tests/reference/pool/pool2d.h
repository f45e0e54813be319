// Naive pooling in double precision.
#pragma once

#include <cmath>
#include <limits>

#include "tests/cases/case.h"

namespace clnet::testing {

struct PoolAxis {
  std::int64_t kernel = 1, stride = 1, before = 0, after = 0, dilation = 1;
  bool ceil_mode = false;
  std::int64_t adaptive = 0;  ///< the output's extent, -1: the input's, or 0

  std::int64_t outputs(std::int64_t extent) const {
    if (adaptive) return adaptive < 0 ? extent : adaptive;
    const double steps = static_cast<double>(extent + before + after - dilation * (kernel - 1) - 1) / static_cast<double>(stride);
    auto count = static_cast<std::int64_t>(ceil_mode ? std::ceil(steps) : std::floor(steps)) + 1;
    if (ceil_mode && (count - 1) * stride >= extent + before) --count;
    return count;
  }
  /// The input positions of a window, which may lie in the padding.
  std::vector<std::int64_t> window(std::int64_t output, std::int64_t extent) const {
    std::vector<std::int64_t> at;
    if (adaptive < 0) {
      at.push_back(output);
    } else if (adaptive) {
      for (std::int64_t i = 0; i < extent; ++i)
        if (i >= output * extent / adaptive && i * adaptive < (output + 1) * extent) at.push_back(i);
    } else {
      for (std::int64_t k = 0; k < kernel; ++k) at.push_back(output * stride - before + k * dilation);
    }
    return at;
  }
};

/// `include_pad` counts the positions up to the padded input's edge; maximum takes no counts.
inline Array pool2d_reference(const Array& x, const PoolAxis& vertical, const PoolAxis& horizontal, bool maximum,
                              bool include_pad = true) {
  const auto h = x.size(2), w = x.size(3);
  Array y({x.size(0), x.size(1), vertical.outputs(h), horizontal.outputs(w)});
  for (std::int64_t n = 0; n < y.size(0); ++n)
    for (std::int64_t c = 0; c < y.size(1); ++c)
      for (std::int64_t oh = 0; oh < y.size(2); ++oh)
        for (std::int64_t ow = 0; ow < y.size(3); ++ow) {
          double sum = 0, best = -std::numeric_limits<double>::infinity();
          int count = 0;
          for (auto ih : vertical.window(oh, h))
            for (auto iw : horizontal.window(ow, w)) {
              const bool inside = ih >= 0 && ih < h && iw >= 0 && iw < w;
              if (inside || (include_pad && ih < h + vertical.after && iw < w + horizontal.after)) ++count;
              if (!inside) continue;
              const double value = x.at({n, c, ih, iw});
              sum += value;
              if (value > best || std::isnan(value)) best = value;
            }
          y.at({n, c, oh, ow}) = maximum ? best : sum / count;
        }
  return y;
}

}  // namespace clnet::testing
