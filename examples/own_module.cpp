// A module of one's own, with a parameter of its own, trained by fit() on data made up here: points on two spirals.
#include <clnet/clnet.h>

#include <cmath>
#include <exception>
#include <iostream>

using namespace clnet;

/// x + scale * second(tanh(first(x))): starts as the identity, since `scale` starts at 0.
struct Residual : nn::Module {
  nn::Linear first, second;
  nn::Parameter scale;

  explicit Residual(std::int64_t width) : first{width, width}, second{width, width}, scale(add_parameter("scale", zeros({1}))) {
    add("first", first);
    add("second", second);
  }
  Tensor forward(const Tensor& x) override { return x + scale * second(tanh(first(x))); }
  std::string kind() const override { return "Residual"; }
};

data::ArrayDataset spirals(int count, float shift) {
  std::vector<float> points;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < count; ++i) {
    const int label = i % 2;
    const float turn = 3.0F * (static_cast<float>(i) + shift) / static_cast<float>(count),
                angle = 2 * turn + 3.14159F * static_cast<float>(label);
    points.push_back(turn * std::cos(angle));
    points.push_back(turn * std::sin(angle));
    labels.push_back(label);
  }
  return data::from_arrays(std::move(points), {2}, std::move(labels), 2);
}

int main() try {
  const auto train = spirals(1000, 0), test = spirals(200, 0.5F);
  manual_seed(1);
  auto model = nn::Sequential{nn::Linear(2, 32), Residual{32}, Residual{32}, nn::Linear(32, 2)};
  std::cout << model.summary({2});
  const auto result = train::fit(model, train,
                                 {.epochs = 40,
                                  .batch_size = 50,
                                  .optimizer = optim::Adam(model, 1e-2),
                                  .schedule = optim::cosine(1e-2, 40 * 20),
                                  .validation = test,
                                  .progress = false});
  std::cout << "accuracy " << result.epochs.back().validation->accuracy << '\n';
  return result.epochs.back().validation->accuracy > 0.95 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "own_module: " << error.what() << '\n';
  return 1;
}
