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

TEST_CASE("gradients of the gradients of products with zeros") {
  // Multiplied one by one.
  const auto product = [](const Tensor& x, int dim) {
    Tensor result = slice(x, dim, 0, 1);
    for (std::int64_t i = 1; i < x.size(dim); ++i) result = result * slice(x, dim, i, i + 1);
    return squeeze(result, dim);
  };
  const Tensor x = Tensor::from({2.F, 0.F, 3.F,  -1.F,  //
                                 0.F, 4.F, 0.F,  5.F,   //
                                 0.F, 0.F, 2.F,  0.F,   //
                                 0.F, 0.F, 0.F,  0.F,   //
                                 1.F, 2.F, -3.F, 4.F},
                                {5, 4});
  const Tensor pair = Tensor::from({0.F, 3.F, 0.F, -2.F}, {2, 2});
  for (int dim : {0, 1})
    same_second_order([=](const auto& in) { return prod(in[0], {dim}); }, [=](const auto& in) { return product(in[0], dim); },
                      {x});
  same_second_order([](const auto& in) { return prod(in[0]); }, [=](const auto& in) { return product(reshape(in[0], {4}), 0); },
                    {pair});
  // With one zero at most, those of any order.
  const auto order = [](const Function& f) { return [f](const std::vector<Tensor>& in) { return second(f, in)[0]; }; };
  const Tensor one = Tensor::from({2.F, 0.F, 3.F, -1.F, 1.F, 2.F, -3.F, 4.F}, {2, 4});
  same_second_order(order([](const auto& in) { return prod(in[0], {1}); }),
                    order([=](const auto& in) { return product(in[0], 1); }), {one});

  // Places with none, one, two and three zeros among the source's elements, and one that none goes to.
  const Tensor indices = Tensor::from<std::int64_t>({0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3});
  const Tensor source = Tensor::from({2.F, 3.F, 0.F, 4.F, -1.F, 0.F, 5.F, 0.F, 0.F, 0.F, 0.F});
  const std::vector<std::int64_t> ends{0, 2, 5, 8, 11, 11};
  for (const bool own : {true, false})
    for (const float there : {7.F, 0.F})
      same_second_order([=](const auto& in) { return scatter_reduce(in[0], 0, indices, in[1], ScatterReduction::prod, own); },
                        [=](const auto& in) {
                          std::vector<Tensor> places;
                          for (std::int64_t i = 0; i < 5; ++i) {
                            const auto begin = ends[static_cast<std::size_t>(i)], end = ends[static_cast<std::size_t>(i) + 1];
                            const Tensor self = slice(in[0], 0, i, i + 1);
                            const Tensor of_source = begin < end ? reshape(product(slice(in[1], 0, begin, end), 0), {1}) : self;
                            places.push_back(begin == end || !own ? of_source : self * of_source);
                          }
                          return concat(places, 0);
                        },
                        {Tensor::from({there, 2.F, there, 3.F, there}), source});
}

TEST_CASE("the gradient of a product with a zero is 0 beside infinities") {
  const Tensor x = Tensor::from({0.F, 1e30F, 1e30F});
  CHECK(gradients(prod(x), {x})[0].to_vector<float>() == std::vector<float>{INFINITY, 0, 0});
  const Tensor source = Tensor::from({0.F, 1e30F, 1e30F, 0.F}), indices = zeros({4}, Dtype::i64);
  CHECK(gradients(sum(scatter_reduce(ones({1}), 0, indices, source, ScatterReduction::prod)), {source})[0].to_vector<float>() ==
        std::vector<float>{0, 0, 0, 0});
}
