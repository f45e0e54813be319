// Fourier transforms, windows and mel filters.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numbers>

#include "clnet/ops/elementwise.h"
#include "clnet/ops/index.h"
#include "clnet/ops/matmul.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/runner.h"

namespace clnet::onnx {
namespace {

constexpr std::int64_t most_signal_elements = 1 << 26;

/// Complex numbers; without `imaginary` they are real.
struct Complex {
  Tensor real, imaginary;
};

Complex mapped(const Complex& x, const std::function<Tensor(const Tensor&)>& f) {
  return {f(x.real), x.imaginary.defined() ? f(x.imaginary) : Tensor{}};
}

/// The numbers exp(-pi i angle) of this shape, for angles from function `angle` of their place.
Complex turned(const Shape& shape, Dtype dtype, const std::function<double(std::int64_t)>& angle) {
  std::vector<double> real, imaginary;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    real.push_back(std::cos(std::numbers::pi * angle(i)));
    imaginary.push_back(-std::sin(std::numbers::pi * angle(i)));
  }
  return {Tensor::from(real, shape, dtype), Tensor::from(imaginary, shape, dtype)};
}

/// {rows, columns}: exp(-2 pi i row column / length).
Complex roots(std::int64_t rows, std::int64_t columns, std::int64_t length, Dtype dtype) {
  return turned({rows, columns}, dtype, [=](std::int64_t i) {
    return 2 * static_cast<double>(i / columns * (i % columns) % length) / static_cast<double>(length);
  });
}

/// x * y by `times`, which is a product by elements or of matrices.
Complex product(const Complex& x, const Complex& y, const std::function<Tensor(const Tensor&, const Tensor&)>& times) {
  if (!x.imaginary.defined()) return {times(x.real, y.real), times(x.real, y.imaginary)};
  return {times(x.real, y.real) - times(x.imaginary, y.imaginary), times(x.real, y.imaginary) + times(x.imaginary, y.real)};
}

/// The last dimension with this extent: cut off, or extended by zeros.
Tensor with_length(const Tensor& x, std::int64_t length) {
  const auto extent = x.size(-1);
  if (extent >= length) return extent == length ? x : slice(x, -1, 0, length);
  std::vector<std::int64_t> none(static_cast<std::size_t>(x.rank())), more(none);
  more.back() = length - extent;
  return pad(x, none, more, 0);
}

Complex conjugate(const Complex& x) { return {x.real, -x.imaginary}; }
Complex by_elements(const Complex& x, const Complex& y) {
  return product(x, y, [](const auto& a, const auto& b) { return a * b; });
}

Complex transformed(const Call& call, const Complex& x);

/// A transform of any length as a convolution with a chirp, which transforms of a power of two compute (Bluestein 1970).
Complex transformed_by_chirp(const Call& call, const Complex& x) {
  const auto length = x.real.size(-1);
  if (length > most_signal_elements / 4)
    call.refuse(fmt::format("a transform of {} elements, which have a large prime factor", length));
  const auto whole = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(2 * length)));
  const auto angle = [length](std::int64_t i) { return static_cast<double>(i * i % (2 * length)) / static_cast<double>(length); };
  const auto chirp = turned({length}, x.real.dtype(), angle);
  // Backwards in time, too: from the end.
  const auto filter =
      conjugate(turned({whole}, x.real.dtype(), [&](std::int64_t i) { return angle(std::min(i, whole - i) % length); }));
  const Tensor places = arange(whole);
  const Tensor near = logical_or(less(places, static_cast<double>(length)), greater(places, static_cast<double>(whole - length)));
  const auto kept = mapped(filter, [&](const Tensor& t) { return where(near, t, 0.0); });
  const auto spectrum = transformed(call, mapped(by_elements(x, chirp), [&](const Tensor& t) { return with_length(t, whole); }));
  auto y = conjugate(transformed(call, conjugate(by_elements(spectrum, transformed(call, kept)))));
  y = mapped(y, [&](const Tensor& t) { return with_length(t, length) / static_cast<double>(whole); });
  return by_elements(y, chirp);
}

