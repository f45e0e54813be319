// What an evaluation does to running statistics: exactly once, along with it, and nothing when it fails or never happens.
#include "lib/exec/collect/effects.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <future>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "lib/graph/node.h"
#include "lib/nn/parameter.h"
#include "tests/support/captured.h"

using namespace clnet;

namespace {

Tensor images(std::int64_t count, float offset, std::int64_t size = 4) {
  std::vector<float> values(static_cast<std::size_t>(count * 2 * size * size));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i)) + offset;
  return Tensor::from(values, {count, 2, size, size});
}

struct ConvNorm : nn::Module {
  nn::Conv2d conv{2, 3, 3, {.padding = 1}};
  nn::BatchNorm2d norm{3};
  ConvNorm() {
    add("conv", conv);
    add("norm", norm);
  }
  Tensor forward(const Tensor& x) override { return relu(norm(conv(x))); }
};

Tensor loss_of(nn::Module& net, const Tensor& x) { return mean(square(net(x))); }

std::vector<float> buffer(const nn::Module& module, const std::string& end) {
  for (const auto& [name, parameter] : module.buffers())
    if (name.ends_with(end)) return parameter.value().to_vector<float>();
  FAIL("no buffer " << end);
  return {};
}

float batches_seen(const nn::Module& module) { return buffer(module, "num_batches_tracked")[0]; }

std::vector<std::vector<float>> all_state(const nn::Module& module, const optim::Optimizer& optimizer) {
  std::vector<std::vector<float>> result;
  for (const auto& state : {module.state_dict(), optimizer.state_dict()})
    for (const auto& [name, tensor] : state) result.push_back(tensor.to_vector<float>());
  return result;
}

/// What PyTorch's formula makes of the running mean and variance of one layer that sees `batches`.
struct Running {
  std::vector<double> mean{0, 0}, var{1, 1};
  void see(const Tensor& batch) {
    const auto x = batch.to_vector<float>();
    const std::size_t plane = static_cast<std::size_t>(batch.size(2) * batch.size(3)), count = x.size() / 2;
    for (std::size_t c = 0; c < 2; ++c) {
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (i / plane % 2 == c) sum += x[i];
      for (std::size_t i = 0; i < x.size(); ++i)
        if (i / plane % 2 == c) squares += std::pow(x[i] - sum / static_cast<double>(count), 2);
      mean[c] = 0.9 * mean[c] + 0.1 * sum / static_cast<double>(count);
      var[c] = 0.9 * var[c] + 0.1 * squares / static_cast<double>(count - 1);
    }
  }
  void check(const nn::Module& module) const {
    const auto m = buffer(module, "running_mean"), v = buffer(module, "running_var");
    for (std::size_t c = 0; c < 2; ++c) {
      CHECK(m[c] == Approx(mean[c]).margin(1e-5));
      CHECK(v[c] == Approx(var[c]).margin(1e-5));
    }
  }
};

/// The device's memory limit, for a while.
class Limit {
 public:
  explicit Limit(std::size_t bytes) { Device::current().set_memory_limit(bytes); }
  ~Limit() { Device::current().set_memory_limit(0); }
};

}  // namespace

TEST_CASE("running statistics change when the result is computed, and only once") {
  nn::BatchNorm2d norm(2);
  Running expected;
  const Tensor first = images(3, 1), second = images(5, -2);
  const Tensor y = norm(first);
  CHECK(batches_seen(norm) == 0);
  expected.check(norm);
  y.eval();
  expected.see(first);
  expected.check(norm);
  CHECK(batches_seen(norm) == 1);
  y.eval();
  (y * 2.0).eval();
  CHECK(batches_seen(norm) == 1);

  SECTION("several in one evaluation apply in the program's order") {
    const Tensor a = norm(second), b = norm(first);
    eval({b, a});
    expected.see(second);
    expected.see(first);
    expected.check(norm);
    CHECK(batches_seen(norm) == 3);
  }
  SECTION("a result that is never computed changes nothing") {
    (void)norm(second);
    norm(first).eval();
    expected.see(first);
    expected.check(norm);
  }
  SECTION("a value that is set in between is the one that changes") {
    const Tensor later = norm(second);
    auto state = norm.state_dict();
    for (auto& [name, tensor] : state)
      if (name == "running_mean") tensor = Tensor::from({100.0F, 200.0F});
    norm.load_state_dict(state);
    later.eval();
    expected.mean = {100, 200};
    expected.see(second);
    expected.check(norm);
  }
  SECTION("in inference nothing changes") {
    norm.inference();
    norm(second).eval();
    expected.check(norm);
    CHECK(batches_seen(norm) == 1);
  }
}

