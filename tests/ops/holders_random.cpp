// Random programs of whole numbers, which no kernel rounds: each is run again by somebody who holds more handles, and reads the
// same.
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/options/options.h"
#include "tests/ops/check.h"
#include "tests/ops/values.h"
#include "tests/support/second_device.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// Numbers stay so small that sums and products of them are exact, in f16, too.
Tensor bounded(const Tensor& x) { return clamp(x, -8.0, 8.0); }

/// A rule with two states, each of which takes the place of the other.
struct CrosswiseStates : optim::Rule {
  std::function<void(const Tensor&)> show;
  explicit CrosswiseStates(std::function<void(const Tensor&)> to) : show(std::move(to)) {}
  std::string name() const override { return "CrosswiseStates"; }
  std::vector<State> states(const Shape&) const override { return {{"a"}, {"b", 1.0}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& s, const Step&) const override {
    const Tensor a = bounded(s[0] + g), b = bounded(s[1] - s[0]), next = bounded(p - a + b);
    for (const auto* tensor : {&g, &a, &b, &next}) show(*tensor);
    return {next, {b, a}};
  }
};

/// Who runs a program: what is held of the tensors that it shows, and in what surroundings it runs.
struct Holding {
  std::string name;
  /// Of so many tensors one is held.
  int holds_one_of = 0;
  /// For so many tensors; 0: for ever.
  std::size_t holds_for = 0;
  /// Bytes that a call may take beyond those in use; 0: any number.
  std::size_t room = 0;
  std::optional<exec::LaunchBatchMode> batches = std::nullopt;
  bool shares = true;
};

class RandomProgram {
 public:
  RandomProgram(unsigned seed, std::optional<Device> second, const Holding& holding)
      : second_(std::move(second)), holding_(holding), random_(seed), others_(seed + 1000) {
    manual_seed(seed);
    for (auto& variable : variables_) variable = leaf();
    p_.set(leaf());
    w_.set(leaf());
    optimizer_ = {nn::NamedParameters{{"w", w_}}, std::make_shared<CrosswiseStates>([this](const Tensor& t) { show(t); }), 1.0};
    compiled_ = compile([this, constant = variables_[0]](const Tensor& x) {
      const Tensor y = bounded(matmul(x, p_.value()) + constant);
      p_.follow(y, [](const Tensor& now, const Tensor& value) { return bounded(now + value); });
      return y;
    });
  }

  Floats run(int actions) {
    for (int i = 0; i < actions; ++i) {
      const auto random = random_;
      try {
        limit(holding_.room);
        act();
      } catch (const Error& error) {
        limit(0);
        if (holding_.room == 0 || std::string_view(error.what()).find("memory") == std::string_view::npos) {
          log_.push_back(-1000);  // an error is a result, too
        } else {
          random_ = random;
          held_.clear();
          act();
        }
      }
      limit(0);
    }
    for (const auto& variable : variables_) read(variable);
    for (const auto* parameter : {&p_, &w_, &count_}) read(*parameter);
    for (auto& reading : readings_) add(reading.get());
    for (const auto& [name, tensor] : optimizer_.state_dict()) read(tensor);
    return std::move(log_);
  }

  /// What is held at the end.
  Floats held() {
    const auto all = held_;  // an update that comes along shows more
    for (const auto& tensor : all) read(tensor);
    return std::move(log_);
  }

 private:
  int below(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  Tensor& any() { return variables_[static_cast<std::size_t>(below(static_cast<int>(variables_.size())))]; }
  Tensor leaf() {
    Floats values(static_cast<std::size_t>(size_ * size_));
    for (auto& value : values) value = static_cast<float>(below(9) - 4);
    return Tensor::from(values, {size_, size_});
  }
  Tensor row(const Tensor& x) {
    const auto at = below(static_cast<int>(size_));
    return slice(x, 0, at, at + 1);
  }
  /// Shows the tensor to the one who runs the program.
  const Tensor& show(const Tensor& tensor) {
    if (holding_.holds_one_of == 0 || others_() % static_cast<unsigned>(holding_.holds_one_of) != 0) return tensor;
    held_.push_back(tensor);
    if (holding_.holds_for > 0 && held_.size() > holding_.holds_for)
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(others_() % held_.size()));
    return tensor;
  }
  void add(const Floats& values) { log_.insert(log_.end(), values.begin(), values.end()); }
  void read(const Tensor& tensor) { add(tensor.to_vector<float>()); }
  static void limit(std::size_t room) {
    auto device = Device::current();
    if (room > 0) device.trim();
    device.set_memory_limit(room > 0 ? device.memory().in_use + room : 0);
  }

