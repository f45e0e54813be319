// Gradients of gradients that random programs meet too rarely.
#include <catch2/catch.hpp>

#include "tests/fuzz/run.h"

namespace clnet::fuzz {
namespace {

TEST_CASE("second gradients of ctc_loss") {
  constexpr std::int64_t steps = 5, batch = 3, targets = 2, classes = 4;
  for (const auto dtype : {Dtype::f32, Dtype::f16}) {
    Program program;
    const auto add = [&](Step step, const Spec& spec) {
      step.outputs = {spec};
      program.steps.push_back(std::move(step));
      return Ref{program.steps.size() - 1, 0};
    };
    const auto leaf = [&](const Spec& spec, double low, double high) {
      const auto fill = is_floating(spec.dtype) ? Fill::smooth : Fill::integers;
      return add({.op = "leaf", .code = {}, .inputs = {}, .make = {}, .leaf = {spec, fill, low, high}, .outputs = {}}, spec);
    };
    const auto call = [&](const std::string& op, std::vector<Ref> inputs, const Spec& spec, auto make) {
      return add({.op = op,
                  .code = op,
                  .inputs = std::move(inputs),
                  .make = [=](const Tensors& in) { return Tensors{make(in)}; },
                  .leaf = {},
                  .outputs = {}},
                 spec);
    };
    const Spec of_x{{steps, batch, classes}, dtype}, scalar{{}, dtype};
    const auto x = leaf(of_x, -3, -0.5), labels = leaf({{batch, targets}, Dtype::i32}, 1, classes - 1);
    // Infinite losses are not judged: two equal targets need three steps.
    const auto lengths = leaf({{batch}, Dtype::i32}, 3, steps), own = leaf({{batch}, Dtype::i64}, 0, targets);
    const auto loss = call("ctc_loss", {x, labels, lengths, own}, scalar, [](const Tensors& in) {
      return ctc_loss(in[0], in[1], in[2], in[3], {.reduction = Reduction::sum, .zero_infinity = true});
    });
    const auto gradient = [](const Tensors& in) { return gradients(in[0], {in[1]})[0]; };
    const auto first = call("gradients", {loss, x}, of_x, gradient);
    const auto squares = call("sum", {first}, scalar, [](const Tensors& in) { return sum(square(in[0])); });
    const auto second = call("gradients", {squares, x}, of_x, gradient);
    program.evaluations = {{program.steps.size(), {first, second}}};
    for (program.seed = 1; program.seed <= 5; ++program.seed) {
      const auto outcome = run(program, {.gradients = true});
      INFO(outcome.fault.value_or(""));
      CHECK_FALSE(outcome.fault);
      CHECK(outcome.judged == outcome.elements);
    }
  }
}

}  // namespace
}  // namespace clnet::fuzz