TEST_CASE("without a momentum running statistics are the means over the batches") {
  const std::vector<Tensor> batches{images(3, 1), images(5, -2), images(2, 4)};
  // Each batch's own, which a momentum of 1 keeps.
  std::vector<double> mean(2), var(2);
  for (const auto& batch : batches) {
    nn::BatchNorm2d last(2, {.momentum = 1});
    last(batch).eval();
    for (std::size_t c = 0; c < 2; ++c) {
      mean[c] += buffer(last, "running_mean")[c] / 3;
      var[c] += buffer(last, "running_var")[c] / 3;
    }
  }
  nn::BatchNorm2d norm(2, {.momentum = std::nullopt});
  SECTION("one after the other, what was there before does not count") {
    auto state = norm.state_dict();
    for (auto& [name, tensor] : state)
      if (name == "running_var") tensor = Tensor::from({1e6F, -1e6F});
    norm.load_state_dict(state);
    for (const auto& batch : batches) norm(batch).eval();
  }
  SECTION("in one evaluation, whose results come in another order") {
    const Tensor a = norm(batches[0]), b = norm(batches[1]), c = norm(batches[2]);
    eval({c, a, b});
  }
  SECTION("within compile()") {
    const auto compiled = compile([&](const Tensor& x) { return norm(x); });
    for (const auto& batch : batches) (void)compiled(batch).to_vector<float>();
    // Of a shape that was there already.
    nn::BatchNorm2d other(2, {.momentum = std::nullopt});
    const auto again = compile([&](const Tensor& x) { return other(x); });
    for (float offset : {1.0F, 2.0F, 6.0F}) (void)again(images(3, offset)).to_vector<float>();
    nn::BatchNorm2d one(2, {.momentum = 1});
    one(images(3, 3)).eval();
    for (std::size_t c = 0; c < 2; ++c)
      CHECK(buffer(other, "running_mean")[c] == Approx(buffer(one, "running_mean")[c]).epsilon(1e-5));
    CHECK(batches_seen(other) == 3);
  }
  CHECK(batches_seen(norm) == 3);
  for (std::size_t c = 0; c < 2; ++c) {
    CHECK(buffer(norm, "running_mean")[c] == Approx(mean[c]).epsilon(1e-5));
    CHECK(buffer(norm, "running_var")[c] == Approx(var[c]).epsilon(1e-5));
  }
}

TEST_CASE("forward passes without a step hold no batch") {
  ConvNorm net;
  const auto forward = [&](bool evaluate) {
    const Tensor y = net(images(8, 1));
    if (evaluate) y.eval();
  };
  for (const bool evaluate : {false, true}) {
    for (int k = 0; k < 3; ++k) forward(evaluate);
    Device::current().finish();
    const auto alive = Node::alive();
    const auto memory = Device::current().memory().in_use;
    for (int k = 0; k < 20; ++k) forward(evaluate);
    Device::current().finish();
    CHECK(Node::alive() == alive);
    CHECK(Device::current().memory().in_use == memory);
  }
  CHECK(batches_seen(net) == 23);
}

TEST_CASE("every step with running statistics is the same plan") {
  ConvNorm net;
  optim::SGD optimizer(net, {.learning_rate = 0.01, .momentum = 0.9});
  const auto step = [&](float offset) { optimizer.step(loss_of(net, images(4, offset))); };
  step(0);
  const auto before = exec::statistics();
  for (int k = 1; k < 5; ++k) step(static_cast<float>(k));
  const auto after = exec::statistics();
  CHECK(after.plans_made == before.plans_made);
  CHECK(after.evaluations == before.evaluations + 4);
  CHECK(batches_seen(net) == 5);
}

