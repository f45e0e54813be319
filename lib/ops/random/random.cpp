// The process's generator, and tensors of random numbers. A tensor takes one offset; its elements are Philox's counter.
#include "lib/ops/random/random.h"

#include <fmt/format.h>

#include <limits>
#include <mutex>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/capture.h"
#include "lib/graph/op.h"

namespace clnet {

namespace {

std::mutex generator_mutex;
RandomState generator;

/// Inputs: seed and offset, i64 scalars, so that new numbers need no new program.
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
  Expression expr(const Specs&) const override {
    const std::string arguments = "((ulong)a, (ulong)b, (ulong)i)";
    if (kind_ == Kind::normal) return {"clnet_normal" + arguments};
    // As many bits as the storage holds below 1: rounding must not give 1.
    switch (spec_.dtype) {
      case Dtype::f16: return {"floor(clnet_uniform" + arguments + " * 0x1p11f) * 0x1p-11f"};
      case Dtype::bf16: return {"floor(clnet_uniform" + arguments + " * 0x1p8f) * 0x1p-8f"};
      default: return {"clnet_uniform" + arguments};
    }
  }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors&) const override { return Tensors(2); }

 private:
  Kind kind_;
  Spec spec_;
};

/// Inputs: seed, offset, the least number, and how many there are: 64 bits without a sign.
class RandomInteger : public Op {
 public:
  explicit RandomInteger(Spec spec) : spec_(std::move(spec)) {}
  std::string_view name() const override { return "randint"; }
  Fields fields() const override { return {{"shape", spec_.shape.extents()}, {"dtype", std::string(to_string(spec_.dtype))}}; }

  Specs infer(const Specs&) const override { return {spec_}; }
  Expression expr(const Specs&) const override {
    return {"(long)((ulong)c + clnet_below((ulong)d, (ulong)a, (ulong)b, (ulong)i))"};
  }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors&) const override { return Tensors(4); }

 private:
  Spec spec_;
};

Tensor random(Random::Kind kind, const Shape& shape, Dtype dtype) {
  auto source = ops::next_random_source();
  return apply(std::make_shared<Random>(kind, Spec{shape, dtype}), {std::move(source.seed), std::move(source.offset)});
}

Tensor as_scalar(std::uint64_t bits) { return Tensor::from_bytes(&bits, sizeof bits, {Shape{}, Dtype::i64}); }

}  // namespace

namespace ops {

RandomSource next_random_source() {
  RandomSource source;
  {
    const std::lock_guard lock(generator_mutex);
    source = {as_scalar(generator.seed), as_scalar(generator.offset++)};
  }
  if (auto* capture = capturing()) {
    const auto seed_now = [] {
      const std::lock_guard lock(generator_mutex);
      return as_scalar(generator.seed);
    };
    const auto next_offset = [] {
      const std::lock_guard lock(generator_mutex);
      return as_scalar(generator.offset++);
    };
    capture->add_drawn(source.seed, seed_now);
    capture->add_drawn(source.offset, next_offset);
  }
  return source;
}

}  // namespace ops

void manual_seed(std::uint64_t seed) { set_random_state({seed, 0}); }

RandomState random_state() {
  const std::lock_guard lock(generator_mutex);
  return generator;
}

void set_random_state(const RandomState& state) {
  const std::lock_guard lock(generator_mutex);
  generator = state;
}

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
  auto source = ops::next_random_source();
  const auto count = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  return apply(std::make_shared<RandomInteger>(Spec{shape, dtype}),
               {std::move(source.seed), std::move(source.offset), as_scalar(static_cast<std::uint64_t>(low)), as_scalar(count)});
}

Tensor randperm(std::int64_t count) {
  if (count < 0) throw ShapeError(fmt::format("randperm: {} numbers", count));
  // Of 2^64 keys hardly two are equal.
  return argsort(randint(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), {count}));
}

Tensor rand(const Shape& shape, Dtype dtype) { return random(Random::Kind::uniform, shape, dtype); }
Tensor randn(const Shape& shape, Dtype dtype) { return random(Random::Kind::normal, shape, dtype); }

}  // namespace clnet
