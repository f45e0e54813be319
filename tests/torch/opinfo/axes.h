// Numbers per axis of convolutions and pooling: as a line, a pair or a triple.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "clnet/clnet.h"

namespace clnet::torch::opinfo {

/// The types of options for 1, 2 and 3 axes.
template <std::size_t axes>
struct Of;
template <>
struct Of<1> {
  using Size = std::int64_t;
  using Around = Padding1d;
  static Size size(const std::vector<std::int64_t>& n) { return n[0]; }
  static Around around(const std::vector<std::int64_t>& n) { return {n[0], n[0]}; }
};
template <>
struct Of<2> {
  using Size = Pair;
  using Around = Padding;
  static Size size(const std::vector<std::int64_t>& n) { return {n[0], n[1]}; }
  static Around around(const std::vector<std::int64_t>& n) { return {n[0], n[1]}; }
};
template <>
struct Of<3> {
  using Size = Triple;
  using Around = Padding3d;
  static Size size(const std::vector<std::int64_t>& n) { return {n[0], n[1], n[2]}; }
  static Around around(const std::vector<std::int64_t>& n) { return {n[0], n[1], n[2]}; }
};

}  // namespace clnet::torch::opinfo
