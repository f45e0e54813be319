#include "clnet/tensor.h"

#include <fmt/format.h>

#include <cstring>

#include "clnet/error.h"
#include "lib/graph/node.h"

namespace clnet {

namespace {

template <class T>
Tensor scalar_of(T value, Dtype dtype) {
  return Tensor::from_bytes(&value, sizeof value, {Shape{}, dtype});
}

}  // namespace

Tensor Tensor::scalar(double value, Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return scalar_of(static_cast<float>(value), dtype);
    case Dtype::f16: return scalar_of(float_to_half(static_cast<float>(value)), dtype);
    case Dtype::bf16: return scalar_of(float_to_bfloat16(static_cast<float>(value)), dtype);
    case Dtype::i32: return scalar_of(static_cast<std::int32_t>(value), dtype);
    case Dtype::i64: return scalar_of(static_cast<std::int64_t>(value), dtype);
    case Dtype::u8: return scalar_of(static_cast<std::uint8_t>(value), dtype);
    case Dtype::boolean: return scalar_of(static_cast<std::uint8_t>(value != 0), dtype);
  }
  throw DtypeError("Tensor::scalar: not a dtype");
}

Tensor Tensor::from_bytes(const void* data, std::size_t bytes, const Spec& spec) {
  if (bytes != static_cast<std::size_t>(spec.bytes()))
    throw ShapeError(fmt::format("Tensor::from: {} bytes given, but {} takes {}", bytes, to_string(spec), spec.bytes()));
  std::vector<std::byte> content(bytes);
  if (bytes != 0) std::memcpy(content.data(), data, bytes);
  return make_leaf(spec, std::make_shared<HostValue>(std::move(content)));
}

const Spec& Tensor::spec() const {
  if (!node_) throw Error("an undefined tensor has no shape");
  return node_->outputs[static_cast<std::size_t>(output_)];
}

void Tensor::require_one_element() const {
  if (numel() != 1) throw ShapeError(fmt::format("item: needs one element, the tensor is {}", to_string(spec())));
}

}  // namespace clnet
