// What a device is tested with: small problems of every operation, each with its result in double precision, computed in the
// plainest way on the host.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "clnet/clnet.h"

namespace clnet::tools {

using Values = std::vector<double>;

/// As an index of a vector.
inline std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

struct Input {
  Shape shape;
  double low = -1, high = 1;
  Dtype dtype = Dtype::f32;  ///< f32 stands for every floating type; others are drawn from the integers low..high
};

/// The gradient of one input, given the output's.
inline std::vector<Tensor> gradient_of(const Tensor& output, const Tensor& output_gradient, const Tensor& input) {
  return gradients(std::span(&output, 1), std::span(&output_gradient, 1), std::span(&input, 1));
}

struct Problem {
  std::string op;  ///< whose solvers compete in it; empty: there is one way
  std::string name;
  std::vector<Input> inputs;
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> run = nullptr;
  std::function<std::vector<Values>(const std::vector<Values>&)> reference = nullptr;
  double terms = 1;                ///< of the longest sum: the error grows with them
  bool narrow = true;              ///< also in f16 and bf16
  std::string slow_to_build = {};  ///< a solver that a quick test leaves out here, unless it is the default choice
};

/// Those that a quick test runs; all, when `full`.
std::vector<Problem> make_problems(bool full);
/// One for each operation whose solvers are worth comparing by time, large enough to be told apart.
std::vector<Problem> make_timed_problems();

std::vector<Problem> make_matmul_problems(bool full);
std::vector<Problem> make_conv2d_problems(bool full);
std::vector<Problem> make_pool_problems(bool full);
std::vector<Problem> make_row_problems(bool full);
std::vector<Problem> make_plain_problems(bool full);
std::vector<Problem> make_attention_problems(bool full);
std::vector<Problem> make_recurrent_problems(bool full);

Problem matmul_problem(const Shape& a, const Shape& b, const MatmulOptions& options = {});
struct ConvShape {
  std::int64_t n, c, h, w, out, kernel;
  Conv2dFuncOptions options = {};
};
/// Forward, and the gradients of both inputs.
std::vector<Problem> conv2d_problems(const ConvShape& shape);

}  // namespace clnet::tools
