#include "tests/torch/cases.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <exception>

namespace clnet::torch {

Named load(const std::filesystem::path& file) {
  const auto tensors = io::load_safetensors(file).tensors;
  return {tensors.begin(), tensors.end()};
}

void compare(const std::string& what, const Tensor& got, const Tensor& want, double tolerance) {
  if (!got.defined()) throw Failed(what + " is missing");
  // The files hold a scalar as one element of shape [1].
  const bool fits = want.numel() == 1 ? got.numel() == 1 : got.shape() == want.shape();
  if (!fits) throw Failed(fmt::format("{} has shape {}, not {}", what, to_string(got.shape()), to_string(want.shape())));
  const auto g = cast(got, Dtype::f32).to_vector<float>(), w = cast(want, Dtype::f32).to_vector<float>();
  double largest = 1, worst = 0;
  for (const float value : w)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  for (std::size_t i = 0; i < w.size(); ++i) {
    if ((std::isnan(w[i]) && std::isnan(g[i])) || w[i] == g[i]) continue;
    const double difference = std::abs(static_cast<double>(g[i]) - static_cast<double>(w[i]));
    worst = std::max(worst, std::isnan(difference) ? INFINITY : difference);
  }
  if (!(worst / largest <= tolerance))
    throw Failed(fmt::format("{} is off by {:.3g} of {:.3g}, {:.3g} is allowed", what, worst, largest, tolerance * largest));
}

void Count::run(const std::string& name, const std::function<void()>& body) {
  try {
    body();
    fmt::print("passed {}\n", name);
    ++passed_;
  } catch (const LeftOut& reason) {
    fmt::print("left out {}: {}\n", name, reason.what());
    ++left_out_;
  } catch (const std::exception& error) {
    fmt::print("failed {}: {}\n", name, error.what());
    ++failed_;
  }
  std::fflush(stdout);
}

int Count::finish() const {
  fmt::print("{} passed, {} failed", passed_, failed_);
  if (left_out_ > 0) fmt::print(", {} left out", left_out_);
  fmt::print("\n");
  return failed_ == 0 && passed_ > 0 ? 0 : 1;
}

int main(int argc, char** argv, const std::function<int(const std::filesystem::path&)>& body) {
  if (argc != 2) {
    fmt::print(stderr, "usage: {} FOLDER\n", argv[0]);
    return 2;
  }
  try {
    return body(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[1], error.what());
    return 2;
  }
}

}  // namespace clnet::torch
