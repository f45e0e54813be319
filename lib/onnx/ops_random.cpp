// Random numbers and dropout, drawn by clnet's generator: manual_seed() repeats them, a node's own seed does not.
#include "clnet/ops/elementwise.h"
#include "clnet/ops/random.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/runner.h"

namespace clnet::onnx {
namespace {

/// Before operator set 12 training is the module's, later the node's own input or, where it is left out or false, the module's.
Outputs dropout_of(const Call& call) {
  const auto& options = call.runner().options();
  const double ratio = call.opset() < 12 ? call.attribute("ratio", 0.5) : call.has(1) ? call.number(1) : 0.5;
  const bool trains = options.training || (call.opset() >= 12 && call.has(2) && call.integer(2) != 0);
  const Tensor& x = call.x(0);
  if (!trains || ratio == 0) {
    Outputs out{call.in(0)};
    if (call.wants(1)) out.emplace_back(full(x.shape(), 1, Dtype::boolean));
    return out;
  }
  if (!call.wants(1)) return {call.give(dropout(x, ratio))};
  const Tensor kept = greater_equal(rand(x.shape()), ratio);
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
