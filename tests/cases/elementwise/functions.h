// Cases of elementwise functions with parameters, and of bits.
#pragma once

#include "tests/cases/elementwise/elementwise.h"
#include "tests/reference/elementwise/special.h"

namespace clnet::testing {

inline std::vector<Case> polygamma_cases() {
  return {unary_case(
              "polygamma of order 1", [](const Tensor& x) { return polygamma(1, x); },
              [](double x) { return reference::polygamma(1, x); }, 0.5, 4),
          unary_case(
              "polygamma of order 2", [](const Tensor& x) { return polygamma(2, x); },
              [](double x) { return reference::polygamma(2, x); }, 0.8, 4),
          unary_case(
              "polygamma of order 0", [](const Tensor& x) { return polygamma(0, x); },
              [](double x) { return reference::digamma(x); }, 0.5, 4),
          unary_case(
              "polygamma below 0", [](const Tensor& x) { return polygamma(1, x); },
              [](double x) { return reference::polygamma(1, x); }, -2.8, -2.2, false)};
}

inline std::vector<Case> bitwise_not_cases() {
  std::vector<Case> cases;
  for (auto dtype : {Dtype::i32, Dtype::i64})
    cases.push_back({.name = "bitwise_not",
                     .inputs = {{{5, 7}, -9, 9, dtype}},
                     .run = [](const std::vector<Tensor>& in) { return std::vector{~in[0]}; },
                     .reference =
                         [](const Arrays& in) {
                           Array y = in[0];
                           for (auto& value : y.values) value = -value - 1;
                           return Arrays{y};
                         },
                     .gradient = false});
  return cases;
}

inline std::vector<Case> is_close_cases() {
  auto near = binary_case(
      "is_close", {{{3, 4, 5}}, {{4, 1}}}, [](const Tensor& a, const Tensor& b) { return is_close(a, b, 0.3, 0.25); },
      [](double a, double b) { return std::fabs(a - b) <= 0.25 + 0.3 * std::fabs(b) ? 1.0 : 0.0; }, false);
  near.all_dtypes = false;
  return {near};
}

inline std::vector<Case> nextafter_cases() {
  return {binary_case(
      "nextafter", {{{3, 4, 5}}, {{4, 1}}}, nextafter,
      [](double a, double b) { return static_cast<double>(std::nextafter(static_cast<float>(a), static_cast<float>(b))); },
      false)};
}

inline const RegisterCases nextafter_registered{"nextafter", nextafter_cases};
inline const RegisterCases is_close_registered{"is_close", is_close_cases};
inline const RegisterCases polygamma_registered{"polygamma", polygamma_cases};
inline const RegisterCases bitwise_not_registered{"bitwise_not", bitwise_not_cases};

}  // namespace clnet::testing
