// Classify sequences of different lengths, padded to one, by the last state of an LSTM; then decode with a Transformer's layer
// that gets a position more each time, and compare with all positions at once.
#include <clnet/clnet.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

using namespace clnet;

namespace {

const char* yes(bool b) { return b ? "yes" : "no"; }

using Values = std::vector<float>;
Values part(const Tensor& x, std::int64_t from, std::int64_t count) {
  const auto values = x.to_vector<float>();
  return {values.begin() + from, values.begin() + from + count};
}

double difference(const Values& a, const Values& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max<double>(most, std::abs(a.at(i) - b.at(i)));
  return most;
}

struct Classifier : nn::Module {
  nn::LSTM lstm{1, 12, {.batch_first = true}};
  nn::Linear head{12, 2};
  Classifier() { add("lstm", lstm), add("head", head); }
  Tensor operator()(const Tensor& x, const Tensor& lengths) {
    return called(*this, [&](auto& self) {
      const auto [output, h, c] = self.lstm(x, {}, lengths);
      return self.head(h[0]);  // {layers, batch, features}: the only layer's
    });
  }
};

}  // namespace

int main() {
  manual_seed(3);
  // The class is whether the last value is positive; the padding says the contrary, and louder.
  constexpr std::int64_t n = 48, steps = 6;
  std::mt19937 random(3);
  std::vector<float> values(n * steps);
  std::vector<std::int64_t> lengths(n), labels(n);
  for (std::int64_t i = 0; i < n; ++i) {
    lengths[i] = 1 + i % steps;
    for (std::int64_t t = 0; t < lengths[i]; ++t) values[i * steps + t] = random() % 2 ? 1.0F : -1.0F;
    labels[i] = values[i * steps + lengths[i] - 1] > 0;
    for (std::int64_t t = lengths[i]; t < steps; ++t) values[i * steps + t] = labels[i] ? -3.0F : 3.0F;
  }
  const auto x = Tensor::from(values, {n, steps, 1}), length = Tensor::from(lengths), y = Tensor::from(labels);

  Classifier model;
  auto adam = optim::Adam{model, {.learning_rate = 0.05}};
  std::vector<Tensor> losses;
  for (int step = 0; step < 30; ++step) losses.push_back(adam.step(cross_entropy(model(x, length), y)));
  std::cout << "loss fell: " << yes(losses.back().item() < losses.front().item() / 2) << '\n';
  const auto logits = model(x, length).to_vector<float>();
  double right = 0;
  for (std::int64_t i = 0; i < n; ++i) right += (logits[2 * i + 1] > logits[2 * i]) == (labels[i] == 1);
  std::cout << "accuracy above 0.9: " << yes(right / n > 0.9) << '\n';

  const auto [output, h, c] = model.lstm(x, {}, length);
  std::cout << "output " << output.shape() << ", h " << h.shape() << ", c " << c.shape() << '\n';
  // Sequence 2 has three steps: alone, without padding, it ends in the same state.
  const auto [alone, h2, c2] = model.lstm(Tensor::from(part(x, 2 * steps, 3), {1, 3, 1}), {});
  const auto state = part(h, 2 * 12, 12);
  std::cout << "alone " << alone.shape() << ", the same state: " << yes(difference(h2.to_vector<float>(), state) < 1e-5) << '\n';
  std::cout << "the state is the last output: " << yes(difference(part(output, (2 * steps + 2) * 12, 12), state) < 1e-6) << '\n';
  std::cout << "outputs of padding are 0: " << yes(part(output, (2 * steps + 3) * 12, 36) == Values(36)) << '\n';

  nn::TransformerEncoderLayer layer{8, 2, {.dim_feedforward = 8}};
  layer.inference();
  Tensor sequence = randn({1, 4, 8});
  std::vector<Values> of_length;
  for (int i = 1; i <= 4; ++i) {
    const Tensor z = layer(sequence, {.is_causal = true});
    std::cout << "length " << i << ": " << z.shape() << '\n';
    of_length.push_back(z.to_vector<float>());
    if (i < 4) sequence = concat({sequence, z[{{i - 1, i}}]}, 0);
  }
  bool same = true;
  for (std::size_t i = 0; i < 3; ++i) same = same && difference(of_length[i], of_length[3]) < 1e-5;
  std::cout << "prefixes are the same: " << yes(same) << '\n';
  std::cout << "others without is_causal: " << yes(difference(of_length[0], layer(sequence).to_vector<float>()) > 1e-3) << '\n';
}
