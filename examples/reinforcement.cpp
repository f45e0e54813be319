// Reinforcement learning: a pole on a cart is kept upright by proximal policy optimization (J. Schulman et al., 2017). The
// environment, sixteen carts at once, is part of the example.
#include <clnet/clnet.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <iostream>
#include <random>
#include <vector>

using namespace clnet;

constexpr std::int64_t carts = 16, steps = 64;
constexpr float discount = 0.99F, smoothing = 0.95F;

/// Barto, Sutton and Anderson's cart: pushed to the left or to the right 50 times a second; the pole may lean by 12 degrees.
class Cart {
 public:
  explicit Cart(unsigned seed) : random_(seed) { reset(); }
  const std::array<float, 4>& state() const { return state_; }
  /// Whether the episode is over: the pole fell, the cart left its track, or all went well for 500 steps.
  bool push(bool right) {
    auto& [x, speed, angle, turn] = state_;
    const float force = right ? 10 : -10, cart = 1, pole = 0.1F, half = 0.5F, gravity = 9.8F, time = 0.02F;
    const float pushed = (force + pole * half * turn * turn * std::sin(angle)) / (cart + pole);
    const float turning = (gravity * std::sin(angle) - std::cos(angle) * pushed) /
                          (half * (4.0F / 3 - pole * std::cos(angle) * std::cos(angle) / (cart + pole)));
    const float acceleration = pushed - pole * half * turning * std::cos(angle) / (cart + pole);
    x += time * speed;
    speed += time * acceleration;
    angle += time * turn;
    turn += time * turning;
    ++length_;
    return std::abs(x) > 2.4F || std::abs(angle) > 0.2095F || length_ == 500;
  }
  /// The length of the episode that was.
  int reset() {
    std::uniform_real_distribution<float> start(-0.05F, 0.05F);
    for (auto& value : state_) value = start(random_);
    return std::exchange(length_, 0);
  }

 private:
  std::mt19937 random_;
  std::array<float, 4> state_{};
  int length_ = 0;
};

struct Policy : nn::Module {
  nn::Sequential actor{nn::Linear(4, 64), tanh, nn::Linear(64, 64), tanh, nn::Linear(64, 2)},
      critic{nn::Linear(4, 64), tanh, nn::Linear(64, 64), tanh, nn::Linear(64, 1)};
  Policy() {
    add("actor", actor);
    add("critic", critic);
  }
};

int main() try {
  manual_seed(1);
  std::mt19937 random(1);
  Policy policy;
  optim::Adam optimizer(policy, {.learning_rate = 2.5e-3, .clip_norm = 0.5});
  std::vector<Cart> all;
  for (unsigned i = 0; i < carts; ++i) all.emplace_back(i);
  double mean_length = 20;

  for (int round = 0; round < 40 && mean_length < 200; ++round) {
    std::vector<float> states, chances, values, rewards(carts * steps), over(carts * steps);
    std::vector<std::int64_t> actions;
    const auto look = [&] {
      std::vector<float> now;
      for (const auto& cart : all) now.insert(now.end(), cart.state().begin(), cart.state().end());
      return now;
    };
    for (std::int64_t t = 0; t < steps; ++t) {
      const auto now = look();
      const auto x = Tensor::from(now, {carts, 4});
      const auto p = softmax(policy.actor(x), 1), v = policy.critic(x);
      eval({p, v});
      const auto p_now = p.to_vector<float>(), v_now = v.to_vector<float>();
      states.insert(states.end(), now.begin(), now.end());
      values.insert(values.end(), v_now.begin(), v_now.end());
      for (std::size_t i = 0; i < carts; ++i) {
        const bool right = std::bernoulli_distribution(p_now[2 * i + 1])(random);
        actions.push_back(right);
        chances.push_back(p_now[2 * i + (right ? 1 : 0)]);
        const auto at = static_cast<std::size_t>(t) * carts + i;
        rewards[at] = 1;
        if (!all[i].push(right)) continue;
        over[at] = 1;
        mean_length += 0.05 * (all[i].reset() - mean_length);
      }
    }
    const auto last = policy.critic(Tensor::from(look(), {carts, 4})).to_vector<float>();
    values.insert(values.end(), last.begin(), last.end());

    // How much better an action was than the critic thought, with what followed, from the end on.
    std::vector<float> advantages(carts * steps), returns(carts * steps);
    for (std::size_t i = 0; i < carts; ++i) {
      float advantage = 0;
      for (std::size_t t = steps; t-- > 0;) {
        const auto at = t * carts + i;
        const float goes_on = 1 - over[at];
        advantage =
            rewards[at] + discount * values[at + carts] * goes_on - values[at] + discount * smoothing * goes_on * advantage;
        advantages[at] = advantage;
        returns[at] = advantage + values[at];
      }
    }

    const auto n = carts * steps;
    const auto x = Tensor::from(states, {n, 4}), a = Tensor::from(actions, {n, 1}), old = Tensor::from(chances),
               target = Tensor::from(returns);
    const auto raw = Tensor::from(advantages);
    const auto advantage = ((raw - mean(raw)) / (stddev(raw) + 1e-8)).detach();
    for (int pass = 0; pass < 6; ++pass) {
      const auto logits = policy.actor(x);
      const auto log_p = log_softmax(logits, 1);
      const auto ratio = exp(squeeze(gather(log_p, 1, a), 1) - log(old));
      const auto surrogate = minimum(ratio * advantage, clamp(ratio, 0.8, 1.2) * advantage);
      const auto entropy = -mean(sum(exp(log_p) * log_p, 1));
      const auto fit = mean(square(squeeze(policy.critic(x), 1) - target));
      optimizer.step(-mean(surrogate) + 0.005 * fit - 0.01 * entropy);
    }
    if (round % 5 == 4) std::cout << "round " << round + 1 << ": episodes last " << mean_length << " steps\n";
  }
  std::cout << "in the end, episodes last " << mean_length << " steps\n";
  return mean_length > 100 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "reinforcement: " << error.what() << '\n';
  return 1;
}
