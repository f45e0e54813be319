// What is computed, kept and overwritten depends on who holds handles: not on how the library itself refers to nodes and values.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/options/options.h"
#include "lib/exec/statistics.h"
#include "lib/nn/parameter.h"
#include "tests/ops/check.h"
#include "tests/ops/donation.h"
#include "tests/ops/launches.h"
#include "tests/support/second_device.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// Adam as a formula, which shows the tensors that it makes.
struct Shown : optim::Rule {
  std::function<void(const Tensor&)> show;
  explicit Shown(std::function<void(const Tensor&)> to) : show(std::move(to)) {}
  std::string name() const override { return "Shown"; }
  std::vector<State> states(const Shape&) const override { return {{"mean"}, {"square"}}; }
  Result update(const Tensor& p, const Tensor& g, const std::vector<Tensor>& states, const Step& step) const override {
    const Tensor mean = states[0] * 0.9 + g * 0.1, squares = states[1] * 0.99 + square(g) * 0.01;
    const Tensor change = mean / (sqrt(squares) + 1e-8), next = p - change * step.rate;
    for (const auto* tensor : {&g, &mean, &squares, &change, &next}) show(*tensor);
    return {next, {mean, squares}};
  }
};

/// A network in training, and all that a step makes.
struct Training {
  nn::Sequential net;
  optim::Optimizer adam, shown;
  /// Gets what the program sees, and what the rule makes; then is told that the step is done.
  std::function<void(const Tensor&)> show = [](const Tensor&) {}, made = show;
  std::function<void()> done = [] {};

  Training()
      : net((manual_seed(3), nn::Sequential{nn::Linear{6, 8}, nn::BatchNorm1d{8}, relu, nn::Linear{8, 5}, nn::Linear{5, 2}})),
        adam(optim::Adam(part("0."), {.learning_rate = 1e-2})),
        shown(part("4."), std::make_shared<Shown>([this](const Tensor& tensor) { made(tensor); }), 1e-2) {}

  optim::Parameters part(const std::string& prefix) const {
    return {net, [prefix](const std::string& name) { return name.rfind(prefix, 0) == 0; }};
  }
  std::vector<std::pair<std::string, Tensor>> states() const {
    auto all = adam.state_dict();
    for (const auto& state : shown.state_dict()) all.push_back(state);
    return all;
  }
  void step(int number) {
    Tensor x = make_tensor({4, 6}, static_cast<std::uint64_t>(number));
    for (const auto* index : {"0", "1", "3", "4"}) {
      x = net.child(index)(x);
      show(x);
      if (*index != '4') x = relu(x);
      show(x);
    }
    const Tensor loss = mean(square(x));
    show(loss);
    show(adam.step(loss, {x}));
    const Tensor again = mean(abs(net(make_tensor({4, 6}, static_cast<std::uint64_t>(number) + 100))));
    show(again);
    show(shown.step(again));
    for (const auto& [name, parameter] : net.parameters()) show(parameter.value());
    for (const auto& [name, state] : states()) show(state);
    done();
  }
};

/// What a run of some steps did.
struct Told {
  std::vector<Floats> values;
  std::vector<std::uint64_t> launches, operations, plans;
  std::vector<std::size_t> memory;  ///< how many buffers the states of all steps were in
  std::vector<std::size_t> bytes;   ///< in use after each step
};

Told run(
    int steps, const std::function<void(Training&)>& prepare = [](Training&) {}) {
  Training training;
  prepare(training);
  Told told;
  std::set<std::uint64_t> buffers;
  for (int step = 0; step < steps; ++step) {
    const auto before = exec::statistics();
    told.launches.push_back(launches_of([&] { training.step(step); }));
    const auto after = exec::statistics();
    told.operations.push_back(after.operations - before.operations);
    told.plans.push_back(after.plans_made - before.plans_made);
    for (const auto& [name, state] : training.states())
      if (const auto value = std::dynamic_pointer_cast<exec::DeviceValue>(exec::value_of(state)))
        buffers.insert(value->buffer->id());
    told.memory.push_back(buffers.size());
    told.bytes.push_back(Device::current().memory().in_use);
  }
  for (const auto& [name, tensor] : training.net.state_dict()) told.values.push_back(values_of(tensor));
  for (const auto& [name, tensor] : training.states())
    if (tensor.dtype() == Dtype::f32) told.values.push_back(values_of(tensor));
  return told;
}

