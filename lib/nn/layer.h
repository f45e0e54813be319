// What layers have in common.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "clnet/error.h"
#include "clnet/nn/init.h"
#include "clnet/nn/parameter.h"
#include "clnet/ops/options.h"

namespace clnet::nn {

inline std::string text(const Pair& pair) { return fmt::format("({}, {})", pair.height, pair.width); }

inline std::string text(const Padding& p) {
  return p.top == p.bottom && p.left == p.right ? fmt::format("({}, {})", p.top, p.left)
                                                : fmt::format("({}, {}, {}, {})", p.top, p.left, p.bottom, p.right);
}

inline void require_positive(const char* layer, const char* what, std::int64_t value) {
  if (value < 1) throw Error(fmt::format("{}: {} must be at least 1, not {}", layer, what, value));
}

/// PyTorch's initial bias: uniform within 1 / sqrt(fan_in) of the weight.
inline Tensor initial_bias(std::int64_t count, const Tensor& weight) {
  const double bound = 1 / std::sqrt(static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0)));
  return init::uniform({count}, -bound, bound);
}

inline Tensor value_or_none(const std::optional<Parameter>& parameter) { return parameter ? parameter->value() : Tensor{}; }

}  // namespace clnet::nn
