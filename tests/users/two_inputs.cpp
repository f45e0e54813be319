// A network of two inputs and two outputs: an image of 8x8 and three measurements give the shape in the image and its size. It is
// trained with a step function of its own, which weighs both losses, and measured by metrics of either output. Losses and metrics
// are compared with plain loops over the outputs.
#include <clnet/clnet.h>

#include <cmath>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace clnet;

namespace {

/// Crosses, squares and bars of a size and at a place; the measurements say how bright the image is, and two say nothing.
class Shapes : public data::Dataset {
 public:
  Shapes(std::int64_t size, std::uint64_t first) : size_(size), first_(first) {}
  std::int64_t size() const override { return size_; }
  data::Example get(std::int64_t i, std::uint64_t /*seed*/) const override {
    std::mt19937_64 random(first_ + static_cast<std::uint64_t>(i));
    const auto kind = static_cast<std::int32_t>(random() % 3);
    const int extent = 3 + static_cast<int>(random() % 4), top = static_cast<int>(random() % 3),
              left = static_cast<int>(random() % 3);
    const float light = 0.5F + static_cast<float>(random() % 100) / 100;
    std::vector<float> pixels(64, 0);
    for (int y = 0; y < extent && top + y < 8; ++y)
      for (int x = 0; x < extent && left + x < 8; ++x)
        if (kind == 0 ? x == extent / 2 || y == extent / 2 : kind == 1 ? x % (extent - 1) == 0 || y % (extent - 1) == 0 : x < 2)
          pixels[static_cast<std::size_t>((top + y) * 8 + left + x)] = light;
    const std::vector<float> measured{light, static_cast<float>(random() % 10) / 10, static_cast<float>(random() % 10) / 10};
    return {data::Array(pixels, Shape{1, 8, 8}, "image"), data::Array(kind, "kind"), data::Array(measured, Shape{3}, "measured"),
            data::Array(std::vector<float>{static_cast<float>(extent) / 6}, Shape{1}, "size")};
  }

 private:
  std::int64_t size_;
  std::uint64_t first_;
};

struct TwoHeads : nn::Module {
  nn::Sequential eyes{nn::Conv2d(1, 8, 3, {.padding = 1}),  relu, nn::MaxPool2d(2),
                      nn::Conv2d(8, 16, 3, {.padding = 1}), relu, nn::Flatten()};
  nn::Linear hands{3, 8}, both{16 * 4 * 4 + 8, 32}, kind{32, 3}, size{32, 1};
  TwoHeads() {
    add("eyes", eyes);
    add("hands", hands);
    add("both", both);
    add("kind", kind);
    add("size", size);
  }
  std::pair<Tensor, Tensor> operator()(const Tensor& image, const Tensor& measured) {
    const Tensor x = relu(both(cat({eyes(image), relu(hands(measured))}, 1)));
    return {kind(x), sigmoid(size(x))};
  }
};

}  // namespace

int main() {
  const Shapes training(600, 0), test(150, 10000);
  manual_seed(3);
  TwoHeads model;
  train::FitOptions options{.epochs = 8, .batch_size = 30, .optimizer = optim::AdamW(model, 3e-3), .validation = test};
  options.step_function = [&](nn::Module&, const data::Batch& batch) -> train::Step {
    const auto [kind, size] = model(batch["image"], batch["measured"]);
    const Tensor loss = cross_entropy(kind, batch["kind"]) + 5.0 * mse_loss(size, batch["size"]);
    return {loss, {kind, size}, {batch["kind"], batch["size"]}};
  };
  const metrics::Mean error("error", [](const Tensor& x, const Tensor& wanted) { return abs(x - wanted); });
  options.metrics = {metrics::Accuracy().on(0, 0), metrics::F1(3).on(0, 0), error.on(1, 1)};
  options.workers = 2;
  options.progress = false;
  const auto result = train::fit(model, training, options);
  const auto& last = *result.epochs.back().validation;

  // By hand, of all test samples at once.
  model.inference();
  double loss = 0, right = 0, off = 0;
  for (const auto& batch : data::batches(test, {.batch_size = 150})) {
    const auto [kind, size] = model(batch["image"], batch["measured"]);
    const auto x = kind.to_vector<double>(), s = size.to_vector<double>(), wanted = batch["size"].to_vector<double>();
    const auto labels = batch["kind"].to_vector<std::int32_t>();
    for (std::size_t i = 0; i < 150; ++i) {
      const auto truth = static_cast<std::size_t>(labels[i]);
      const double sum = std::exp(x[3 * i]) + std::exp(x[3 * i + 1]) + std::exp(x[3 * i + 2]);
      loss += (std::log(sum) - x[3 * i + truth] + 5 * (s[i] - wanted[i]) * (s[i] - wanted[i])) / 150;
      right += x[3 * i + truth] >= std::max({x[3 * i], x[3 * i + 1], x[3 * i + 2]}) ? 1.0 / 150 : 0;
      off += std::abs(s[i] - wanted[i]) / 150;
    }
  }
  const auto check = [](const std::string& name, double got, double wanted) {
    std::cout << name << ": " << (std::abs(got - wanted) < 1e-4 ? "right" : "WRONG") << '\n';
  };
  check("loss", last.loss, loss);
  check("accuracy", last.metrics[0].value, right);
  check("mean error", last.metrics[2].value, off);
  std::cout << "the accuracy of several outputs is " << last.accuracy << '\n';
  std::cout << "accuracy above 0.9: " << (right > 0.9 ? "yes" : "no")
            << ", sizes off by less than 0.1: " << (off < 0.1 ? "yes" : "no") << '\n';

  // The same by evaluate(), which has to leave out no last batch.
  train::EvaluateOptions again;
  again.batch_size = 40;
  again.step_function = options.step_function;
  again.metrics = options.metrics;
  const auto scores = train::evaluate(model, test, again);
  check("loss again", scores.loss, loss);
  check("f1 again", scores.metrics[1].value, last.metrics[1].value);
}
