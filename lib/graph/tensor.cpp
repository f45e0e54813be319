#include "clnet/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "clnet/error.h"
#include "lib/graph/node.h"
#include "lib/graph/require.h"

namespace clnet {

namespace {

template <class T>
Tensor scalar_of(T value, Dtype dtype) {
  return Tensor::from_bytes(&value, sizeof value, {Shape{}, dtype});
}

/// Truncates to an integer; throws where the value does not fit.
template <class T>
Tensor integer_of(double value, Dtype dtype) {
  // The bound above the largest T is a power of two, hence exact.
  const double whole = std::trunc(value), end = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(whole >= static_cast<double>(std::numeric_limits<T>::min()) && whole < end))
    throw DtypeError(fmt::format("Tensor::scalar: {} does not fit in {}", value, to_string(dtype)));
  return scalar_of(static_cast<T>(whole), dtype);
}

}  // namespace

Tensor Tensor::scalar(double value, Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return scalar_of(static_cast<float>(value), dtype);
    case Dtype::f64: return scalar_of(value, dtype);
    case Dtype::f16: return scalar_of(float_to_half(static_cast<float>(value)), dtype);
    case Dtype::bf16: return scalar_of(float_to_bfloat16(static_cast<float>(value)), dtype);
    case Dtype::i32: return integer_of<std::int32_t>(value, dtype);
    case Dtype::i64: return integer_of<std::int64_t>(value, dtype);
    case Dtype::i8: return integer_of<std::int8_t>(value, dtype);
    case Dtype::u8: return integer_of<std::uint8_t>(value, dtype);
    case Dtype::boolean: return scalar_of(static_cast<std::uint8_t>(value != 0), dtype);
  }
  throw DtypeError("Tensor::scalar: not a dtype");
}

Tensor Tensor::from(std::span<const double> values, const Shape& shape, Dtype dtype) {
  if (!is_floating(dtype)) throw DtypeError(fmt::format("Tensor::from: doubles do not become {}", to_string(dtype)));
  if (dtype == Dtype::f64) return from_bytes(values.data(), values.size_bytes(), {shape, dtype});
  const std::vector<float> singles(values.begin(), values.end());
  if (dtype == Dtype::f32) return from(singles, shape);
  std::vector<std::uint16_t> halves(singles.size());
  std::transform(singles.begin(), singles.end(), halves.begin(), dtype == Dtype::f16 ? float_to_half : float_to_bfloat16);
  return from_bytes(halves.data(), halves.size() * sizeof halves[0], {shape, dtype});
}

Tensor Tensor::from_bytes(const void* data, std::size_t bytes, const Spec& spec) {
  if (bytes != static_cast<std::size_t>(spec.bytes()))
    throw ShapeError(bytes % size_of(spec.dtype) == 0
                         ? fmt::format("Tensor::from: {} elements given, but {} has {}", bytes / size_of(spec.dtype),
                                       to_string(spec), spec.shape.numel())
                         : fmt::format("Tensor::from: {} bytes given, but {} takes {}", bytes, to_string(spec), spec.bytes()));
  const auto* first = static_cast<const std::byte*>(data);
  std::vector<std::byte> content(first, first + bytes);
  return make_leaf(spec, std::make_shared<HostValue>(std::move(content)));
}

Tensor Tensor::from(const std::vector<bool>& values, const Shape& shape) {
  const std::vector<std::uint8_t> bytes(values.begin(), values.end());
  return from_bytes(bytes.data(), bytes.size(), {shape, Dtype::boolean});
}

Tensor::Tensor(std::shared_ptr<Node> node, int output, detail::Counted as) noexcept
    : node_(std::move(node)), output_(output), counted_(detail::Counted::not_at_all) {
  if (node_) count_as(as);
}

void Tensor::count_as(detail::Counted as) noexcept {
  const auto unit = [](detail::Counted which) {
    return which == detail::Counted::not_at_all ? 0 : std::uint64_t{1} << static_cast<int>(which);
  };
  // One atomic change, so that no thread sees it as neither.
  const auto change = unit(as) - (holders_ ? unit(counted_) : 0);
  auto& holders = node_->values[static_cast<std::size_t>(output_)].holders.both;
  if (change != 0) holders.fetch_add(change, std::memory_order_acq_rel);
  holders_ = as == detail::Counted::not_at_all ? nullptr : &holders;
  counted_ = as;
}

const Spec& Tensor::spec() const {
  if (!node_) throw Error("an undefined tensor has no shape");
  return node_->outputs[static_cast<std::size_t>(output_)];
}

std::int64_t Tensor::size(int dim) const { return shape()[require_dim("size", *this, dim)]; }

void Tensor::require_one_element() const {
  if (!node_) throw Error("item: the tensor is undefined");
  if (numel() != 1) throw ShapeError(fmt::format("item: needs one element, the tensor is {}", to_string(spec())));
}

}  // namespace clnet
