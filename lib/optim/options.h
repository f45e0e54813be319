// Checks of options.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>

#include "clnet/error.h"
#include "clnet/shape.h"

namespace clnet::optim {

inline void require(bool good, std::string_view who, std::string_view what, double value) {
  if (!good) throw Error(fmt::format("{}: {} cannot be {}", who, what, value));
}

/// A number from 0 on.
inline void require_positive_or_zero(std::string_view who, std::string_view what, double value) {
  require(value >= 0 && std::isfinite(value), who, what, value);
}

/// The share of the past in a moving average.
inline void require_share(std::string_view who, std::string_view what, double value) {
  require(value >= 0 && value < 1, who, what, value);
}

inline void require_finite(std::string_view who, std::string_view what, double value) {
  require(std::isfinite(value), who, what, value);
}

}  // namespace clnet::optim