TEST_CASE("reading the loss first, own gradients and own loops count a batch once") {
  ConvNorm net;
  optim::SGD optimizer(net, {.learning_rate = 0.01});
  const auto first = loss_of(net, images(4, 1));
  (void)first.item<float>();
  optimizer.step(first);
  CHECK(batches_seen(net) == 1);

  std::vector<Tensor> parameters;
  for (const auto& [name, parameter] : net.parameters()) parameters.push_back(parameter);
  optimizer.apply(gradients(loss_of(net, images(4, 2)), parameters));
  CHECK(batches_seen(net) == 2);
}

TEST_CASE("losses that are summed over micro-batches compute each once") {
  ConvNorm net;
  optim::SGD optimizer(net, {.learning_rate = 0.01});
  const auto one = loss_of(net, images(4, 0));
  const auto operations = exec::statistics().operations;
  one.eval();
  const auto forward = exec::statistics().operations - operations;
  CHECK(batches_seen(net) == 1);

  Tensor total = loss_of(net, images(4, 1));
  for (int k = 2; k < 5; ++k) total = total + loss_of(net, images(4, static_cast<float>(k)));
  optimizer.step(total);
  CHECK(batches_seen(net) == 5);

  // Evaluated one by one, as a loop over micro-batches does: none is computed a second time by the next or by the end.
  std::vector<Tensor> losses;
  for (int k = 0; k < 4; ++k) {
    losses.push_back(loss_of(net, images(4, static_cast<float>(k))));
    const auto before = exec::statistics().operations;
    losses.back().eval();
    CHECK(exec::statistics().operations - before == forward);
  }
  const auto before = exec::statistics().operations;
  (void)buffer(net, "running_mean");
  CHECK(exec::statistics().operations == before);
  CHECK(batches_seen(net) == 9);
}

TEST_CASE("checkpoints count a batch once") {
  nn::BatchNorm2d norm(2);
  Running expected;
  const Tensor x = images(3, 1);
  const auto scale = Tensor::from({1.0F});
  const auto loss_with = [&](const Tensor& batch, const Tensor& by) {
    return mean(square(checkpoint([&] { return norm(batch * by); })));
  };
  SECTION("the loss and its gradients together") {
    const auto loss = loss_with(x, scale);
    eval({loss, gradients(loss, {scale})[0]});
  }
  SECTION("the gradients alone, which read copies, then the loss") {
    const auto loss = sum(checkpoint([&] { return square(norm(x * scale)); }));
    gradients(loss, {scale})[0].eval();
    CHECK(batches_seen(norm) == 1);
    loss.eval();
  }
  expected.see(x);
  expected.check(norm);
  CHECK(batches_seen(norm) == 1);
}

TEST_CASE("a step that is computed twice in part to save memory counts a batch once") {
  const auto make = [] {
    manual_seed(2);
    nn::Sequential tower;
    for (int k = 0; k < 12; ++k) {
      tower.append(nn::Conv2d{k == 0 ? 2 : 4, 4, 3, {.padding = 1}});
      tower.append(nn::BatchNorm2d{4});
      tower.append(relu);
    }
    return tower;
  };
  const auto step = [](nn::Sequential& tower, std::int64_t batch) {
    std::vector<Tensor> parameters;
    for (const auto& [name, parameter] : tower.parameters()) parameters.push_back(parameter);
    auto results = gradients(loss_of(tower, images(batch, 1, 40)), parameters);
    eval(results);
  };
  auto device = Device::current();
  device.finish();
  device.trim();
  const auto before = device.memory().in_use;
  auto plain = make(), short_of_memory = make(), forward_only = make();
  step(plain, 8);
  device.finish();
  const auto taken = device.memory().in_use - before;
  {
    // Another batch size, so that the plan is another one; its intermediates take as much for each image.
    const auto limit = before + taken * 9 / 8 * 9 / 10;
    const Limit limited(limit);
    step(short_of_memory, 9);
    CHECK(device.memory().in_use <= limit);
  }
  forward_only(images(9, 1, 40)).eval();
  const auto got = short_of_memory.buffers(), want = forward_only.buffers();
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto a = got[i].second.value().to_vector<float>(), b = want[i].second.value().to_vector<float>();
    for (std::size_t c = 0; c < a.size(); ++c) CHECK(a[c] == Approx(b[c]).margin(1e-5));
  }
}

