// Fourier transforms, windows and mel filters of ONNX files, beside their definitions in double precision.
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/onnx.h"
#include "tests/onnx/builder.h"
#include "tests/onnx/one_node.h"

using namespace clnet;
using namespace clnet::test;

namespace {

using Complexes = std::vector<std::complex<double>>;

Complexes transform_of(const Complexes& x, std::size_t length, bool inverse = false) {
  Complexes y(length);
  for (std::size_t k = 0; k < length; ++k) {
    for (std::size_t t = 0; t < std::min(length, x.size()); ++t)
      y[k] += x[t] * std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * static_cast<double>(k * t % length) /
                                         static_cast<double>(length));
    if (inverse) y[k] /= static_cast<double>(length);
  }
  return y;
}

Complexes numbers(std::size_t count) {
  Complexes out;
  for (std::size_t i = 0; i < count; ++i)
    out.emplace_back(static_cast<double>(i * 7 % 11) / 4 - 1, static_cast<double>(i * 5 % 13) / 8 - 0.5);
  return out;
}

/// {1, count, 2}.
Tensor tensor_of(const Complexes& x) {
  std::vector<float> values;
  for (const auto& each : x) values.insert(values.end(), {static_cast<float>(each.real()), static_cast<float>(each.imag())});
  return Tensor::from(values, {1, static_cast<std::int64_t>(x.size()), 2});
}

void check_pairs(const Tensor& y, const Complexes& expected, std::size_t count) {
  REQUIRE(y.shape() == Shape{1, static_cast<std::int64_t>(count), 2});
  const auto values = y.to_vector<double>();
  for (std::size_t k = 0; k < count; ++k) {
    CAPTURE(k);
    CHECK(values[2 * k] == Approx(expected[k].real()).margin(2e-4));
    CHECK(values[2 * k + 1] == Approx(expected[k].imag()).margin(2e-4));
  }
}

}  // namespace

TEST_CASE("DFT: a sum over roots of one, of primes and of lengths with factors") {
  for (const std::size_t length : {1, 2, 7, 12, 360, 131, 262}) {
    CAPTURE(length);
    const auto x = numbers(length);
    auto forward = one_node("DFT", 1), inverse = one_node("DFT", 1, {attribute("inverse", std::int64_t{1})});
    const Tensor y = forward.run({tensor_of(x)})[0];
    check_pairs(y, transform_of(x, length), length);
    check_pairs(inverse.run({tensor_of(x)})[0], transform_of(x, length, true), length);
    CHECK(all(is_close(inverse.run({y})[0], tensor_of(x), 1e-4, 1e-4)).item<bool>());
  }
}

TEST_CASE("DFT: half of the spectrum, another length, another axis") {
  auto real = numbers(10);
  for (auto& x : real) x = x.real();
  const Tensor x = slice(tensor_of(real), 2, 0, 1);
  auto half = one_node("DFT", 1, {attribute("onesided", std::int64_t{1})});
  const Tensor spectrum = half.run({x})[0];
  check_pairs(spectrum, transform_of(real, 10), 6);
  auto back = one_node("DFT", 1, {attribute("onesided", std::int64_t{1}), attribute("inverse", std::int64_t{1})});
  const Tensor y = back.run({spectrum})[0];
  CHECK(y.shape() == Shape{1, 10, 1});
  CHECK(all(is_close(y, x, 1e-4, 1e-4)).item<bool>());
  for (const std::int64_t length : {4, 16}) {
    auto other = one_node("DFT", 2);
    const Tensor z = other.run({x, Tensor::scalar(static_cast<double>(length), Dtype::i64)})[0];
    check_pairs(z, transform_of(real, static_cast<std::size_t>(length)), static_cast<std::size_t>(length));
  }
  // Set 17 has the axis as an attribute.
  auto along = one_node("DFT", 1, {attribute("axis", std::int64_t{0})}, 17);
  const Tensor z = along.run({transpose(x, 0, 1)})[0];
  check_pairs(transpose(z, 0, 1), transform_of(real, 10), 10);
}

