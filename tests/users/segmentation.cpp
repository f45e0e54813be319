// Trains a segmentation on a dataset of its own, and checks the metric against counts on the host.
#include <clnet/clnet.h>

#include <cmath>
#include <iostream>
#include <random>

using namespace clnet;

class Boxes : public data::Dataset {  // squares of two intensities in noise
 public:
  Boxes(std::int64_t count, unsigned first) : count_(count), first_(first) {}
  std::int64_t size() const override { return count_; }
  data::Example get(std::int64_t i, std::uint64_t /*seed*/) const override {
    std::mt19937 random(first_ + static_cast<unsigned>(i));
    std::normal_distribution<float> noise(0.0F, 0.15F);
    std::vector<float> pixels(256);
    std::vector<std::int32_t> kinds(256, 0);
    for (int kind = 1; kind <= 2; ++kind) {
      const int top = static_cast<int>(random() % 10), left = static_cast<int>(random() % 10);
      for (int y = top; y < top + 6; ++y)
        for (int x = left; x < left + 6; ++x) kinds[y * 16 + x] = kind;
    }
    for (int p = 0; p < 256; ++p) pixels[p] = noise(random) + 0.5F * static_cast<float>(kinds[p]);
    return {data::Array(pixels, Shape{1, 16, 16}, "image"), data::Array(kinds, Shape{16, 16}, "mask")};
  }

 private:
  std::int64_t count_;
  unsigned first_;
};

int main() {
  manual_seed(1);
  const Boxes training(160, 0), test(30, 1000);
  nn::Sequential model{nn::Conv2d(1, 8, 3, {.padding = 1}), relu, nn::Conv2d(8, 8, 3, {.padding = 1}), relu, nn::Conv2d(8, 3, 1)};
  train::FitOptions options{
      .epochs = 4, .batch_size = 16, .optimizer = optim::Adam(model, 1e-2), .validation = test, .progress = false};
  options.metrics = {metrics::MeanIoU(3)};
  const auto result = train::fit(model, training, options);
  const double reported = result.epochs.back().validation->metrics[0].value;

  model.inference();
  double both[3] = {}, either[3] = {};
  for (const auto& [x, mask] : data::batches(test, {.batch_size = 7})) {
    const auto guess = model(x).argmax(1).to_vector<std::int64_t>(), truth = mask.to_vector<std::int64_t>();
    for (std::size_t i = 0; i < truth.size(); ++i)
      for (int c = 0; c < 3; ++c) {
        both[c] += guess[i] == c && truth[i] == c;
        either[c] += guess[i] == c || truth[i] == c;
      }
  }
  const double counted = (both[0] / either[0] + both[1] / either[1] + both[2] / either[2]) / 3;
  const bool right = std::abs(reported - counted) < 1e-6 && counted > 0.6;
  std::cout << "mean IoU as counted on the host: " << (right ? "right" : "WRONG") << '\n';
}
