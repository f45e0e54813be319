// Random numbers and dropout, drawn by clnet's generator: manual_seed() repeats them. A node's own seed counts only for a Dropout
// that trains by itself.
#include <random>

#include "clnet/ops/elementwise.h"
#include "clnet/ops/random.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/runner.h"

namespace clnet::onnx {
namespace {

/// What ONNX's own evaluator keeps of a node with a seed: NumPy's uniform numbers from MT19937, of 53 bits each. Each run keeps
/// the same elements.
Tensor kept_by_seed(const Shape& shape, std::int64_t seed, double ratio) {
  std::mt19937 generator(static_cast<std::uint32_t>(seed));
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    const auto high = static_cast<double>(generator() >> 5), low = static_cast<double>(generator() >> 6);
    kept.push_back((high * 67108864.0 + low) / 9007199254740992.0 >= ratio ? 1 : 0);
  }
  return to_tensor(HostTensor::of(ElementType::boolean, shape, kept));
}

/// Before operator set 12 training is the module's, later the node's own input or, where it is left out or false, the module's.
Outputs dropout_of(const Call& call) {
  const auto& options = call.runner().options();
  const double ratio = call.opset() < 12 ? call.attribute("ratio", 0.5) : call.has(1) ? call.number(1) : 0.5;
  const bool asked = call.opset() >= 12 && call.has(2) && call.integer(2) != 0, trains = options.training || asked;
  const Tensor& x = call.x(0);
  if (!trains || ratio == 0) {
    Outputs out{call.in(0)};
    if (call.wants(1)) out.emplace_back(full(x.shape(), 1, Dtype::boolean));
    return out;
  }
  // The module's training draws anew each time, whatever the seed.
  const auto* seed = asked && !options.training ? call.attribute("seed") : nullptr;
  if (!call.wants(1) && !seed) return {call.give(dropout(x, ratio))};
  const Tensor kept = seed ? kept_by_seed(x.shape(), seed->integer, ratio) : greater_equal(rand(x.shape()), ratio);
  return {call.give(where(kept, x / (1 - ratio), 0.0)), RunValue(kept)};
}

ElementType type_of_draw(const Call& call, ElementType otherwise) {
  return call.runner().stored(call.element_type("dtype", otherwise));
}

RunValue drawn(const Call& call, const Shape& shape, ElementType type, bool normals) {
  const Tensor x = normals
                       ? randn(shape) * call.attribute("scale", 1.0) + call.attribute("mean", 0.0)
                       : rand(shape) * (call.attribute("high", 1.0) - call.attribute("low", 0.0)) + call.attribute("low", 0.0);
  return call.give_as(x, type);
}

Outputs random_normal(const Call& call) {
  return {drawn(call, Shape(call.integers("shape")), type_of_draw(call, ElementType::f32), true)};
}
Outputs random_uniform(const Call& call) {
  return {drawn(call, Shape(call.integers("shape")), type_of_draw(call, ElementType::f32), false)};
}
Outputs random_normal_like(const Call& call) { return {drawn(call, call.shape(0), type_of_draw(call, call.type(0)), true)}; }
Outputs random_uniform_like(const Call& call) { return {drawn(call, call.shape(0), type_of_draw(call, call.type(0)), false)}; }

Outputs bernoulli_of(const Call& call) {
  return {call.give_as(less(rand(call.shape(0)), cast(call.x(0), Dtype::f32)), type_of_draw(call, call.type(0)))};
}

Outputs multinomial_of(const Call& call) {
  const auto count = call.attribute("sample_size", std::int64_t{1});
  return {call.give_as(multinomial(exp(call.x(0)), count, true), type_of_draw(call, ElementType::i32))};
}

}  // namespace

std::vector<Operator> random_operators() {
  using enum Role;
  return {
      {"Bernoulli", 15, bernoulli_of, {}, {}, true},
      {"Dropout", 1, dropout_of, {data, structure}, {}, true},
      {"Multinomial", 7, multinomial_of, {}, {}, true},
      {"RandomNormal", 1, random_normal, {}, {}, true},
      {"RandomNormalLike", 1, random_normal_like, {}, {}, true},
      {"RandomUniform", 1, random_uniform, {}, {}, true},
      {"RandomUniformLike", 1, random_uniform_like, {}, {}, true},
  };
}

}  // namespace clnet::onnx
