// C++ numbers in the graph.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "lib/graph/node.h"

namespace clnet {

/// A leaf that stands for a C++ number beside a tensor. It is weak: the result of arithmetic takes the tensor's dtype.
struct NumberValue : HostValue {
  NumberValue(double number, std::vector<std::byte> content) : HostValue(std::move(content)), value(number) {}
  double value;
};

}  // namespace clnet
