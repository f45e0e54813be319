// The process's generator, and tensors of random numbers. A tensor takes one offset; its elements are Philox's counter.
#include "lib/ops/random/random.h"

#include <mutex>

#include "clnet/error.h"
#include "clnet/ops.h"
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
    if (!is_floating(spec_.dtype)) throw DtypeError(std::string(name()) + ": needs f32, f16 or bf16, got " + to_string(spec_));
    return {spec_};
  }
  std::string expr(const Specs&) const override {
    const std::string arguments = "((ulong)a, (ulong)b, (ulong)i)";
    if (kind_ == Kind::normal) return "clnet_normal" + arguments;
    // As many bits as the storage holds below 1: rounding must not give 1.
    switch (spec_.dtype) {
      case Dtype::f16: return "floor(clnet_uniform" + arguments + " * 0x1p11f) * 0x1p-11f";
      case Dtype::bf16: return "floor(clnet_uniform" + arguments + " * 0x1p8f) * 0x1p-8f";
      default: return "clnet_uniform" + arguments;
    }
  }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors&) const override { return Tensors(2); }

 private:
  Kind kind_;
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
  const std::lock_guard lock(generator_mutex);
  return {as_scalar(generator.seed), as_scalar(generator.offset++)};
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

Tensor rand(const Shape& shape, Dtype dtype) { return random(Random::Kind::uniform, shape, dtype); }
Tensor randn(const Shape& shape, Dtype dtype) { return random(Random::Kind::normal, shape, dtype); }

}  // namespace clnet