TEST_CASE("DFT: gradients are those of its sums") {
  const Tensor x = tensor_of(numbers(12)), weight = tensor_of(numbers(12)) * 0.5;
  auto model = one_node("DFT", 1);
  const auto slope = gradients(sum(model.run({x})[0] * weight), {x})[0].to_vector<double>();
  // The transform's adjoint: its inverse times the length.
  auto w = numbers(12);
  const auto expected = transform_of(w, 12, true);
  for (std::size_t k = 0; k < 12; ++k) {
    CHECK(slope[2 * k] == Approx(6 * expected[k].real()).margin(1e-3));
    CHECK(slope[2 * k + 1] == Approx(6 * expected[k].imag()).margin(1e-3));
  }
}

TEST_CASE("STFT: the transform of each weighted frame") {
  auto signal = numbers(20);
  for (auto& x : signal) x = x.real();
  const std::vector<float> window{0.25F, 1, 0.5F, 0.75F, 1, 0.125F};
  auto model = one_node("STFT", 3);
  const Tensor y = model.run({slice(tensor_of(signal), 2, 0, 1), Tensor::scalar(5, Dtype::i64), Tensor::from(window)})[0];
  REQUIRE(y.shape() == Shape{1, 3, 4, 2});
  for (std::int64_t frame = 0; frame < 3; ++frame) {
    Complexes part;
    for (std::size_t i = 0; i < window.size(); ++i)
      part.push_back(signal[static_cast<std::size_t>(5 * frame) + i] * static_cast<double>(window[i]));
    check_pairs(select(y, 1, frame), transform_of(part, 6), 4);
  }
}

TEST_CASE("windows of cosines, periodic and symmetric") {
  const double pi = std::numbers::pi;
  for (const bool periodic : {true, false}) {
    const std::vector<std::string> attributes{attribute("periodic", std::int64_t{periodic})};
    const auto values = [&](const std::string& name) {
      return one_node(name, 1, attributes).run({Tensor::scalar(8, Dtype::i64)})[0].to_vector<double>();
    };
    const auto hann = values("HannWindow"), hamming = values("HammingWindow"), blackman = values("BlackmanWindow");
    REQUIRE(hann.size() == 8);
    for (std::size_t i = 0; i < 8; ++i) {
      const double at = static_cast<double>(i) / (periodic ? 8 : 7);
      CHECK(hann[i] == Approx(std::pow(std::sin(pi * at), 2)).margin(1e-6));
      CHECK(hamming[i] == Approx(25.0 / 46 - 21.0 / 46 * std::cos(2 * pi * at)));
      CHECK(blackman[i] == Approx(0.42 - 0.5 * std::cos(2 * pi * at) + 0.08 * std::cos(4 * pi * at)).margin(1e-6));
    }
  }
}

TEST_CASE("MelWeightMatrix: what ONNX's own evaluator gives") {
  const auto whole = [](double x) { return Tensor::scalar(x, Dtype::i64); };
  const auto y =
      one_node("MelWeightMatrix", 5).run({whole(8), whole(16), whole(8192), Tensor::scalar(0), Tensor::scalar(4096)})[0];
  REQUIRE(y.shape() == Shape{9, 8});
  const std::vector<float> expected{1, 1, 0, 0, 0, 0, 0, 0,  //
                                    0, 0, 1, 1, 0, 0, 0, 0,  //
                                    0, 0, 0, 0, 1, 0, 0, 0,  //
                                    0, 0, 0, 0, 0, 1, 0, 0,  //
                                    0, 0, 0, 0, 0, 0, 1, 0,  //
                                    0, 0, 0, 0, 0, 0, 0, 1,  //
                                    0, 0, 0, 0, 0, 0, 0, 0,  //
                                    0, 0, 0, 0, 0, 0, 0, 0,  //
                                    0, 0, 0, 0, 0, 0, 0, 0};
  CHECK(y.to_vector<float>() == expected);
}
