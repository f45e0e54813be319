// Gradients of gradients, of the operations whose backward is an operation of its own: those of the same formula written with
// elementwise operations and reductions are what they must be.
#include <catch2/catch.hpp>
#include <functional>

#include "clnet/clnet.h"
#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

/// The gradients of a weighted sum of the first gradients of f, with respect to all inputs.
std::vector<Tensor> second(const Function& f, const std::vector<Tensor>& inputs) {
  const Tensor y = f(inputs);
  const auto first = gradients(sum(y * make_tensor(y.shape(), 50)), inputs);
  Tensor mixed = Tensor::scalar(0);
  for (std::size_t i = 0; i < first.size(); ++i) mixed = mixed + sum(first[i] * make_tensor(first[i].shape(), 60 + i));
  return gradients(mixed, inputs);
}

void same_second_order(const Function& f, const Function& composed, const std::vector<Tensor>& inputs) {
  const auto got = second(f, inputs), want = second(composed, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    compare("input " + std::to_string(i), to_array(got[i]), to_array(want[i]), 1e-5);
}

Tensor normalized(const Tensor& x, const Dims& dims) {
  const Tensor centered = x - mean(x, dims, true);
  return centered * rsqrt(mean(square(centered), dims, true) + 1e-5);
}

}  // namespace

TEST_CASE("gradients of batch_norm_training's gradients") {
  for (const Shape& shape : {Shape{4, 3, 5, 2}, Shape{6, 4}}) {
    const Shape channels{shape[1]};
    const Shape broadcast_to = shape.rank() == 4 ? Shape{1, 3, 1, 1} : Shape{1, 4};
    const Dims dims = shape.rank() == 4 ? Dims{0, 2, 3} : Dims{0};
    const std::vector<Tensor> inputs{make_tensor(shape, 1, -2, 3), make_tensor(channels, 2, 0.5, 2), make_tensor(channels, 3)};
    same_second_order(
        [](const auto& in) {
          const auto result = batch_norm_training(in[0], in[1], in[2]);
          return result.y + sum(square(result.mean)) + sum(square(result.var));
        },
        [&](const auto& in) {
          return normalized(in[0], dims) * reshape(in[1], broadcast_to) + reshape(in[2], broadcast_to) +
                 sum(square(mean(in[0], dims))) + sum(square(var(in[0], dims)));
        },
        inputs);
    same_second_order([](const auto& in) { return batch_norm_training(in[0], {}, {}).y; },
                      [&](const auto& in) { return normalized(in[0], dims); }, {inputs[0]});
  }
}

TEST_CASE("gradients of layer_norm's gradients") {
  const std::vector<Tensor> inputs{make_tensor({3, 4, 5}, 1, -2, 3), make_tensor({4, 5}, 2, 0.5, 2), make_tensor({4, 5}, 3)};
  same_second_order([](const auto& in) { return layer_norm(in[0], 2, in[1], in[2]); },
                    [](const auto& in) {
                      return normalized(in[0], {1, 2}) * in[1] + in[2];
                    },
                    inputs);
  same_second_order([](const auto& in) { return layer_norm(in[0], 1, {}, {}); },
                    [](const auto& in) { return normalized(in[0], {2}); }, {inputs[0]});
}

TEST_CASE("gradients of softmax's and cross_entropy's gradients") {
  const std::vector<Tensor> inputs{make_tensor({4, 5}, 1, -2, 3)};
  const auto logarithm = [](const Tensor& x) { return x - log(sum(exp(x), {1}, true)); };
  same_second_order([](const auto& in) { return log_softmax(in[0], 1); }, [&](const auto& in) { return logarithm(in[0]); },
                    inputs);
  same_second_order([](const auto& in) { return softmax(in[0], 1); }, [&](const auto& in) { return exp(logarithm(in[0])); },
                    inputs);

  const Tensor targets = Tensor::from({3, 0, -100, 1});
  const Tensor chosen = Tensor::from({0.f, 0.f, 0.f, 1.f, 0.f,  //
                                      1.f, 0.f, 0.f, 0.f, 0.f,  //
                                      0.f, 0.f, 0.f, 0.f, 0.f,  //
                                      0.f, 1.f, 0.f, 0.f, 0.f},
                                     {4, 5});
  const Tensor counts = sum(chosen, {1}, true);
  same_second_order([&](const auto& in) { return square(cross_entropy(in[0], targets)); },
                    [&](const auto& in) { return square(sum(chosen * logarithm(in[0])) / 3.0); }, inputs);
  same_second_order(
      [&](const auto& in) {
        return square(cross_entropy(in[0], targets, {.weight = in[1], .label_smoothing = 0.2, .reduction = Reduction::sum}));
      },
      [&](const auto& in) { return square(sum(logarithm(in[0]) * in[1] * (chosen * 0.8 + counts * 0.04))); },
      {inputs[0], make_tensor({5}, 4, 0.5, 2)});
}

TEST_CASE("gradients of the gradients of reductions") {
  const std::vector<Tensor> inputs{make_tensor({4, 5}, 1, 0.5, 2)};
  same_second_order([](const auto& in) { return prod(in[0], {1}); }, [](const auto& in) { return exp(sum(log(in[0]), {1})); },
                    inputs);
  same_second_order([](const auto& in) { return var(in[0], {0}); },
                    [](const auto& in) { return (sum(square(in[0]), {0}) - square(sum(in[0], {0})) / 4.0) / 3.0; }, inputs);
}
