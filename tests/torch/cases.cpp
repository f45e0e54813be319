#include "tests/torch/cases.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <exception>

namespace clnet::torch {

Tensor Given::operator[](const std::string& name) const {
  const auto found = inputs.find(name);
  return found == inputs.end() ? Tensor{} : found->second;
}

double Given::number(const char* name, double otherwise) const {
  const auto found = attributes.find(name);
  return found == attributes.end() || found->is_null() ? otherwise : found->get<double>();
}

std::int64_t Given::integer(const char* name, std::int64_t otherwise) const {
  const auto found = attributes.find(name);
  return found == attributes.end() || found->is_null() ? otherwise : found->get<std::int64_t>();
}

bool Given::flag(const char* name, bool otherwise) const {
  const auto found = attributes.find(name);
  return found == attributes.end() || found->is_null() ? otherwise : found->get<bool>();
}

std::string Given::text(const char* name, const std::string& otherwise) const {
  const auto found = attributes.find(name);
  return found == attributes.end() || found->is_null() ? otherwise : found->get<std::string>();
}

std::vector<std::int64_t> Given::axes(const char* name, std::size_t count, std::int64_t otherwise) const {
  const auto found = attributes.find(name);
  if (found == attributes.end() || found->is_null()) return std::vector<std::int64_t>(count, otherwise);
  if (found->is_number()) return std::vector<std::int64_t>(count, found->get<std::int64_t>());
  auto result = found->get<std::vector<std::int64_t>>();
  if (result.size() == 1) result.resize(count, result[0]);
  if (result.size() != count) throw Failed(fmt::format("{} has {} numbers, not {}", name, result.size(), count));
  return result;
}

Reduction Given::reduction() const {
  const auto name = text("reduction", "mean");
  if (name == "none") return Reduction::none;
  if (name == "sum") return Reduction::sum;
  if (name == "mean" || name == "batchmean") return Reduction::mean;
  throw Failed("unknown reduction " + name);
}

Results y(const Tensor& value) { return {{{"y", value}}, {}}; }

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
  } catch (const std::exception& error) {
    fmt::print("failed {}: {}\n", name, error.what());
    ++failed_;
  }
  std::fflush(stdout);
}

int Count::finish() const {
  fmt::print("{} passed, {} failed\n", passed_, failed_);
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