TEST_CASE("inference that is written down before training is computed is told, as it sees old statistics") {
  using clnet::test::written_on_stderr;
  ConvNorm net;
  const Tensor x = images(4, 3);
  const auto told = [&](const std::function<void()>& f) {
    net.train();
    return written_on_stderr([&] {
      f();
      net.inference();
      net(x);
    });
  };
  CHECK(told([&] { eval({net(x)}); }).empty());
  CHECK(told([&] { (void)net(x); }).empty());  // dropped, and so never
  const auto trained = compile([&](const Tensor& of) { return loss_of(net, of); });
  CHECK(told([&] { (void)trained(x).item(); }).empty());

  const auto seen = batches_seen(net);
  Tensor waiting;
  CHECK(told([&] { waiting = net(x); }) ==
        "clnet: norm: BatchNorm2d(3): is called in inference mode while a call in training mode is not computed yet: it sees the "
        "running statistics from before that; evaluate what was made of the call in training mode first\n");
  waiting.eval();
  CHECK(batches_seen(net) == seen + 1);

  // A copy of the model awaits nothing, and a gradient's copies of the pass count with it.
  Tensor loss = checkpoint([&] {
    net.train();
    return loss_of(net, x);
  });
  eval(nn::gradients(loss, net.parameters()));
  // Nothing is awaited: neither what was computed nor what was dropped. (The warning comes once, and would not show it.)
  CHECK(slot_of(net.parameter("norm.running_mean"))->awaited == 0);
  nn::InstanceNorm2d tracked(2, {.track_running_stats = true});
  waiting = tracked(x);
  tracked.inference();
  CHECK(written_on_stderr([&] { tracked(x); }).starts_with("clnet: InstanceNorm2d"));
}

TEST_CASE("a parameter follows what users compute, too") {
  nn::Parameter largest(Tensor::from({0.0F}));
  const Tensor x = Tensor::from({3.0F, -5.0F, 4.0F});
  const Tensor y = abs(x) * 1.0;
  const auto update = [](const Tensor& now, const Tensor& value) { return maximum(now, max(value, {0}, true)); };
  largest.follow(y, update);
  CHECK(largest.value().item<float>() == 0);
  sum(y).eval();
  CHECK(largest.value().item<float>() == 5);
  SECTION("at once, what is computed already") {
    largest.follow(x * 0.0 + 7.0, update);
    CHECK(largest.value().item<float>() == 5);
    const Tensor z = (x * 2.0).detach();
    largest.follow(z, update);
    CHECK(largest.value().item<float>() == 8);
  }
  SECTION("an update of another shape is an error, and changes nothing") {
    const Tensor z = x * 3.0;
    largest.follow(z, [](const Tensor&, const Tensor& value) { return value; });
    CHECK_THROWS_WITH(z.eval(), Catch::Contains("f32[3]") && Catch::Contains("f32[1]"));
    CHECK(largest.value().item<float>() == 5);
  }
}

