// Tensors of random numbers. A tensor takes one offset of the thread's generator; its elements are Philox's counter.
#include "lib/ops/random/random.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/capture.h"
#include "lib/graph/op.h"

namespace clnet {

namespace {

/// Inputs: seed and offset, i64 scalars, so that new numbers need no new program; and the first element, where there is one.
class Random : public Op {
 public:
  enum class Kind : std::uint8_t { uniform, normal };
  Random(Kind kind, Spec spec) : kind_(kind), spec_(std::move(spec)) {}
  std::string_view name() const override { return kind_ == Kind::uniform ? "rand" : "randn"; }
  Fields fields() const override { return {{"shape", spec_.shape.extents()}, {"dtype", std::string(to_string(spec_.dtype))}}; }

  Specs infer(const Specs&) const override {
    if (!is_floating(spec_.dtype))
      throw DtypeError(std::string(name()) + ": needs f32, f16, bf16 or f64, got " + to_string(spec_));
    return {spec_};
  }
  Expression expr(const Specs& inputs) const override {
    const auto arguments = "((ulong)a, (ulong)b, " + ops::random_index(inputs.size() > 2 ? "c" : "") + ")";
    if (kind_ == Kind::normal) return {"clnet_normal" + arguments};
    // As many bits as the storage holds below 1: rounding must not give 1.
    switch (spec_.dtype) {
      case Dtype::f16: return {"floor(clnet_uniform" + arguments + " * 0x1p11f) * 0x1p-11f"};
      case Dtype::bf16: return {"floor(clnet_uniform" + arguments + " * 0x1p8f) * 0x1p-8f"};
      default: return {"clnet_uniform" + arguments};
    }
  }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors&) const override { return Tensors(inputs.size()); }

 private:
  Kind kind_;
  Spec spec_;
};

/// Inputs: the least number, and how many there are, 64 bits without a sign; seed, offset and first element.
class RandomInteger : public Op {
 public:
  explicit RandomInteger(Spec spec) : spec_(std::move(spec)) {}
  std::string_view name() const override { return "randint"; }
  Fields fields() const override { return {{"shape", spec_.shape.extents()}, {"dtype", std::string(to_string(spec_.dtype))}}; }

  Specs infer(const Specs&) const override { return {spec_}; }
  Expression expr(const Specs& inputs) const override {
    return {"(long)((ulong)a + clnet_below((ulong)b, (ulong)c, (ulong)d, " + ops::random_index(inputs.size() > 4 ? "e" : "") +
            "))"};
  }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors&) const override { return Tensors(inputs.size()); }

 private:
  Spec spec_;
};

Tensor random(Random::Kind kind, const Shape& shape, Dtype dtype) {
  Tensors inputs;
  ops::next_random_source(shape).add_to(inputs);
  return clnet::apply(std::make_shared<Random>(kind, Spec{shape, dtype}), std::move(inputs));
}

Tensor as_scalar(std::uint64_t bits) { return Tensor::from_bytes(&bits, sizeof bits, {Shape{}, Dtype::i64}); }

/// Whether this thread computes rows of a batch, and how many.
std::optional<std::int64_t> rows_here() {
  const auto* stream = RandomStream::now();
  return stream ? std::optional(stream->part().rows) : std::nullopt;
}

Tensor integers(std::int64_t low, std::int64_t high, const Spec& spec, RandomRows rows) {
  const auto count = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  Tensors inputs{as_scalar(static_cast<std::uint64_t>(low)), as_scalar(count)};
  ops::next_random_source(spec.shape, rows).add_to(inputs);
  return clnet::apply(std::make_shared<RandomInteger>(spec), std::move(inputs));
}

}  // namespace

namespace ops {

void RandomSource::add_to(Tensors& inputs) const {
  inputs.push_back(seed);
  inputs.push_back(offset);
  if (first.defined()) inputs.push_back(first);
}

RandomSource next_random_source(const Shape& shape, RandomRows rows) {
  const auto draw = draw_at(take_random_position(), shape, rows);
  RandomSource source{as_scalar(draw.position.seed), as_scalar(draw.position.offset), {}};
  if (draw.first) source.first = as_scalar(*draw.first);
  if (auto* capture = capturing()) {
    const auto now = [shape, rows] { return draw_at(random_position(), shape, rows); };
    capture->add_drawn(source.seed, [now] { return as_scalar(now().position.seed); });
    capture->add_drawn(source.offset, [] { return as_scalar(take_random_position().offset); });
    if (draw.first) capture->add_drawn(source.first, [now] { return as_scalar(now().first.value_or(0)); });
    // Which tensors are rows of larger ones is part of the graph.
    capture->conditions.emplace_back([was = rows_here()] { return rows_here() == was; });
  }
  return source;
}

std::string random_index(std::string_view first) {
  return first.empty() ? "(ulong)i" : fmt::format("(ulong){} + (ulong)i", first);
}

}  // namespace ops

void manual_seed(std::uint64_t seed) { set_random_state({seed, 0}); }

RandomState random_state() {
  const auto position = random_position();
  return {position.seed, position.offset};
}

void set_random_state(const RandomState& state) { set_random_position({state.seed, state.offset}); }

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Dtype dtype) {
  std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  switch (dtype) {
    case Dtype::i64: break;
    case Dtype::i32:
      least = std::numeric_limits<std::int32_t>::min();
      most = std::numeric_limits<std::int32_t>::max();
      break;
    case Dtype::i8:
      least = -128;
      most = 127;
      break;
    case Dtype::u8:
      least = 0;
      most = 255;
      break;
    default: throw DtypeError(fmt::format("randint: needs i64, i32, i8 or u8, got {}", to_string(dtype)));
  }
  if (low >= high) throw Error(fmt::format("randint: there is no number from {} to below {}", low, high));
  if (low < least || high - 1 > most)
    throw Error(fmt::format("randint: {} does not hold the numbers from {} to below {}", to_string(dtype), low, high));
  return integers(low, high, {shape, dtype}, RandomRows::of_batch);
}

Tensor randperm(std::int64_t count) {
  if (count < 0) throw ShapeError(fmt::format("randperm: {} numbers", count));
  // Of 2^64 keys hardly two are equal. Rows of the whole batch's keys would have an order, but not the batch's.
  return argsort(integers(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
                          {{count}, Dtype::i64}, RandomRows::own));
}

Tensor rand(const Shape& shape, Dtype dtype) { return random(Random::Kind::uniform, shape, dtype); }
Tensor randn(const Shape& shape, Dtype dtype) { return random(Random::Kind::normal, shape, dtype); }

}  // namespace clnet
