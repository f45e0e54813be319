// What a program may still ask for after values were made in the memory of others: nothing that it could have had before is lost.
#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "clnet/clnet.h"
#include "lib/exec/place/placement.h"
#include "tests/ops/check.h"
#include "tests/ops/donation.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// Keeps a tensor that is no state of its own: two operations behind one.
struct Stashing : optim::Rule {
  mutable Tensor stashed;
  std::string name() const override { return "Stashing"; }
  std::vector<State> states(const Shape&) const override { return {{"velocity"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor velocity = states[0] * 0.9 + g;
    stashed = square(states[0] * 2.0 + g);
    return {p - velocity * step.rate + stashed * 0.0, {velocity}};
  }
};

struct Small {
  nn::Linear layer{3, 2, {.bias = false}};
  Tensor x = Tensor::from(Floats{1, 2, 3, 4, 5, 6}, Shape{2, 3});
  Tensor loss() { return mean(square(layer(x))); }
};

}  // namespace

TEST_CASE("a held view of a view of what is written in place") {
  Tensor x = rows(8, 3, 0);
  const Floats before = values_of(x);
  const Tensor grid = reshape(slice(reshape(x, {24}), 0, 0, 24), {8, 3});
  const Tensor part = rows(1, 3, 100);
  x = Tensor();
  Tensor next = slice_update(grid, 0, 2, part);
  CHECK(values_of(next) == updated(before, 3, 2, values_of(part)));
  CHECK(values_of(grid) == before);
}

TEST_CASE("a held permutation of a view of what is written in place") {
  Tensor x = rows(8, 3, 0);
  const Floats before = values_of(x);
  const Tensor grid = unsqueeze(unsqueeze(unsqueeze(x, 0), 0), 0);
  const Tensor part = reshape(rows(1, 3, 100), {1, 1, 1, 1, 3});
  x = Tensor();
  Tensor next = slice_update(grid, 3, 2, part);
  CHECK(values_of(next) == updated(before, 3, 2, values_of(part)));
  CHECK(values_of(grid) == before);
}

TEST_CASE("what is fused behind a slice update and held, while nobody asked for the update itself") {
  std::vector<Tensor> held;
  std::vector<Floats> expected;
  for (int step = 0; step < 12; ++step) {
    const Tensor part = rows(2, 3, 10.0F * static_cast<float>(step));
    Floats all;
    Tensor doubled;
    {
      const Tensor x = rows(8, 3, static_cast<float>(step));
      all = updated(values_of(x), 3, 4, values_of(part));
      doubled = slice_update(x, 0, 4, part) * 2.0;
    }
    for (auto& value : all) value *= 2;
    (void)sum(doubled * 3.0).item<float>();
    if (step < 3) CHECK(values_of(doubled) == all);
    held.push_back(doubled);
    expected.push_back(all);
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    INFO(i);
    CHECK(values_of(held[i]) == expected[i]);
  }
}

TEST_CASE("the result of a step with caches, held while what is made of it is evaluated") {
  manual_seed(3);
  nn::MultiheadAttention layer(8, 2, {.batch_first = true});
  auto cache = layer.cache(1, 8);
  const auto x = [](int step) { return make_tensor({1, 1, 8}, static_cast<std::uint64_t>(step)).detach(); };
  for (int step = 0; step < 5; ++step) {
    INFO(step);
    const Tensor y = layer.step(x(step), cache), half = y * 0.5, all = mean(half);
    const float mean_of = all.item<float>();
    const auto values = values_of(half);
    float total = 0;
    for (const float value : values) total += value;
    CHECK(total / 8 == Approx(mean_of).margin(1e-6));
  }
}

TEST_CASE("the gradient of a step with caches whose result was read") {
  manual_seed(3);
  nn::MultiheadAttention layer(8, 2, {.batch_first = true});
  const auto parameters = layer.parameters();
  const auto x = [](int step) { return make_tensor({1, 1, 8}, static_cast<std::uint64_t>(step)).detach(); };
  for (const bool read_first : {true, false}) {
    auto cache = layer.cache(1, 8);
    for (int step = 0; step < 5; ++step) {
      INFO(step << (read_first ? " read" : ""));
      const Tensor loss = sum(square(layer.step(x(step), cache)));
      if (read_first) (void)loss.item<float>();
      for (const auto& gradient : nn::gradients(loss, parameters)) gradient.eval();
    }
  }
}

TEST_CASE("checkpointed graph over a memory bank that both are evaluated") {
  nn::Parameter weight(rows(1, 3, 1));
  Tensor bank = rows(8, 3, 0);
  for (int step = 0; step < 4; ++step) {
    INFO(step);
    Tensor next;
    const Tensor loss = checkpoint([&] {
      next = slice_update(bank, 0, step, weight.value() * 2.0);
      return mean(square(next));
    });
    bank = next;
    next = Tensor();
    eval({loss, bank});
    CHECK_NOTHROW(values_of(gradients(loss, {weight.value()})[0]));
    bank = bank.detach();
  }
}

TEST_CASE("a custom rule that keeps a tensor of its own") {
  Small small;
  const auto rule = std::make_shared<Stashing>();
  optim::Optimizer optimizer(small.layer, rule, 0.01);
  for (int step = 0; step < 4; ++step) {
    INFO(step);
    (void)optimizer.step(small.loss()).item<float>();
    CHECK_NOTHROW(values_of(rule->stashed));
  }
}

TEST_CASE("a loss that reads an optimizer's state is made twice") {
  Small small, plain;
  plain.layer.load_state_dict(small.layer.state_dict());
  optim::Adam adam(small.layer, {.learning_rate = 0.01});
  adam.step(small.loss());
  const auto name = adam.parameters()[0].first + ".v";
  for (const auto& [key, tensor] : adam.state_dict()) UNSCOPED_INFO(key);
  const auto find = [&] {
    for (const auto& [key, tensor] : adam.state_dict())
      if (tensor.rank() == 2) return tensor;
    throw std::logic_error("no state");
  };
  const Tensor loss = small.loss() + sum(find() * square(adam.parameters()[0].second.value()));
  (void)name;
  adam.step(loss);
  SECTION("stepped again") { CHECK_NOTHROW(adam.step(loss).item<float>()); }
  SECTION("its gradient") { CHECK_NOTHROW(nn::gradients(loss, adam.parameters())[0].eval()); }
}

TEST_CASE("a number that is made of a state, logged with the step") {
  Small small;
  optim::Adam adam(small.layer, {.learning_rate = 0.01});
  adam.step(small.loss());
  Tensor moment;
  for (const auto& [key, tensor] : adam.state_dict())
    if (tensor.rank() == 2) moment = tensor;
  const Tensor scaled = sqrt(abs(moment)) * 2.0;
  const Tensor norm = mean(scaled);
  moment = Tensor();
  adam.step(small.loss(), {norm});
  CHECK_NOTHROW(norm.item<float>());
  CHECK_NOTHROW(values_of(scaled));
}

TEST_CASE("what is made of a sum of gradients and held") {
  nn::Conv2d net(1, 2, 2, {.bias = false});
  optim::SGD sgd(net, {.learning_rate = 1});
  const auto loss = [&] { return sum(net(ones({2, 1, 3, 3}))); };
  sgd.accumulate(loss());
  const auto grad = [&] {
    for (const auto& [key, tensor] : sgd.state_dict())
      if (key == "weight.grad") return tensor;
    throw std::logic_error("no sum");
  };
  const Tensor scaled = abs(grad()) * 2.0, norm = mean(scaled);
  sgd.accumulate(loss(), {norm});
  CHECK(norm.item<float>() == 16);
  CHECK_NOTHROW(values_of(scaled));
}

TEST_CASE("a loss at the place where momentum will carry the weights, and its gradient after the step") {
  Small small;
  optim::SGD sgd(small.layer, {.learning_rate = 0.1, .momentum = 0.9});
  sgd.step(small.loss());
  Tensor momentum;
  for (const auto& [name, tensor] : sgd.state_dict())
    if (tensor.rank() == 2) momentum = tensor;
  const Tensor ahead = mean(square(linear(small.x, sgd.parameters()[0].second.value() - momentum * 0.9)));
  momentum = Tensor();
  sgd.step(ahead);
  CHECK_NOTHROW(nn::gradients(ahead, sgd.parameters())[0].eval());
}

TEST_CASE("values that nobody asked for go with trim(), and what is made of them is there all the same") {
  std::vector<Tensor> held;
  for (int i = 0; i < 4; ++i) {
    const Tensor doubled = slice_update(rows(8, 3, 0), 0, 4, rows(2, 3, 7)) * 2.0;
    (void)sum(doubled * 3.0).item<float>();
    if (i < 2)
      (void)values_of(doubled);
    else
      held.push_back(doubled);
  }
  auto device = Device::current();
  device.trim();
  for (const auto& tensor : held) CHECK_NOTHROW(values_of(tensor));
}

TEST_CASE("a checkpointed bank of memory that was written in place before its gradient is asked for") {
  Tensor bank = rows(8, 3, 0);
  nn::Parameter weight(rows(1, 3, 1));
  const auto memory = memory_of(bank);
  Floats expected = values_of(bank);
  std::vector<Tensor> results = checkpoint([&] {
    const Tensor next = slice_update(bank, 0, 2, weight.value() * 2.0), squares = square(next);
    return std::vector{next, mean(sqrt(squares + 1.0) * squares)};
  });
  bank = results[0];
  const Tensor loss = results[1];
  results.clear();
  eval({loss, bank});
  CAPTURE(memory == memory_of(bank));
  const Tensor again = gradients(loss, {weight.value()})[0];
  CHECK_NOTHROW(values_of(again));
}

TEST_CASE("two threads that share what follows an update in place") {
  int lost = 0, wrong = 0;
  std::string error;
  for (const bool on_host : {false, true})
    for (int round = 0; round < 400; ++round) {
      error.clear();
      Tensor x = rows(8, 3, 0);
      const Floats before = values_of(x);
      if (on_host) x = Tensor::from(before, Shape{8, 3});
      const Tensor part = rows(2, 3, 100);
      Tensor w = slice_update(x, 0, 4, part), z = w * 2.0, q = mean(z + 1.0);
      x = Tensor();
      Floats all = updated(before, 3, 4, values_of(part)), twice = all;
      for (auto& value : twice) value *= 2;
      std::atomic<int> ready{0};
      Floats found;
      std::thread other([&, z = std::move(z)]() mutable {
        ++ready;
        while (ready < 2) {
        }
        for (int i = 0; i < round % 40 * 50; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
        try {
          found = values_of(z);
        } catch (const std::exception& failed) {
          error = failed.what();
        }
      });
      ++ready;
      while (ready < 2) {
      }
      eval({w, q});
      const auto mine = values_of(w);
      other.join();
      lost += error.empty() ? 0 : 1;
      wrong += (error.empty() && found != twice) || mine != all ? 1 : 0;
      if (round == 399) {
        INFO((on_host ? "from the host" : "on the device") << ", the last error: " << error);
        CHECK(lost == 0);
        CHECK(wrong == 0);
        lost = wrong = 0;
      }
    }
}

namespace {

/// What a search with several beams reads: caches branch, are dropped and held, and results are read late.
Floats beams(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random); };
  manual_seed(5);
  nn::TransformerEncoder encoder(8, 2, 2, {.dim_feedforward = 8, .dropout = 0, .batch_first = true, .norm_first = true}, true);
  nn::Parameter bank(make_tensor({6, 8}).detach());
  using Caches = std::vector<nn::KVCache>;
  std::vector<Caches> live{encoder.caches(1, 6)};
  std::vector<Tensor> late, handles;
  Floats log;
  const auto read = [&](const Tensor& tensor) {
    for (const float value : tensor.to_vector<float>()) log.push_back(value);
  };
  const auto branch = [](const Caches& caches) {
    Caches copy;
    for (const auto& cache : caches)
      copy.push_back({nn::Parameter(cache.k.value()), nn::Parameter(cache.v.value()), cache.length});
    return copy;
  };
  const auto compiled =
      compile([&](const Tensor& x) { return slice_update(bank, 0, 2, x) + slice_update(x, 1, 3, narrow(x, 1, 0, 2)); });
  for (int step = 0; step < 60; ++step) {
    auto& caches = live[below(live.size())];
    switch (below(9)) {
      case 0:
        if (live.size() < 4) live.push_back(branch(caches));
        break;
      case 1: handles.push_back(caches[below(2)].k.value()); break;
      case 2: handles.push_back(narrow(caches[below(2)].v, 2, 0, 3) * 2.0); break;
      case 3: caches = live.size() > 1 && below(2) == 0 ? branch(live[below(live.size())]) : encoder.caches(1, 6); break;
      case 4: {
        const Tensor row = make_tensor({1, 8}, static_cast<std::uint64_t>(step));
        handles.push_back(compiled(row.detach()));
        bank.set(slice_update(bank, 0, step % 6, row));
        if (below(2) == 0) handles.push_back(bank.value());
        break;
      }
      case 5: try { (void)encoder.step(make_tensor({1, 9, 8}), caches);
        } catch (const Error&) {
          log.push_back(-1);
        }
        break;
      default: {
        if (caches[0].length == 6) {
          for (auto& cache : caches) cache.length = 0;
        }
        const Tensor y = encoder.step(make_tensor({1, 1, 8}, static_cast<std::uint64_t>(step)), caches), total = mean(y * 0.5);
        if (below(2) == 0) read(total);
        late.push_back(below(2) == 0 ? y : square(y) + 1.0);
        if (below(3) == 0) read(nn::gradients(total, encoder.parameters())[below(8)]);
      }
    }
    for (auto* list : {&late, &handles})
      if (list->size() > 3) {
        read(list->front());
        list->erase(list->begin());
      }
  }
  for (const auto& caches : live)
    for (const auto& cache : caches) read(cache.k);
  return log;
}

}  // namespace

TEST_CASE("random searches with caches that branch are the same with and without values in the memory of others") {
  for (unsigned seed = 0; seed < 6; ++seed) {
    INFO("seed " << seed);
    Floats apart, donated;
    {
      const exec::NoMemorySharing each;
      apart = beams(seed);
    }
    CHECK_NOTHROW(donated = beams(seed));
    CHECK(donated == apart);
  }
}
