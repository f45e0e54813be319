// What elementwise operations mean, and tensors that are made from numbers.
#include "tests/fuzz/interpret.h"
#include "tests/reference/elementwise/elementwise.h"
#include "tests/reference/random/philox.h"

namespace clnet::fuzz {

using namespace testing::reference;

namespace {

Arrays by_formula(const Call& call) {
  std::vector<double> parameters;
  const auto expression = call.node.op->expr(specs_of(call.node.inputs));
  parameters.insert(parameters.end(), expression.parameters.begin(), expression.parameters.end());
  parameters.resize(3);
  return {elementwise(*find_formula(call.node.op->name()), call.in, parameters.data(), call.shape())};
}

Arrays arange(const Call& call) {
  Array y(call.shape());
  for (std::int64_t i = 0; i < y.numel(); ++i) y[i] = call.in[0][0] + call.in[1][0] * static_cast<double>(i);
  return {y};
}

Arrays random_uniform(const Call& call) {
  // As many bits as the dtype holds below 1.
  const double steps = call.dtype() == Dtype::f16 ? 0x1p11 : call.dtype() == Dtype::bf16 ? 0x1p8 : 0x1p24;
  Array y(call.shape());
  for (std::int64_t i = 0; i < y.numel(); ++i)
    y[i] = std::floor(philox_uniform(as_unsigned(call.in[0]), as_unsigned(call.in[1]), static_cast<std::uint64_t>(i)) * steps) /
           steps;
  return {y};
}

Arrays random_normal(const Call& call) {
  Array y(call.shape());
  for (std::int64_t i = 0; i < y.numel(); ++i)
    y[i] = philox_normal(as_unsigned(call.in[0]), as_unsigned(call.in[1]), static_cast<std::uint64_t>(i));
  return {y};
}

Arrays dropout(const Call& call) {
  const double p = call.number("p");
  Array y = call.in[0];
  const Array &seed = call.in[1], &offset = call.in[2];
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const double draw = philox_uniform(as_unsigned(seed), as_unsigned(offset), static_cast<std::uint64_t>(i));
    y[i] = draw < static_cast<double>(static_cast<float>(p)) ? 0 : y[i] / (1 - p);
  }
  return {y};
}

}  // namespace

Meanings elementwise_meanings() {
  Meanings meanings{{"arange", {arange}}, {"rand", {random_uniform, true}}, {"randn", {random_normal}}, {"dropout", {dropout}}};
  for (const auto& formula : formulas) meanings[formula.name] = {by_formula, formula.exact};
  // A count that is rounded down behind an expansion of some thirty operations.
  meanings["poisson"].slack = 16;
  // 1 + erf(x) and 1 + tanh(x) of an x far below 0, and 1 less an output that is nearly 1.
  for (const auto* name : {"gelu_erf", "gelu_tanh", "tanh_gradient", "sigmoid_gradient"})
    meanings[name].terms = [](const Call& call) { return call.in[0]; };
  // 1 less what lies above.
  meanings["normal_cdf"].terms = [](const Call& call) {
    Array ones(call.shape());
    for (auto& value : ones.values) value = 1;
    return ones;
  };
  return meanings;
}

}  // namespace clnet::fuzz