/// The transform of the last dimension. A length of factors a and b is transformed by a, then by b (Cooley and Tukey 1965).
Complex transformed(const Call& call, const Complex& x) {
  constexpr std::int64_t by_matrix = 128;
  const auto length = x.real.size(-1);
  if (length <= by_matrix)
    return product(x, roots(length, length, length, x.real.dtype()), [](const auto& a, const auto& b) { return matmul(a, b); });
  auto factor = by_matrix;
  while (length % factor != 0) --factor;
  if (factor == 1) return transformed_by_chirp(call, x);
  const auto other = length / factor;
  auto parts = mapped(x, [&](const Tensor& t) { return transpose(unflatten(t, -1, {factor, other}), -1, -2); });
  parts = by_elements(transformed(call, parts), roots(other, factor, length, x.real.dtype()));     // {..., other, factor}
  parts = transformed(call, mapped(parts, [](const Tensor& t) { return transpose(t, -1, -2); }));  // {..., factor, other}
  return mapped(parts, [](const Tensor& t) { return flatten(transpose(t, -1, -2), -2, -1); });
}

/// From {..., 1} or {..., 2}. Numbers of 16 bits are computed in f32.
Complex complex_of(const Call& call, const Tensor& x) {
  if (x.rank() < 2 || x.size(-1) < 1 || x.size(-1) > 2)
    call.fail(fmt::format("the last extent of {} is neither 1 nor 2", to_string(x.shape())));
  const Tensor wide = x.dtype() == Dtype::f64 ? x : cast(x, Dtype::f32);
  return {select(wide, -1, 0), x.size(-1) == 2 ? select(wide, -1, 1) : Tensor{}};
}

Tensor pairs(const Complex& x) { return stack({x.real, x.imaginary}, -1); }

/// Along the last dimension but that of real and imaginary parts.
Tensor fourier(const Call& call, Complex x, std::int64_t length, bool inverse, bool one_sided) {
  if (length < 1 || length > most_signal_elements) call.fail(fmt::format("the length is {}", length));
  const auto half = length / 2 + 1;
  const auto fitted = [](std::int64_t extent) { return [extent](const Tensor& t) { return with_length(t, extent); }; };
  if (!inverse) {
    const auto y = transformed(call, mapped(x, fitted(length)));
    return pairs(one_sided ? mapped(y, fitted(half)) : y);
  }
  if (!x.imaginary.defined()) x.imaginary = zeros_like(x.real);
  if (one_sided) {
    // The second half has the conjugates of the first, backwards.
    const auto mirror = [&](const Tensor& t, double sign) {
      const Tensor first = with_length(t, half);
      if (length == half) return first;
      return clnet::concat({first, flip(slice(first, -1, 1, length - half + 1), {-1}) * sign}, -1);
    };
    x = {mirror(x.real, 1), mirror(x.imaginary, -1)};
  } else {
    x = mapped(x, fitted(length));
  }
  // The inverse is the conjugate of the conjugate's transform.
  const auto y = transformed(call, conjugate(x));
  const auto scale = 1 / static_cast<double>(length);
  if (one_sided) return unsqueeze(y.real * scale, -1);
  return pairs({y.real * scale, -y.imaginary * scale});
}

Outputs dft(const Call& call) {
  const Tensor& x = call.x(0);
  const bool inverse = call.attribute("inverse", std::int64_t{0}) != 0;
  const bool one_sided = call.attribute("onesided", std::int64_t{0}) != 0;
  const auto given = call.opset() < 20 ? call.attribute("axis", std::int64_t{1}) : call.has(2) ? call.integer(2) : -2;
  const auto axis = Call::axis(given, x.rank());
  if (axis == x.rank() - 1) call.fail("the axis is that of real and imaginary parts");
  const auto extent = x.size(axis);
  const auto length = call.has(1) ? call.integer(1) : inverse && one_sided ? 2 * (extent - 1) : extent;
  const auto to_end = [&](const Tensor& t) { return movedim(t, axis, -1); };
  const Tensor y = fourier(call, mapped(complex_of(call, x), to_end), length, inverse, one_sided);
  return {call.give(movedim(y, -2, axis))};
}