TEST_CASE("a step that fails changes nothing, and is right to the bit when it is made again") {
  const auto device = Device::current();
  const auto prepare = [] {
    manual_seed(5);
    return std::make_unique<ConvNorm>();
  };
  const auto make_optimizer = [](const nn::Module& m) { return optim::Adam(m, {.learning_rate = 0.01}); };
  const Tensor small = images(2, 1), large = images(16, 0.5, 64);

  const auto straight = prepare();
  auto its_optimizer = make_optimizer(*straight);
  its_optimizer.step(loss_of(*straight, small));
  its_optimizer.step(loss_of(*straight, large));
  const auto wanted = all_state(*straight, its_optimizer);

  const auto net = prepare();
  auto optimizer = make_optimizer(*net);
  optimizer.step(loss_of(*net, small));
  const auto before = all_state(*net, optimizer);
  const auto loss = loss_of(*net, large);
  Device::current().finish();
  Device::current().trim();
  {
    const Limit limit(device.memory().in_use + (64 << 10));
    CHECK_THROWS_AS(optimizer.step(loss), Error);
    CHECK_THROWS_AS(loss.eval(), Error);
  }
  CHECK(optimizer.steps() == 1);
  CHECK(batches_seen(*net) == 1);
  CHECK(all_state(*net, optimizer) == before);
  SECTION("the same loss") { optimizer.step(loss); }
  SECTION("a loss built anew") { optimizer.step(loss_of(*net, large)); }
  CHECK(all_state(*net, optimizer) == wanted);
}

TEST_CASE("an update that evaluates is refused with one error, and the value can still be had") {
  const nn::Parameter p(zeros({}));
  const auto reads = [](const Tensor& now, const Tensor& value) { return value.item<float>() > 1 ? now + 1.0 : now; };
  const auto waits = [](const Tensor& now, const Tensor& value) {
    value.eval();
    return now;
  };
  for (const auto& update : {std::function<Tensor(const Tensor&, const Tensor&)>(reads), {waits}}) {
    const Tensor s = sum(ones({3})) * 2.0;
    nn::Parameter(p).follow(s, update);
    CHECK_THROWS_WITH(s.eval(), "Parameter::follow: the update evaluates or reads a value; it may only build graph");
    CHECK(p.value().item<float>() == 0);
    CHECK((sum(ones({3})) * 2.0).item<float>() == 6);
  }
}

TEST_CASE("follow() wants an update, and assign() names each parameter once") {
  nn::Parameter p(zeros({2}));
  CHECK_THROWS_WITH(p.follow(ones({2}), nullptr), "a parameter cannot follow a tensor without an update");
  CHECK_THROWS_WITH(nn::assign({{p, ones({2})}, {p, zeros({2})}}), "assign: a parameter of f32[2] is given twice");
  CHECK(p.value().to_vector<float>() == std::vector<float>{0, 0});
}

TEST_CASE("a slot takes a value that was there, or was computed, also where memory was short meanwhile and it was taken away") {
  nn::Parameter found(zeros({2}).detach()), made(zeros({2}).detach());
  const Tensor there = (ones({2}) * 3.0).detach(), x = Tensor::from({1.0F, 2.0F}), y = x * 2.0, other = x + 1.0;
  found.follow(y, [&](const Tensor&, const Tensor&) { return there; });
  made.follow(y, [&](const Tensor&, const Tensor&) { return other; });
  const std::vector<Tensor> asked{y};
  exec::Effects effects(asked);
  effects.add(exec::collect(asked).nodes);
  const auto work = exec::collect(effects.wanted());
  REQUIRE(work.wanted.size() == 2);
  const auto value = exec::value_of(there);
  const std::vector<std::shared_ptr<Value>> results{nullptr, exec::value_of(Tensor::from({2.0F, 3.0F}))};
  exec::cell_of(there).set(nullptr);  // by another thread that finds no memory
  CHECK(effects.commit([&](const Tensor& tensor) { return work.value_of(tensor, results); }).empty());
  exec::cell_of(there).set(value);
  CHECK(found.value().to_vector<float>() == std::vector<float>{3, 3});
  CHECK(made.value().to_vector<float>() == std::vector<float>{2, 3});
}

