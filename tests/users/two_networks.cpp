// Train a small GAN on points of a plane in a loop of my own: two optimizers, and a critic with batch norm, which has to see
// real and generated points in one batch, as it would take their difference away otherwise.
#include <clnet/clnet.h>

#include <cmath>
#include <iostream>

using namespace clnet;

namespace {

constexpr std::int64_t count = 64;

const char* yes(bool b) { return b ? "yes" : "no"; }

Tensor real_points() { return randn({count, 2}) * 0.5 + Tensor::from({2.0, -1.0}); }

double distance(nn::Module& generator) {
  const auto center = mean(generator(randn({256, 4})), 0).to_vector<float>();
  return std::hypot(center[0] - 2, center[1] + 1);
}

bool equal_states(const io::StateDict& a, const io::StateDict& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = a[i].second.to_vector<float>() == b[i].second.to_vector<float>();
  return same;
}

}  // namespace

int main() {
  manual_seed(7);
  auto generator = nn::Sequential{nn::Linear{4, 16}, relu, nn::Linear{16, 2}};
  auto critic = nn::Sequential{nn::Linear{2, 16}, nn::BatchNorm1d{16}, nn::LeakyReLU(0.2), nn::Linear{16, 1}};
  auto g_adam = optim::Adam{generator, {.learning_rate = 0.015, .beta1 = 0}};
  auto d_adam = optim::Adam{critic, {.learning_rate = 0.05, .beta1 = 0}};
  std::cout << "critic: " << critic.parameter_count() << " parameters, " << critic.buffers().size() << " buffers\n";
  std::cout << "far at first: " << yes(distance(generator) > 1.5) << '\n';

  const Tensor ones_and_zeros = concat({ones({count, 1}), zeros({count, 1})}, 0);
  bool generator_kept = true, critic_kept = true;
  for (int step = 0; step < 60; ++step) {
    const Tensor real = real_points();
    const Tensor fake = generator(randn({count, 4}));

    const auto generator_before = generator.state_dict();
    d_adam.step(binary_cross_entropy_with_logits(critic(concat({real, fake.detach()}, 0)), ones_and_zeros));
    generator_kept = generator_kept && equal_states(generator_before, generator.state_dict());

    // After the critic's step, so that this one sees its new parameters; the statistics follow this batch, too.
    const Tensor judged = critic(concat({real, fake}, 0));
    const auto critic_before = critic.parameter("0.weight").value().to_vector<float>();
    g_adam.step(binary_cross_entropy_with_logits(narrow(judged, 0, count, count), ones({count, 1})));
    critic_kept = critic_kept && critic_before == critic.parameter("0.weight").value().to_vector<float>();
  }
  std::cout << "the critic's steps leave the generator: " << yes(generator_kept) << '\n';
  std::cout << "the generator's steps leave the critic: " << yes(critic_kept) << '\n';
  std::cout << "batches that the norm has seen: " << critic.parameter("1.num_batches_tracked").value().item<std::int64_t>()
            << '\n';
  std::cout << "near in the end: " << yes(distance(generator) < 0.5) << '\n';

  // Statements in order: the running mean follows the first batch, then the second.
  nn::BatchNorm1d norm{1};
  const Tensor a = norm(full({4, 1}, 10));
  const Tensor b = norm(full({4, 1}, 20));
  eval({a, b});
  std::cout << "running mean of 10, then 20: " << std::round(norm.parameter("running_mean").value().item() * 100) / 100 << '\n';
  norm.inference();
  std::cout << "zero in inference is below zero: " << yes(norm(zeros({1, 1})).item() < 0) << '\n';
}
