// A generative adversarial network (I. Goodfellow et al., 2014) that learns to draw points from eight clusters on a circle: two
// networks with an optimizer each, of which one learns to tell real points from made-up ones, and the other to deceive it.
#include <clnet/clnet.h>

#include <cmath>
#include <exception>
#include <iostream>
#include <random>
#include <set>
#include <vector>

using namespace clnet;

constexpr std::int64_t batch = 256, noise = 8;
constexpr int clusters = 8, steps = 1000;
constexpr double pi = 3.14159265358979;

Tensor real_points(std::mt19937& random) {
  std::normal_distribution<double> spread(0, 0.05);
  std::vector<float> points;
  for (std::int64_t i = 0; i < batch; ++i) {
    const double angle = 2 * pi * static_cast<double>(random() % clusters) / clusters;
    points.push_back(static_cast<float>(std::cos(angle) + spread(random)));
    points.push_back(static_cast<float>(std::sin(angle) + spread(random)));
  }
  return Tensor::from(points, {batch, 2});
}

int main() try {
  manual_seed(1);
  std::mt19937 random(1);
  const auto slope = [](const Tensor& x) { return leaky_relu(x, 0.2); };
  nn::Sequential generator{nn::Linear(noise, 64), relu, nn::Linear(64, 64), relu, nn::Linear(64, 2)};
  nn::Sequential critic{nn::Linear(2, 64), slope, nn::Linear(64, 64), slope, nn::Linear(64, 1)};
  optim::Adam g_adam(generator, {.learning_rate = 1e-3, .beta1 = 0.5}), d_adam(critic, {.learning_rate = 1e-3, .beta1 = 0.5});
  const auto real = ones({batch, 1}), made_up = zeros({batch, 1});
  for (int step = 0; step < steps; ++step) {
    const auto fake = generator(randn({batch, noise}));
    // Statements, as each call may have effects: C++ leaves open which operand of + comes first.
    const auto of_real = binary_cross_entropy_with_logits(critic(real_points(random)), real);
    const auto of_fake = binary_cross_entropy_with_logits(critic(fake.detach()), made_up);
    const auto d_loss = d_adam.step(of_real + of_fake);
    const auto g_loss = g_adam.step(binary_cross_entropy_with_logits(critic(fake), real));
    if (step % 250 == 0 || step + 1 == steps)
      std::cout << "step " << step << ": critic " << d_loss.item() << ", generator " << g_loss.item() << '\n';
  }

  const auto points = generator(randn({1000, noise})).to_vector<double>();
  std::set<int> found;
  int near = 0;
  for (std::size_t i = 0; i < points.size(); i += 2) {
    const double turn = std::atan2(points[i + 1], points[i]) / (2 * pi) * clusters;
    const double angle = 2 * pi * std::round(turn) / clusters;
    if (std::hypot(points[i] - std::cos(angle), points[i + 1] - std::sin(angle)) > 0.25) continue;
    found.insert((static_cast<int>(std::lround(turn)) + clusters) % clusters);
    ++near;
  }
  std::cout << near << " of 1000 points lie in " << found.size() << " of " << clusters << " clusters\n";
  return near > 500 && found.size() >= 4 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "gan: " << error.what() << '\n';
  return 1;
}
