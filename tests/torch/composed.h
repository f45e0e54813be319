// What elementwise.cpp, composed.cpp and composed_more.cpp share: operations of one and two inputs.
#pragma once

#include "tests/torch/cases.h"

namespace clnet::torch {

inline const Names first{"x", "a", "input", "self", "x1", "input1"}, second{"b", "other", "y", "x2", "input2", "exponent"};

template <class Function>
Operation unary(Function function) {
  return [function](const Given& in) { return y(function(in[first])); };
}
template <class Function>
Operation binary(Function function) {
  return [function](const Given& in) { return y(function(in[first], in[second])); };
}

}  // namespace clnet::torch