  void act() {
    const Tensor a = any(), b = any(), c = any();
    auto& target = any();
    const auto give = [&](const Tensor& x) { target = show(bounded(show(x))); };
    switch (below(40)) {
      case 0: target = leaf(); break;
      case 1: give(show(a * b) + c); break;
      case 2: give(matmul(a, b)); break;
      case 3: give(show(cumsum(a, 0)) - b); break;
      case 4: give(reshape(show(cumsum(show(reshape(a, {size_ / 2, size_ * 2})), 1)), {size_, size_})); break;
      case 5: give(matmul(show(transpose(a, 0, 1)), b)); break;
      case 6: give(concat({show(slice(a, 0, 0, 2)), show(slice(b, 0, 2, size_))}, 0)); break;
      case 7:
      case 8: {
        // The variable's own handle may be the only one.
        auto& x = any();
        const auto at = below(static_cast<int>(size_));
        const Tensor part = row(b);
        x = slice_update(std::exchange(x, {}), 0, at, part);
        show(x);
        break;
      }
      case 9: target = show(target.detach()); break;
      case 10: eval({a, b}); break;
      case 11: read(a); break;
      case 12: target = a; break;
      case 13: p_.follow(a, [this](const Tensor& now, const Tensor& value) { return show(bounded(show(now + value))); }); break;
      case 14: count_.follow(matmul(a, b), [](const Tensor& now, const Tensor&) { return now + 1.0; }); break;
      case 15:
      case 16: p_.set(show(slice_update(p_.value(), 0, below(static_cast<int>(size_)), row(a)))); break;
      case 17: p_.set(show(bounded(p_.value() + a))); break;
      case 18: give(p_.value() * 2.0 - a); break;
      case 19: give(gradients(sum(show(square(a)) * b), {show(c)})[0]); break;
      case 20: give(gradients(sum(cumsum(matmul(a, b), 1)), {c})[0]); break;
      case 21: give(gradients(sum(show(a) * row(b)), {show(p_.value())})[0]); break;
      case 22:
        give(checkpoint([&] {
          const Tensor h = show(cumsum(show(a * 2.0), 0));
          return matmul(show(bounded(h)), b);
        }));
        break;
      case 23: show(optimizer_.step(sum(show(bounded(matmul(w_.value(), a)))))); break;
      case 24: show(optimizer_.accumulate(sum(w_.value() * show(bounded(a + b))))); break;
      case 25: give(compiled_(a)); break;
      case 26: {
        const DetectAnomaly looking;
        a.eval();
        break;
      }
      case 27: Device::current().trim(); break;
      case 28: {
        const Autocast narrow(Dtype::f16);
        const Tensor first = matmul(show(a), b);
        give(cast(first + matmul(a, c), Dtype::f32));
        break;
      }
      case 29: readings_.push_back(a.read_async()); break;
      case 30: {
        const auto [values, indices] = topk(a, 2, 1);
        show(values);
        give(index_select(b, 0, show(reshape(slice(show(indices), 1, 1, 2), {size_}))));
        break;
      }
      case 31: give(dropout(a, 0.5)); break;
      case 32: {
        const auto state = optimizer_.state_dict();
        give(state[1].second + show(state[2].second));
        if (below(2) == 0) optimizer_.load_state_dict(state);
        break;
      }
      case 33:
      case 34:
      case 35:
      case 36: {
        auto& x = any();
        x = show(x.detach());
        x = slice_update(std::exchange(x, {}), 0, below(static_cast<int>(size_)), row(b));
        x.eval();
        break;
      }
      default:
        if (second_) give(copy_to(show(matmul(show(copy_to(a, *second_)), copy_to(b, *second_))), Device::current()));
    }
  }

  static constexpr std::int64_t size_ = 8;
  const std::optional<Device> second_;
  const Holding& holding_;
  std::mt19937 random_, others_;
  std::vector<Tensor> variables_{6}, held_;
  nn::Parameter p_{zeros({size_, size_})}, w_{zeros({size_, size_})}, count_{Tensor::scalar(0.0F)};
  optim::Optimizer optimizer_;
  std::function<Tensor(const Tensor&)> compiled_;
  std::vector<decltype(Tensor().read_async())> readings_;
  Floats log_;
};

/// What it reads, and what is held at its end.
std::pair<Floats, Floats> numbers_of(unsigned seed, const std::optional<Device>& second, const Holding& holding) {
  std::optional<exec::WithLaunchBatches> batches;
  std::optional<exec::NoMemorySharing> apart;
  if (holding.batches) batches.emplace(*holding.batches);
  if (!holding.shares) apart.emplace();
  RandomProgram program(seed, second, holding);
  auto numbers = program.run(60);
  return {std::move(numbers), program.held()};
}

}  // namespace

TEST_CASE("random programs give the same numbers, whoever holds what") {
  using enum exec::LaunchBatchMode;
  const std::vector<Holding> holdings{
      {.name = "nothing is held"},
      {.name = "all is held", .holds_one_of = 1},
      {.name = "some is held", .holds_one_of = 2, .holds_for = 8},
      {.name = "some is held in little room", .holds_one_of = 2, .holds_for = 20, .room = 1 << 12},
      {.name = "some is held, launches come in batches", .holds_one_of = 3, .batches = force},
  };
  const Device other = test::second_device();
  for (unsigned seed = 0; seed < (all_wanted() ? 40U : 2U); ++seed) {
    const auto second = seed % 2 == 1 ? std::optional(other) : std::nullopt;
    std::optional<Floats> expected;
    for (auto holding : holdings) {
      INFO("seed " << seed << ", " << holding.name);
      const auto [numbers, held] = numbers_of(seed, second, holding);
      if (!expected) expected = numbers;
      CHECK(numbers == *expected);
      if (holding.room > 0) continue;  // what is held may have been dropped there
      holding.shares = false;
      holding.batches.reset();
      const auto apart = numbers_of(seed, second, holding);
      CHECK(apart.first == *expected);
      CHECK(apart.second == held);
    }
  }
}