/// All that a graph consists of, as works and plans refer to it.
struct Within {
  std::vector<std::shared_ptr<Node>> nodes;
  std::vector<Tensor> tensors;
  std::vector<std::shared_ptr<Value>> values;
  std::vector<exec::Work> works;

  void add(const Tensor& tensor) {
    for (int i = 0; i < 3; ++i) {
      nodes.push_back(node_of(tensor));
      tensors.push_back(uncounted(tensor));
      values.push_back(exec::value_of(tensor));
    }
    exec::Walk walk;
    exec::Collector collector(walk);
    collector.add(std::span(&tensor, 1));
    works.push_back(collector.take({}));
  }
};

/// Of the device's buffers in which the graphs behind these have values, which are small.
std::size_t bytes_held(std::vector<Tensor> open) {
  constexpr std::size_t smallest = 256;  // of the pool's buffers
  std::set<const void*> seen;
  std::size_t bytes = 0;
  while (!open.empty()) {
    const auto node = node_of(open.back());
    open.pop_back();
    if (!seen.insert(node.get()).second) continue;
    open.insert(open.end(), node->inputs.begin(), node->inputs.end());
    for (std::size_t i = 0; i < node->outputs.size(); ++i) {
      const auto value = std::dynamic_pointer_cast<exec::DeviceValue>(node->values[i].get());
      if (value && seen.insert(value->buffer.get()).second) bytes += std::max(value->buffer->bytes(), smallest);
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("references of the library itself change neither what is computed nor where it is made") {
  (void)run(4);  // the plans are there
  const auto plain = run(4);
  // A node that is kept keeps its inputs and its value: of what an update is made only the evaluation may keep any.
  Within within, evaluation;
  const auto referred = run(4, [&](Training& training) {
    training.show = [&](const Tensor& tensor) { within.add(tensor); };
    training.made = [&](const Tensor& tensor) { evaluation.add(tensor); };
    training.done = [&] { evaluation = {}; };
  });
  CHECK(within.nodes.size() > 300);
  CHECK(referred.values == plain.values);
  CHECK(referred.launches == plain.launches);
  CHECK(referred.operations == plain.operations);
  CHECK(referred.plans == plain.plans);
  CHECK(referred.memory == plain.memory);
}

TEST_CASE("handles that are held for ever change no result, and cost the memory of what they hold") {
  (void)run(6);
  const auto before = Device::current().memory().in_use;
  const auto plain = run(6);
  CHECK(Device::current().memory().in_use == before);
  {
    std::vector<Tensor> held;
    const auto holding = run(
        6, [&](Training& training) { training.show = training.made = [&](const Tensor& tensor) { held.push_back(tensor); }; });
    CHECK(holding.values == plain.values);
    CHECK(holding.bytes.back() > plain.bytes.back());
    // Each step holds as much as the one before: nothing grows faster than the list.
    const auto grown = [&](std::size_t step) { return holding.bytes[step] - holding.bytes[step - 1]; };
    CHECK(grown(5) == grown(4));
    CHECK(holding.bytes.back() - plain.bytes.back() <= bytes_held(held));
    for (const auto& tensor : held) CHECK_NOTHROW(tensor.eval());
  }
  CHECK(Device::current().memory().in_use == before);
}

TEST_CASE("how many handles there are of what is asked for does not matter") {
  const auto operations = [](std::size_t handles) {
    const Tensor x = make_tensor({6, 5}, 1), w = make_tensor({5, 4}, 2);
    const Tensor y = relu(matmul(x, w)), z = softmax(y, 1);
    const std::vector<Tensor> held(handles, z);
    const auto before = exec::statistics().plans_made;
    z.eval();
    return exec::statistics().plans_made - before;
  };
  (void)operations(0);
  for (const std::size_t handles : {1, 2, 3, 5, 20}) CHECK(operations(handles) == 0);
}

TEST_CASE("what a graph outside of the evaluation reads is kept, however the library refers to it or not") {
  const Tensor x = make_tensor({6, 5}, 1), w = make_tensor({5, 4}, 2), v = make_tensor({4, 3}, 3);
  Tensor hidden = softmax(matmul(x, w), 1);
  const Tensor asked = matmul(hidden, v), seen = uncounted(hidden);
  const std::vector<std::shared_ptr<Node>> nodes(5, node_of(hidden));
  SECTION("a graph") {
    const Tensor outside = hidden * 2.0;
    hidden = {};
    asked.eval();
    CHECK(exec::value_of(seen) != nullptr);
    const auto before = exec::statistics().operations;
    (void)values_of(outside);
    CHECK(exec::statistics().operations - before == 1);
  }
  SECTION("a handle") {
    asked.eval();
    CHECK(exec::value_of(seen) != nullptr);
  }
  SECTION("nobody") {
    hidden = {};
    asked.eval();
    CHECK(exec::value_of(seen) == nullptr);
  }
}

TEST_CASE("a handle of another value decides neither whether a parameter follows at once nor whether its effect is done") {
  const auto add_one = [](const Tensor& now, const Tensor&) { return now + 1.0; };
  const auto followed = [&](bool held) {
    manual_seed(3);
    const Tensor a = randn({8, 16}).detach(), v = randn({16, 4}).detach();
    nn::Parameter p(Tensor::scalar(0.0F));
    const Tensor m = a * 2.0;
    Tensor d = softmax(m + 1.0, 1);
    const Tensor y = sum(matmul(d, v));
    if (!held) d = {};
    y.eval();
    p.follow(m, add_one);
    gradients(y, {v})[0].eval();
    return p.value().item<float>();
  };
  CHECK(followed(true) == 1);
  CHECK(followed(false) == 1);

  const auto at_once = [&](bool held) {
    manual_seed(4);
    std::vector<Tensor> parts;
    for (int i = 0; i < 8; ++i) parts.push_back(softmax(randn({16, 16}).detach(), 1));
    const Tensor h = parts[0], s = sum(concat(parts, 0));
    Tensor t = parts[1];
    parts.clear();
    if (!held) t = {};
    s.eval();
    nn::Parameter p(Tensor::scalar(0.0F));
    p.follow(h, add_one);
    return p.value().item<float>();
  };
  CHECK(at_once(true) == at_once(false));
}

TEST_CASE("a handle of a view hides no label") {
  for (const bool held : {true, false}) {
    const Tensor all = Tensor::from(std::vector<std::int64_t>{7, 1, 2, 3}, {4, 1}),
                 rows = Tensor::from(std::vector<std::int64_t>{0, 1});
    Tensor view = squeeze(index_select(all, 0, rows), 1);
    const Tensor labels = cast(view, Dtype::i32);
    if (!held) view = {};
    labels.eval();
    CHECK_THROWS_WITH(cross_entropy(zeros({2, 3}), labels), Catch::Contains("label 7 of sample 0 is no class"));
  }
}

namespace {

/// A gradient whose graph has a NaN that its value has not. The matrix with the NaN may be held.
Tensor beside_nan(bool held) {
  const Tensor x = Tensor::from({INFINITY, 0.0F, 1.0F, 1.0F}, {2, 2}), w = Tensor::from({0.0F, 1.0F, 1.0F, 1.0F}, {2, 2});
  const Tensor v = ones({2, 2}).detach();
  Tensor h = matmul(x, w);
  const Tensor y = sum(matmul(index_select(h, 0, Tensor::from(std::vector<std::int64_t>{1})), v));
  if (!held) h = {};
  y.eval();
  return gradients(y, {v})[0];
}

}  // namespace

TEST_CASE("a handle hides no anomaly") {
  for (const bool held : {true, false}) {
    const Tensor g = beside_nan(held);
    const DetectAnomaly looking;
    CHECK_THROWS_WITH(g.eval(), Catch::Contains("matmul made the first nan"));
  }
}

TEST_CASE("a parameter is no plain value to a plan, whichever of both came first") {
  manual_seed(5);
  const Tensor x = randn({32, 512}).detach(), w0 = randn({64, 512}).detach(), b0 = randn({64}).detach();
  cumsum(linear(x, w0, b0), 0).eval();
  const nn::Parameter w(w0), b(b0);
  const auto sums = [&](bool held) {
    Tensor h = linear(x, w.value(), b.value());
    const Tensor z = cumsum(h, 0);
    if (!held) h = {};
    return z.to_vector<float>();
  };
  CHECK(sums(true) == sums(false));
}

TEST_CASE("a slice is written in place however often its result is held") {
  Tensor x = rows(8, 3, 0);
  const auto memory = memory_of(x);
  const Floats expected = updated(values_of(x), 3, 2, values_of(rows(1, 3, 50)));
  x = slice_update(x, 0, 2, rows(1, 3, 50));
  const std::vector<Tensor> held(10, x);
  CHECK(values_of(x) == expected);
  if (Device::current().info().reuses_buffers && exec::Options::now().shares && exec::Options::now().fuses)
    CHECK(memory_of(x) == memory);
  for (const auto& tensor : held) CHECK(values_of(tensor) == expected);
}

TEST_CASE("memory that a program was handed is not overwritten while it has it, and is afterwards") {
  nn::Linear layer(4, 3);
  optim::SGD sgd(layer, {.learning_rate = 0.1, .momentum = 0.9});
  const auto step = [&] { sgd.step(mean(square(layer(make_tensor({2, 4}, 1))))); };
  const auto state = [&] {
    for (const auto& [name, tensor] : sgd.state_dict())
      if (tensor.rank() == 2) return tensor;
    throw std::logic_error("no state");
  };
  step();
  const auto memory = memory_of(state());
  const auto before = values_of(state());
  {
    auto reading = state().read_async();
    step();
    CHECK(memory_of(state()) != memory);
    CHECK(reading.get() == before);
  }
  const auto next = memory_of(state());
  step();
  if (Device::current().info().reuses_buffers && exec::Options::now().shares && exec::Options::now().fuses)
    CHECK(memory_of(state()) == next);
}

namespace {

/// h and a sum over it and seven others. Where another part is `held`, h's value comes along with the sum; otherwise it does not.
struct ComesAlong {
  Tensor h, total, held;
  ComesAlong(
      bool holds, const std::function<Tensor(const Tensor&)>& inner = [](const Tensor& a) { return a; },
      const std::function<Tensor()>& drawn =
          [] {
            return randn({16, 16}).detach();
          }) {
    manual_seed(4);
    std::vector<Tensor> parts;
    for (int i = 0; i < 8; ++i) parts.push_back(softmax(i == 0 ? inner(drawn()) : drawn(), 1));
    h = parts[0];
    total = sum(concat(parts, 0));
    held = parts[1];
    parts.clear();
    if (!holds) held = {};
    total.eval();
  }
};

Tensor add_one(const Tensor& now, const Tensor&) { return now + 1.0; }

}  // namespace

TEST_CASE("what comes along unasked is not there to the program, and once asked for it is") {
  for (const bool holds : {true, false}) {
    CAPTURE(holds);
    const ComesAlong made(holds);
    nn::Parameter p(Tensor::scalar(0.0F)), q(Tensor::scalar(0.0F));
    SECTION("a parameter follows") {
      p.follow(made.h, add_one);
      CHECK(p.value().item<float>() == 0);
      made.h.eval();
      CHECK(p.value().item<float>() == 1);
    }
    SECTION("a parameter follows what was asked for") {
      made.h.eval();
      p.follow(made.h, add_one);
      CHECK(p.value().item<float>() == 1);
    }
    SECTION("another parameter has it") {
      std::optional<nn::Parameter> other;
      if (holds) other.emplace(made.h);
      p.follow(made.h, add_one);
      CHECK(p.value().item<float>() == 0);
    }
    SECTION("a parameter is set to it") {
      nn::Parameter waiting(zeros({16, 16}).detach());
      Tensor w = zeros({16, 16}) + 1.0;
      q.follow(w, add_one);
      waiting.set(w);
      w = {};
      waiting.set(made.h);
      CHECK(q.value().item<float>() == 1);
    }
  }
}

TEST_CASE("a parameter of what came along unasked waits for it, whoever holds another value") {
  for (const bool holds : {true, false}) {
    CAPTURE(holds);
    Tensor m;
    const ComesAlong made(holds, [&](const Tensor& a) { return (m = a * 2.0) + 1.0; });
    nn::Parameter p(made.h), q(Tensor::scalar(0.0F));
    q.follow(m, add_one);
    p.value().eval();
    CHECK(q.value().item<float>() == 1);
  }
}

TEST_CASE("what came along unasked decides nothing about devices") {
  const Device second = test::second_device();
  const auto drawn = [] { return randn({16, 16}); };
  for (const bool holds : {true, false}) {
    CAPTURE(holds);
    const ComesAlong made(
        holds, [](const Tensor& a) { return a; }, drawn);
    SECTION("it is computed where the other operand is") {
      const Tensor b = copy_to(ones({16, 16}), second).detach(), y = made.h * b;
      CHECK_NOTHROW(y.eval());
      CHECK(y.device() == second);
    }
    SECTION("it is computed where it is asked for") {
      const DeviceScope there(second);
      CHECK(made.h.device() == second);
      eval(std::vector{made.h}, second);
      CHECK(made.h.device() == second);
    }
  }
}

TEST_CASE("a handle hides no anomaly behind a copy") {
  const Device second = test::second_device();
  for (const bool held : {true, false}) {
    const Tensor g = copy_to(beside_nan(held), second);
    const DetectAnomaly looking;
    CHECK_THROWS_WITH(g.eval(), Catch::Contains("matmul made the first nan"));
  }
}

TEST_CASE("a parameter of a layer that is gone is updated, whoever holds it") {
  std::optional<nn::Parameter> mean;
  Tensor y;
  {
    nn::BatchNorm1d norm(3, {.momentum = std::nullopt});
    mean.emplace(norm.parameter("running_mean"));
    y = norm(make_tensor({4, 3}, 1));
  }
  CHECK_NOTHROW(y.eval());
  CHECK(values_of(mean->value()) != Floats(3, 0));
}

TEST_CASE("what came along unasked does not decide what a gradient in a checkpoint reads") {
  for (const bool held : {true, false}) {
    CAPTURE(held);
    manual_seed(3);
    const Tensor a = randn({8, 16}).detach(), v = randn({16, 4}).detach();
    nn::Parameter p(Tensor::scalar(0.0F));
    Tensor m, d;
    const Tensor y = checkpoint([&] {
      m = a * 2.0;
      d = softmax(m + 1.0, 1);
      return sum(matmul(d, v));
    });
    if (!held) d = {};
    y.eval();
    const Tensor g = gradients(y, {v})[0];
    p.follow(m, add_one);
    g.eval();
    CHECK(p.value().item<float>() == 0);  // the gradient reads copies, made before the parameter followed
  }
}

TEST_CASE("a compiled function draws anew what came along unasked while it was built") {
  for (const bool held : {true, false}) {
    CAPTURE(held);
    const Tensor c = randn({16, 4}).detach(), x = zeros({16, 4}).detach();
    const auto f = compile([&](const Tensor& in) {
      Tensor h = softmax(randn({8, 16}), 1);
      const Tensor y = sum(matmul(h, c));
      if (!held) h = {};
      y.eval();
      return gradients(y, {c})[0] + in;
    });
    CHECK(f(x).to_vector<float>() != f(x).to_vector<float>());
  }
}

TEST_CASE("what an update returns was asked for, though it came along before") {
  for (const bool holds : {true, false}) {
    CAPTURE(holds);
    const ComesAlong made(holds);
    nn::Parameter p(zeros({16, 16})), q(Tensor::scalar(0.0F));
    const Tensor v = ones({16, 16}) * 2.0;
    p.follow(v, [h = made.h](const Tensor&, const Tensor&) { return h; });
    v.eval();
    q.follow(made.h, add_one);
    CHECK(q.value().item<float>() == 1);
  }
}

TEST_CASE("memory that an evaluation still reads is not overwritten, though its value was dropped meanwhile") {
  for (const bool trims : {true, false}) {
    CAPTURE(trims);
    const Tensor a = make_tensor({4, 6}, 1), patch = ones({5}).detach();
    const auto expected = values_of(softmax(a, 1) * 2.0);
    const Tensor r = softmax(a, 1);
    Tensor v = reshape(r, {24});
    v.eval();
    Tensor l = v.detach();
    v = {};
    const Tensor z = slice_update(l, 0, 2, patch);
    l = {};
    const Tensor y = r * 2.0 + sum(z) * 0.0;
    nn::Parameter p(Tensor::scalar(0.0F));
    const Tensor w = ones({3}) * 2.0;
    p.follow(w, [trims](const Tensor& now, const Tensor&) {
      if (trims) Device::current().trim();
      return now + 1.0;
    });
    eval({z, y, w});
    CHECK(values_of(y) == expected);
  }
}

TEST_CASE("a slot that is set while a plan is made gives its old value to nobody") {
  Tensor old = make_tensor({4, 6}, 1) * 1.0;
  old.eval();
  nn::Parameter state(old);
  old = {};
  const Tensor next = uncounted(state.value() * 2.0);
  exec::Walk walk;
  exec::Collector collector(walk);
  collector.add(std::span(&next, 1));
  const auto work = collector.take({{slot_of(state)}, {node_of(next).get()}});
  CHECK(work.may_overwrite_now(0) == exec::MayOverwrite::all);
  const Tensor kept = state.value();
  CHECK(work.may_overwrite_now(0) == exec::MayOverwrite::nothing);
  state.set(zeros({4, 6}));
  CHECK(work.may_overwrite_now(0) == exec::MayOverwrite::nothing);
}

TEST_CASE("updates and reports see no device of what came along unasked") {
  const Device second = test::second_device();
  for (const bool holds : {true, false}) {
    CAPTURE(holds);
    const ComesAlong made(
        holds, [](const Tensor& a) { return a; },
        [] {
          return randn({16, 16});
        });
    const Tensor b = copy_to(ones({16, 16}), second).detach();
    SECTION("a report") { CHECK_NOTHROW(memory_report({made.h * b})); }
    SECTION("an update") {
      nn::Parameter p(b);
      const Tensor v = p.value() * 2.0;
      p.follow(v, [h = made.h](const Tensor& now, const Tensor&) { return now + h; });
      CHECK_NOTHROW(v.eval());
    }
    SECTION("a device that others of the evaluation have") {
      const Tensor one = (ones({4}) * 1.0).detach();
      one.eval();
      const DeviceScope there(second);
      const Tensor a2 = one * 2.0, b2 = slice(reshape(b, {256}), 0, 0, 4) * 2.0, t = made.h * 3.0;
      eval({a2, b2, t});
      CHECK(t.device() == second);
    }
  }
}

TEST_CASE("a handle in a graph that is cut there hides no second device") {
  const Device first = Device::current(), second = test::second_device();
  const auto there = [](const Tensor& x, const Device& device) { return copy_to(x, device).detach(); };
  for (const bool held : {true, false}) {
    CAPTURE(held);
    const Tensor a = there(ones({8, 16}), first), b = there(ones({8, 16}), second), v = there(ones({16, 4}), second);
    SECTION("an operation on both sides of it") {
      const Tensor z = ones({8, 16}) * 2.0;
      Tensor d = softmax(b * z + 1.0, 1);
      const Tensor y = sum(matmul(d, v));
      if (!held) d = {};
      y.eval();
      const Tensor g = gradients(y, {v})[0], u = z * a;
      CHECK_THROWS_WITH(eval({g, u}), Catch::Contains("copy_to() copies values"));
    }
    SECTION("a copy before it") {
      const Tensor z = ones({8, 16}) * 2.0;
      Tensor d = copy_to(a * z, second);
      const Tensor y = sum(d * b);
      if (!held) d = {};
      y.eval();
      const Tensor g = gradients(y, {b})[0], u = z * b;
      const DeviceScope scope(second);
      CHECK_THROWS_WITH(eval({g, u}), Catch::Contains("copy_to() copies values"));
    }
    SECTION("an operation of no device beside it") {
      Tensor h = copy_to(a * 2.0, second);
      const Tensor y = sum(h * b);
      if (!held) h = {};
      y.eval();
      const Tensor g = gradients(y, {b})[0], t = randn({8, 16}) * 3.0;
      eval({g, t});
      CHECK(t.device() == first);
      CHECK_NOTHROW((t + a).eval());
    }
  }
}

TEST_CASE("a refused step takes no state away, whoever holds it") {
  for (const bool holds : {true, false})
    for (const bool accumulates : {true, false}) {
      CAPTURE(holds, accumulates);
      const nn::Parameter w(ones({4}).detach());
      optim::SGD sgd(nn::NamedParameters{{"w", w}}, {.learning_rate = 0.1, .momentum = 0.9});
      const auto step = [&] {
        const Tensor loss = sum(square(w.value()));
        (void)(accumulates ? sgd.accumulate(loss) : sgd.step(loss));
      };
      step();
      const auto held = holds ? sgd.state_dict() : io::StateDict{};
      {
        const DetectAnomaly searching;
        const auto f = compile([&](const Tensor& x) {
          step();
          return x;
        });
        CHECK_THROWS_WITH(f(ones({2})), Catch::StartsWith("compile: the function sets a parameter"));
      }
      step();
      if (accumulates) sgd.step();
      // Two gradients of 2 are added, or 2 * 0.9 and 1.6, the second gradient, at 0.8.
      CHECK(values_of(w) == Floats(4, accumulates ? 0.6F : 0.46F));
    }
}

TEST_CASE("a late update is computed on the device of its parameter, whoever holds the value that it follows") {
  const Device second = test::second_device();
  for (const bool holds : {true, false}) {
    CAPTURE(holds);
    nn::Parameter p(zeros({16, 16}));
    const Tensor elsewhere = copy_to(full({16, 16}, 100.0), second).detach();
    Tensor x = softmax(randn({16, 16}), 1);
    bool first = true;
    p.follow(x, [&](const Tensor& now, const Tensor& value) {
      // Another thread is faster.
      if (std::exchange(first, false)) std::thread([&] { p.set(elsewhere); }).join();
      return now + value;
    });
    const Tensor y = sum(tanh(x));
    const Tensor held = holds ? x : Tensor();
    x = {};
    y.eval();
    for (const float row : values_of(sum(p.value(), {1}))) CHECK(row == Approx(1601));
    CHECK(p.value().device() == second);
  }
}

TEST_CASE("any number of handles of views hides no label") {
  for (const bool held : {true, false}) {
    CAPTURE(held);
    const Tensor all = Tensor::from(std::vector<std::int64_t>{7, 1, 2, 3}, {4, 1}),
                 rows = Tensor::from(std::vector<std::int64_t>{0, 1});
    std::vector<Tensor> views{index_select(all, 0, rows)};
    for (int i = 0; i < 80; ++i) views.push_back(reshape(views.back(), i % 2 == 0 ? Shape{1, 2} : Shape{2, 1}));
    const Tensor labels = cast(reshape(views.back(), {2}), Dtype::i32);
    if (!held) views.clear();
    labels.eval();
    CHECK_THROWS_WITH(cross_entropy(zeros({2, 3}), labels), Catch::Contains("label 7 of sample 0 is no class"));
  }
}