/// Frames of {N, T, 1 or 2}, each weighted and transformed.
Outputs stft(const Call& call) {
  const Tensor x = call.shape(0).rank() == 2 ? unsqueeze(call.x(0), 2) : call.x(0);
  if (x.rank() != 3) call.fail(fmt::format("the signal is {}", to_string(x.shape())));
  const auto step = call.integer(1), extent = x.size(1);
  const auto taken = call.has(2) ? call.shape(2).numel() : call.has(3) ? call.integer(3) : extent;
  const auto length = call.has(3) ? call.integer(3) : taken;
  if (step < 1 || length < 1 || length > extent || taken < 1 || taken > length)
    call.fail(fmt::format("frames of {} with a window of {} and a step of {} in {}", length, taken, step, extent));
  const auto frames = 1 + (extent - length) / step;
  if (frames > most_signal_elements / length) call.refuse(fmt::format("{} frames of {}", frames, length));
  std::vector<std::int64_t> places;
  for (std::int64_t frame = 0; frame < frames; ++frame)
    for (std::int64_t i = 0; i < taken; ++i) places.push_back(frame * step + i);
  const Tensor at = Tensor::from(places);
  const auto parts = mapped(complex_of(call, x), [&](const Tensor& t) {
    const Tensor y = unflatten(index_select(t, 1, at), 1, {frames, taken});
    return call.has(2) ? y * cast(call.x(2), y.dtype()) : y;
  });
  return {call.give(fourier(call, parts, length, false, call.attribute("onesided", std::int64_t{1}) != 0))};
}

/// a + b cos(2 pi i / n) + c cos(4 pi i / n).
Outputs cosine_window(const Call& call, double a, double b, double c) {
  const auto size = call.integer(0);
  if (size < 0 || size > most_signal_elements) call.fail(fmt::format("the size is {}", size));
  const auto period = static_cast<double>(call.attribute("periodic", std::int64_t{1}) != 0 ? size : size - 1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < size; ++i) {
    const double angle = size == 1 ? std::numbers::pi : 2 * std::numbers::pi * static_cast<double>(i) / period;
    values.push_back(a + b * std::cos(angle) + c * std::cos(2 * angle));
  }
  const auto type = call.runner().stored(call.element_type("output_datatype", ElementType::f32));
  return {RunValue(HostTensor::of(type, {size}, values))};
}
Outputs hann(const Call& call) { return cosine_window(call, 0.5, -0.5, 0); }
Outputs hamming(const Call& call) { return cosine_window(call, 25.0 / 46, -21.0 / 46, 0); }
Outputs blackman(const Call& call) { return cosine_window(call, 0.42, -0.5, 0.08); }

/// Triangles over the bins of a spectrum, with equal steps of mels.
Outputs mel_weights(const Call& call) {
  const auto count = call.integer(0), length = call.integer(1), rate = call.integer(2);
  const double low = call.number(3), high = call.number(4);
  if (count < 1 || length < 1 || length > most_signal_elements || rate < 1 || count > most_signal_elements / (length / 2 + 1))
    call.fail(fmt::format("{} bins of {} elements at a rate of {}", count, length, rate));
  if (!(low >= 0) || !(high >= low) || high > static_cast<double>(rate)) call.fail(fmt::format("edges of {} and {}", low, high));
  const auto bins = length / 2 + 1;
  const auto to_mels = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = to_mels(low), step = (to_mels(high) - first) / static_cast<double>(count + 2);
  const auto edge = [&](std::int64_t i) {
    const double hertz = 700 * (std::pow(10.0, (first + step * static_cast<double>(i)) / 2595) - 1);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    return std::min(static_cast<std::int64_t>(bin), bins);
  };
  std::vector<double> weights(static_cast<std::size_t>(bins * count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto left = edge(i), center = edge(i + 1), right = edge(i + 2);
    const auto set = [&](std::int64_t bin, double value) {
      if (bin < bins) weights[static_cast<std::size_t>(bin * count + i)] = value;
    };
    if (center == left) set(center, 1);
    for (auto bin = left; bin <= center && center > left; ++bin)
      set(bin, static_cast<double>(bin - left) / static_cast<double>(center - left));
    for (auto bin = center; bin < right; ++bin) set(bin, static_cast<double>(right - bin) / static_cast<double>(right - center));
  }
  const auto type = call.runner().stored(call.element_type("output_datatype", ElementType::f32));
  return {RunValue(HostTensor::of(type, {bins, count}, weights))};
}

}  // namespace

std::vector<Operator> signal_operators() {
  using enum Role;
  return {
      {"BlackmanWindow", 17, blackman, {structure}},     {"DFT", 17, dft, {data, structure}},
      {"HammingWindow", 17, hamming, {structure}},       {"HannWindow", 17, hann, {structure}},
      {"MelWeightMatrix", 17, mel_weights, {structure}}, {"STFT", 17, stft, {data, structure, data, structure}},
  };
}

}  // namespace clnet::onnx
