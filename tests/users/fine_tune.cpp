// Trains a small convolutional network on four kinds of images, freezes its body, puts a head for two other kinds in place
// of the old one, and trains that: weights and statistics of the body must stay to the bit.
#include <clnet/clnet.h>

#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <vector>

using namespace clnet;

struct Net : nn::Module {
  nn::Sequential body{nn::Conv2d{1, 8, 3, {.stride = 2, .padding = 1}}, nn::BatchNorm2d{8}, relu, nn::Flatten{}};
  nn::Linear head{8 * 4 * 4, 4};
  Net() {
    add("body", body);
    add("head", head);
  }
  Tensor forward(const Tensor& x) override { return head(body(x)); }
};

/// Noise with a bright quarter: classes 0 to 3; or with stripes across or down: classes 0 and 1.
static data::ArrayDataset draw(int count, bool stripes, std::mt19937& random) {
  std::uniform_real_distribution<float> noise(0, 0.4f);
  std::vector<float> pixels;
  std::vector<std::int32_t> labels;
  for (int n = 0; n < count; ++n) {
    const int label = n % (stripes ? 2 : 4);
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 8; ++x) {
        const bool bright = stripes ? (label ? x : y) / 2 % 2 == 0 : y / 4 == label / 2 && x / 4 == label % 2;
        pixels.push_back(noise(random) + (bright ? 1.0f : 0.0f));
      }
    labels.push_back(label);
  }
  return data::from_arrays(pixels, {1, 8, 8}, labels, stripes ? 2 : 4);
}

static std::vector<std::vector<float>> values(const nn::Module& module) {
  std::vector<std::vector<float>> all;
  for (const auto& [name, value] : module.state_dict()) all.push_back(value.to_vector<float>());
  return all;
}
static const char* yes(bool b) { return b ? "yes" : "no"; }

int main() {
  manual_seed(5);
  std::mt19937 random(5);
  const auto quarters = draw(128, false, random), more_quarters = draw(32, false, random);
  const auto stripes = draw(64, true, random), more_stripes = draw(32, true, random);

  Net net;
  train::fit(net, quarters, {.epochs = 6, .optimizer = optim::Adam{net, {.learning_rate = 0.01}}, .progress = false});
  std::cout << "four classes, accuracy above 0.9: " << yes(train::accuracy(net, more_quarters) > 0.9) << '\n';
  std::cout << "batches that the statistics saw: " << net.body.parameter("1.num_batches_tracked").value().item<std::int64_t>()
            << '\n';

  net.freeze();
  net.replace("head", nn::Linear{8 * 4 * 4, 2});
  net.inference();
  const auto body = values(net.body), head = values(net.child("head"));
  auto adam = optim::Adam{net, {.learning_rate = 0.02}};
  const auto result = train::fit(net, stripes, {.epochs = 10, .optimizer = adam, .progress = false});

  std::cout << "steps: " << result.steps << ", by the new optimizer: " << adam.steps() << '\n'
            << "loss fell by half: " << yes(result.epochs.back().train_loss < result.epochs.front().train_loss / 2) << '\n'
            << "two classes, accuracy above 0.9: " << yes(train::accuracy(net, more_stripes) > 0.9) << '\n'
            << "output: " << net(ones({3, 1, 8, 8})).shape() << '\n'
            << "body as it was: " << yes(values(net.body) == body) << ", of " << body.size() << " tensors\n"
            << "head moved: " << yes(values(net.child("head")) != head) << '\n'
            << "modes as they were: " << yes(!net.training() && !net.body.training() && !net.child("head").training()) << '\n';
  for (const auto& [name, p] : net.parameters()) std::cout << "  " << name << (p.frozen() ? " frozen" : " trained") << '\n';
}
