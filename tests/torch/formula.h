// Formulas of one variable, as a case describes a factor of the learning rate: "(1-e/16)^2".
#pragma once

#include <functional>
#include <string>

namespace clnet::torch {

/// +, -, *, /, ^ or **, parentheses, pi, min, max, cos, sin, exp, log, sqrt; e, t, i, epoch and step are the variable. What
/// stands before a colon ("lambda e:") does not count. Throws Failed for what it does not understand.
std::function<double(double)> formula(const std::string& text);

}  // namespace clnet::torch