TEST_CASE("of two evaluations that are under way at once, one does the effect that they share, and the other what remains") {
  const nn::Parameter p(zeros({2}).detach());
  const Tensor x = Tensor::from({1.0F, 2.0F}), shared = x * 2.0, own = shared + 3.0;
  const auto slot = slot_of(p);
  const auto add = [](const Tensor& now, const Tensor& value) { return now + value; };
  nn::Parameter(p).follow(shared, add);
  nn::Parameter(p).follow(own, add);
  const std::vector<Tensor> asked{own};
  exec::Effects effects(asked);
  const auto work = effects.collect();
  shared.eval();  // by another thread, before this one has its results
  CHECK(p.value().to_vector<float>() == std::vector<float>{2, 4});
  CHECK(slot->awaited == 1);
  const auto no_value = [](const Tensor& tensor) { return exec::value_of(Tensor::from(std::vector<float>(2), tensor.shape())); };
  const auto left = effects.commit(no_value);
  CHECK(p.value().to_vector<float>() == std::vector<float>{2, 4});
  REQUIRE(left.size() == 1);
  CHECK(left[0].value.same(own));
  own.eval();
  CHECK(p.value().to_vector<float>() == std::vector<float>{7, 11});
  CHECK(slot->awaited == 0);

  // What is done while its update is under way is not done again.
  const nn::Parameter q(zeros({2}).detach());
  const Tensor y = x * 5.0;
  nn::Parameter(q).follow(y, add);
  exec::Effects late({&y, 1});
  const auto same = late.collect();
  y.eval();
  CHECK(late.commit(no_value).empty());
  CHECK(q.value().to_vector<float>() == std::vector<float>{5, 10});
}

TEST_CASE("an update sets no parameter") {
  nn::Parameter p(zeros({2}).detach());
  const Tensor y = ones({2}) * 2.0;
  p.follow(y, [&](const Tensor& now, const Tensor& value) {
    p.set(ones({2}));
    return now + value;
  });
  CHECK_THROWS_WITH(y.eval(), "Parameter::set: called by the update of Parameter::follow");
  CHECK(p.value().to_vector<float>() == std::vector<float>{0, 0});
}

TEST_CASE("an effect that remains when memory ends is done by the next evaluation") {
  nn::Parameter p(zeros({1 << 20}).detach());
  p.value().eval();
  const Tensor x = ones({1 << 20}).detach();
  x.eval();
  const auto add = [](const Tensor& now, const Tensor& value) { return now + value; };
  const Tensor shared = x * 2.0, own = shared + 3.0;
  p.follow(own, add);
  // In the first go another thread changes the slot, and memory ends in the second.
  int goes = 0;
  nn::Parameter q(zeros({1}).detach());
  q.follow(own, [&](const Tensor& now, const Tensor& value) {
    if (++goes == 1) std::async(std::launch::async, [&] { p.set(p.value() + 1.0); }).get();
    if (goes == 2) Device::current().set_memory_limit(Device::current().memory().in_use + 1024);
    return now + reshape(narrow(value, 0, 0, 1), {1});
  });
  own.eval();
  CHECK(goes == 2);
  CHECK(own.to_vector<float>()[5] == 5);  // what is there can be read
  Device::current().set_memory_limit(0);
  (x + 1.0).eval();
  CHECK(p.value().to_vector<float>()[5] == 6);
  CHECK(q.value().to_vector<float>()[0] == 5);
}

TEST_CASE("a slot's value that waited keeps its inputs while somebody walks over them, and no longer") {
  nn::Parameter p(zeros({2}).detach());
  p.set(Tensor::from({1.0F, 2.0F}) + 1.0);
  const auto node = node_of(p.value());
  {
    exec::Walk walk;
    CHECK(walk.enter(node));
    CHECK(walk.enter(node));
    p.value().eval();
    CHECK(node->inputs.size() == 1);
    exec::Walk later;
    CHECK_FALSE(later.enter(node));
  }
  CHECK(node->inputs.empty());

  // An evaluation of something else, however long it takes, keeps nothing.
  const Tensor other = p.value() * 2.0;
  exec::Effects long_one({&other, 1});
  const auto work = long_one.collect();
  p.set(p.value() + 1.0);
  const auto next = node_of(p.value());
  p.value().eval();
  CHECK(next->inputs.empty());
}
