// Checks and text that layers share.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "clnet/error.h"
#include "clnet/nn/init.h"
#include "clnet/nn/parameter.h"
#include "clnet/ops/shape.h"
#include "lib/ops/axes.h"

namespace clnet::nn {

/// "2", "(2, 3)" or "(2, 3, 4)".
inline std::string text(std::int64_t value) { return fmt::format("{}", value); }
inline std::string text(const Pair& pair) { return fmt::format("({}, {})", pair.height, pair.width); }
inline std::string text(const Triple& t) { return fmt::format("({}, {}, {})", t.depth, t.height, t.width); }

/// A number for each axis, or for each side where they differ.
template <class Amounts>
requires requires(const Amounts& amounts) { ops::before(amounts); }
std::string text(const Amounts& padding) {
  auto numbers = ops::before(padding);
  const auto after = ops::after(padding);
  if (numbers != after) numbers.insert(numbers.end(), after.begin(), after.end());
  return numbers.size() == 1 ? text(numbers[0]) : fmt::format("({})", fmt::join(numbers, ", "));
}

inline std::string_view text(PadMode mode) {
  switch (mode) {
    case PadMode::reflect: return "reflect";
    case PadMode::edge: return "replicate";
    case PadMode::circular: return "circular";
    default: return "zeros";
  }
}

/// x with its last dimensions padded.
template <class Amounts>
Tensor pad_last(const Tensor& x, const Amounts& padding, double value, PadMode mode) {
  auto first = ops::before(padding), last = ops::after(padding);
  const auto rank = static_cast<std::size_t>(x.rank());
  if (rank < first.size())
    throw ShapeError(fmt::format("pad: {} has fewer dimensions than the padding {}", to_string(x.spec()), text(padding)));
  for (auto* amounts : {&first, &last}) amounts->insert(amounts->begin(), rank - amounts->size(), 0);
  return pad(x, first, last, value, mode);
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
