// copy_to(), and evaluations that take two devices.
#include <catch2/catch.hpp>
#include <future>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "tests/ops/values.h"
#include "tests/support/second_device.h"

using namespace clnet;

namespace {

using Floats = std::vector<float>;

/// The current device and another one.
struct TwoDevices {
  Device first = Device::current(), second = test::second_device();
};

Floats counted(std::size_t count) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
  return values;
}

bool close(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
           return std::abs(x - y) <= 1e-5F * std::max(1.0F, std::abs(y));
         });
}

/// A network whose second half is on another device.
struct Halves : nn::Module {
  // A bias before normalisation has a gradient of roundings alone, which Adam makes whole steps of.
  nn::Sequential front{nn::Conv2d{1, 4, 3, {.bias = false}}, nn::BatchNorm2d{4}, relu};
  nn::Sequential back{nn::Flatten{}, nn::Linear{64, 8}, tanh, nn::Linear{8, 3}};
  Device here, there;

  Halves(const Device& one, const Device& other) : here(one), there(other) {
    add("front", front);
    add("back", back);
    front.to(here);
    back.to(there);
  }
  Tensor operator()(const Tensor& x) const { return back(copy_to(front(x), there)); }
};

Tensor images(int step) {
  Floats pixels(4 * 36);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(step)) % 19) / 9 - 1;
  return Tensor::from(pixels, {4, 1, 6, 6});
}
Tensor classes(int step) { return Tensor::from({0, 1, 2, step % 3}); }

template <class MakeOptimizer>
std::pair<Floats, Floats> trained(const Device& one, const Device& other, const MakeOptimizer& make_optimizer) {
  manual_seed(5);
  Halves net(one, other);
  auto optimizer = make_optimizer(net);
  Floats losses;
  for (int step = 0; step < 5; ++step)
    losses.push_back(optimizer.step(cross_entropy(net(images(step)), classes(step))).template item<float>());
  Floats state;
  for (const auto& [name, tensor] : net.state_dict()) {
    const auto values = tensor.template to_vector<float>();
    state.insert(state.end(), values.begin(), values.end());
  }
  return {losses, state};
}

}  // namespace

TEST_CASE("copy_to: a value goes to another device when it is needed, and back") {
  const TwoDevices two;
  const Tensor x = copy_to(Tensor::from(counted(12), {3, 4}), two.first) * 2.0;
  const auto before = exec::statistics().evaluations;
  const Tensor there = copy_to(x, two.second), y = there + 1.0, back = copy_to(y, two.first) * 0.5;
  CHECK(there.device() == two.second);
  CHECK(y.device() == two.second);
  CHECK(back.device() == two.first);
  CHECK(exec::statistics().evaluations == before);
  const auto values = back.to_vector<float>();
  const auto given = counted(12);
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == given[i] + 0.5F);
  CHECK(there.shape() == x.shape());
}

TEST_CASE("copy_to: every dtype, no elements, scalars, parts of a value, a value that is there") {
  const TwoDevices two;
  for (const auto dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i32, Dtype::i64, Dtype::i8, Dtype::u8, Dtype::boolean}) {
    const Tensor x = Tensor::from({0.0F, 1.0F, 2.0F, 3.0F, 100.0F}).to(dtype);
    const Tensor there = copy_to(x, two.second);
    CHECK(there.dtype() == dtype);
    CHECK(there.to_vector<float>() == x.to_vector<float>());
    CHECK(copy_to(there, two.first).to_vector<float>() == x.to_vector<float>());
  }
  CHECK(copy_to(zeros({0, 3}), two.second).to_vector<float>().empty());
  CHECK(copy_to(copy_to(zeros({0, 3}) + 1.0, two.second), two.first).to_vector<float>().empty());
  CHECK(copy_to(Tensor::scalar(2.5), two.second).item<float>() == 2.5F);
  const Tensor whole = copy_to(Tensor::from(counted(12), {3, 4}), two.first);
  whole.eval();
  const Floats row{counted(12)[4], counted(12)[5], counted(12)[6], counted(12)[7]};
  CHECK(copy_to(whole[1], two.second).to_vector<float>() == row);
  CHECK(copy_to(whole, two.first).to_vector<float>() == counted(12));
  CHECK(copy_to(copy_to(copy_to(whole, two.second), two.second), two.first).to_vector<float>() == counted(12));
  CHECK_THROWS_WITH(copy_to(Tensor{}, two.first), Catch::Contains("copy_to"));
}

TEST_CASE("copy_to: labels are still checked by the host") {
  const TwoDevices two;
  const Tensor labels = copy_to(copy_to(Tensor::from({0, 7}), two.first), two.second);
  CHECK_THROWS_WITH(nll_loss(copy_to(ones({2, 3}), two.second), labels), Catch::Contains("7"));
}

TEST_CASE("copy_to: gradients go back, of any order") {
  const TwoDevices two;
  const auto graph = [&](const std::vector<Tensor>& in, bool copies) {
    const auto to = [&](const Tensor& x, const Device& device) { return copies ? copy_to(x, device) : x; };
    const Tensor there = tanh(to(in[0] * in[1], two.second)), back = to(there * to(in[1], two.second), two.first);
    return sum(back * back * in[0]);
  };
  const std::vector<Tensor> leaves{Tensor::from({0.5F, -1.0F, 2.0F}), Tensor::from({1.5F, 0.25F, -0.75F})};
  const auto all = [&](bool copies) {
    const auto first = gradients(graph(leaves, copies), leaves);
    const auto second = gradients(sum(first[0] * first[1]), leaves);
    Floats result;
    for (const auto& each : {first[0], first[1], second[0], second[1]})
      for (auto value : each.to_vector<float>()) result.push_back(value);
    return result;
  };
  CHECK(close(all(true), all(false)));
  const auto checked = check_gradients([&](const auto& in) { return graph(in, true); }, leaves);
  INFO(checked.worst);
  CHECK(checked.passed);
  const Tensor x = copy_to(Tensor::from({1.0F}), two.second);
  x.eval();
  CHECK(gradients(sum(copy_to(x, two.first) * 3.0), {x})[0].device() == two.second);
}

TEST_CASE("a network over two devices trains as on one") {
  const TwoDevices two;
  const auto as_on_one = [&](const auto& make_optimizer) {
    const auto one = trained(two.first, two.first, make_optimizer), both = trained(two.first, two.second, make_optimizer);
    CHECK(close(both.first, one.first));
    CHECK(close(both.second, one.second));
  };
  as_on_one([](auto& net) { return optim::SGD{net, 0.1, {.momentum = 0.9}}; });
  as_on_one([](auto& net) { return optim::Adam{net, {.learning_rate = 1e-2}}; });
  as_on_one([](auto& net) {
    optim::AdamW adam{net, {.learning_rate = 1e-2}};
    adam.set_loss_scale({.initial = 8});
    return adam;
  });
}

TEST_CASE("a network over two devices trains whatever of it is on a device before, and whatever its loss depends on") {
  const TwoDevices two;
  struct Ways {
    bool front_moved, back_moved, swapped, constant;
  };
  for (const auto& [front_moved, back_moved, swapped, constant] :
       {Ways{true, true, false, true}, Ways{true, true, true, true}, Ways{false, true, false, false},
        Ways{false, true, false, true}, Ways{false, false, false, false}, Ways{false, false, false, true}}) {
    const auto &one = swapped ? two.second : two.first, &other = swapped ? two.first : two.second;
    for (const bool scaled : {false, true})
      for (const bool clipped : {false, true}) {
        INFO(front_moved << back_moved << swapped << constant << scaled << clipped);
        const auto losses = [&](bool copies) {
          manual_seed(8);
          nn::Linear front(4, 5), back(5, 3);
          if (copies && front_moved) front.to(one);
          if (copies && back_moved) back.to(other);
          optim::SGD sgd{nn::Sequential{front, back}, 0.1, {.momentum = 0.9}};
          if (scaled) sgd.set_loss_scale({.initial = 8});
          if (clipped) sgd.set_clipping({.norm = 0.01});
          Floats result;
          for (int step = 0; step < 3; ++step) {
            const Tensor middle = tanh(front(Tensor::from(counted(8), {2, 4})));
            const Tensor y = back(copies ? copy_to(middle, other) : middle);
            result.push_back(sgd.step(constant ? mean(y) : cross_entropy(y, Tensor::from({0, step % 3}))).item<float>());
          }
          return result;
        };
        CHECK(close(losses(true), losses(false)));
      }
  }
}

TEST_CASE("gradients are made where their inputs turn out to be") {
  const TwoDevices two;
  const auto on = [&](const Floats& values, const Device& device) {
    const Tensor x = copy_to(Tensor::from(values), device);
    x.eval();
    return x;
  };
  // The weight is on no device when the gradient is asked for, and comes to the second with what it is multiplied by.
  const nn::Parameter weight(Tensor::from({1.0F, 2.0F}));
  const Tensor x = on({3.0F, 4.0F}, two.second), y = weight.value() * x;
  const Tensor loss = sum(copy_to(y, two.first) * copy_to(weight.value(), two.first));
  CHECK(gradients(loss, {weight.value()})[0].to_vector<float>() == Floats{6, 16});

  const auto f = compile([&](const Tensor& a, const Tensor& b) { return gradients(sum(copy_to(a * b, two.first)), {b})[0]; });
  CHECK(f(on({1, 2}, two.second), on({3, 4}, two.second)).to_vector<float>() == Floats{1, 2});
  CHECK(f(on({5, 6}, two.first), on({3, 4}, two.first)).to_vector<float>() == Floats{5, 6});
  CHECK(f(on({5, 6}, two.second), on({3, 4}, two.second)).device() == two.second);
}

TEST_CASE("what somebody holds of a copy is not computed again") {
  const TwoDevices two;
  const Tensor x = copy_to(Tensor::from(counted(64), {8, 8}), two.first), copied = copy_to(tanh(matmul(x, x)), two.second);
  const Tensor u = copied + 1.0, v = copied * 2.0;
  u.eval();
  const auto before = exec::statistics().operations;
  v.eval();
  CHECK(exec::statistics().operations == before + 1);
}

TEST_CASE("values on two devices are evaluated on both") {
  const TwoDevices two;
  const Tensor a = copy_to(ones({3}), two.first), b = copy_to(ones({3}), two.second);
  eval({a, b});
  const Tensor x = a + 1.0, y = b * 3.0;
  const auto before = exec::statistics().evaluations;
  eval({x, y});
  CHECK(exec::statistics().evaluations == before + 2);
  CHECK(x.device() == two.first);
  CHECK(y.device() == two.second);
  CHECK(x.to_vector<float>() == Floats(3, 2));
  CHECK(y.to_vector<float>() == Floats(3, 3));
  CHECK(exec::statistics().evaluations == before + 2);
  CHECK_THROWS_WITH((a + b).eval(), Catch::Contains("copy_to() copies values"));
  const std::vector<Tensor> there{b + 5.0};
  CHECK_THROWS_AS(eval(there, two.first), DeviceError);
  CHECK_NOTHROW(eval(there, two.second));
  // What no value decides about comes to the device that is given, and what is copied to where it is copied to.
  const std::vector<Tensor> given{ones({3}) * 4.0, copy_to(copy_to(ones({3}) * 2.0, two.first) + 1.0, two.second)};
  eval(given, two.second);
  CHECK(given[0].device() == two.second);
  CHECK(given[1].to_vector<float>() == Floats(3, 3));
}

TEST_CASE("a value that a graph reads before and after a copy is computed once") {
  const TwoDevices two;
  const Tensor x = copy_to(Tensor::from(counted(8), {8}), two.first);
  const Tensor shared = exp(x), there = copy_to(shared, two.second) + 1.0, y = shared + copy_to(there, two.first);
  const auto before = exec::statistics().operations;
  const auto values = y.to_vector<float>();
  CHECK(exec::statistics().operations == before + 3);
  const auto given = counted(8);
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(2 * std::exp(given[i]) + 1));
}

TEST_CASE("compile: a function over two devices is planned once") {
  const TwoDevices two;
  manual_seed(3);
  Halves net(two.first, two.second);
  net.inference();
  const auto f = compile([&](const Tensor& x) { return copy_to(net(x) * 2.0, two.first); });
  for (int step = 0; step < 3; ++step)
    CHECK(close(f(images(step)).to_vector<float>(), (net(images(step)) * 2.0).to_vector<float>()));
  CHECK(f.graphs() == 1);
  const auto before = exec::statistics().plans_made;
  CHECK(f(images(4)).device() == two.first);
  CHECK(exec::statistics().plans_made == before);
  const auto g = compile([&](const Tensor& a, const Tensor& b) { return copy_to(a, two.second) + b; });
  const Tensor a = copy_to(ones({2}), two.first), b = copy_to(ones({2}), two.second);
  eval({a, b});
  CHECK(g(a, b).to_vector<float>() == Floats(2, 2));
  CHECK(g(b, b).to_vector<float>() == Floats(2, 2));
  CHECK(g(a, b).device() == two.second);
  CHECK(g.graphs() == 1);
}

TEST_CASE("compile: gradients and running statistics of a network over two devices") {
  const TwoDevices two;
  const auto numbers = [&](bool compiled) {
    manual_seed(4);
    Halves net(two.first, two.second);
    const auto f = [&](const Tensor& x, const Tensor& labels) {
      std::vector<Tensor> weights;
      for (const auto& [name, parameter] : net.parameters()) weights.push_back(parameter.value());
      std::vector<Tensor> results{cross_entropy(net(x), labels)};
      for (auto& gradient : gradients(results[0], weights)) results.push_back(std::move(gradient));
      return results;
    };
    const auto quick = compile(f);
    Floats result;
    const auto add = [&](const Tensor& tensor) {
      for (auto value : tensor.to_vector<float>()) result.push_back(value);
    };
    for (int i = 0; i < 3; ++i)
      for (const auto& each : compiled ? quick(images(i), classes(i)) : f(images(i), classes(i))) add(each);
    for (const auto& [name, tensor] : net.state_dict()) add(tensor);
    return result;
  };
  CHECK(close(numbers(true), numbers(false)));
  nn::Linear layer(2, 2);
  optim::SGD sgd{layer, 0.1};
  const auto loss = [&](const Tensor& x) { return sum(copy_to(layer(copy_to(x, two.first)), two.second)); };
  const auto step = compile([&](const Tensor& x) { return sgd.step(loss(x)); });
  CHECK_THROWS_WITH(step(ones({1, 2})), Catch::Contains("the function sets a parameter"));
  const auto evaluates = compile([&](const Tensor& x) {
    const Tensor y = loss(x);
    y.eval();
    return y;
  });
  CHECK_THROWS_WITH(evaluates(ones({1, 2})), Catch::Contains("it may only build graph"));
}

TEST_CASE("two devices: anomalies are found, checkpoints computed again, memory told for each") {
  const TwoDevices two;
  const Tensor x = copy_to(Tensor::from({1.0F, -1.0F}), two.first);
  {
    const DetectAnomaly detect;
    CHECK_THROWS_WITH(log(copy_to(x * 2.0, two.second)).eval(), Catch::Contains("log made the first nan"));
    CHECK_NOTHROW(exp(copy_to(x * 2.0, two.second)).eval());
    const std::vector<Tensor> there{copy_to(x * 2.0, two.second) + 1.0};
    CHECK_NOTHROW(eval(there, two.second));
    // Scalars of the host are computed where they are read.
    const Tensor factor = Tensor::scalar(2.0F) * Tensor::scalar(3.0F), y = copy_to(x, two.second).detach();
    CHECK((y * (factor + 1.0)).to_vector<float>() == Floats{7, -7});
  }
  const Tensor w = Tensor::from({0.5F, 0.25F});
  const auto f = [&] { return tanh(copy_to(tanh(w * 2.0), two.second)); };
  const auto plain = gradients(sum(f()), {w})[0].to_vector<float>();
  CHECK(gradients(sum(checkpoint(f)), {w})[0].to_vector<float>() == plain);

  const auto report = memory_report({copy_to(exp(x), two.second) * 2.0});
  const auto first = report.find("leaves");
  REQUIRE(first != std::string::npos);
  CHECK(report.find("leaves", first + 1) != std::string::npos);
  CHECK(report.find(two.first.info().name) != std::string::npos);
}

TEST_CASE("two devices: without memory on one, nothing has changed on the other") {
  TwoDevices two;
  manual_seed(6);
  Halves net(two.first, two.second);
  optim::SGD sgd{net, 0.1, {.momentum = 0.9}};
  const auto state = [&] {
    std::vector<Floats> values;
    for (const auto& [name, tensor] : net.state_dict()) values.push_back(tensor.to_vector<float>());
    for (const auto& [name, tensor] : sgd.state_dict()) values.push_back(tensor.to_vector<float>());
    return values;
  };
  (void)sgd.step(cross_entropy(net(images(0)), classes(0))).item<float>();
  for (auto* device : {&two.first, &two.second}) {
    const auto before = state();
    device->finish();
    device->trim();
    device->set_memory_limit(device->memory().in_use + 64);
    const auto step = [&] { (void)sgd.step(cross_entropy(net(images(1)), classes(1))).item<float>(); };
    CHECK_THROWS_WITH(step(), Catch::Contains("out of memory"));
    device->set_memory_limit(0);
    CHECK(state() == before);
    CHECK_NOTHROW(step());
    CHECK(state() != before);
  }
}

TEST_CASE("two devices: several threads use both") {
  const TwoDevices two;
  if (!two.first.info().thread_safe || !two.second.info().thread_safe) return;
  const auto work = [&](int number) {
    Tensor x = copy_to(Tensor::from(counted(64), {64}), number % 2 == 0 ? two.first : two.second);
    for (int i = 0; i < 20; ++i) x = copy_to(x * 0.5 + 1.0, (number + i) % 2 == 0 ? two.second : two.first);
    return x.to_vector<float>();
  };
  const auto expected = work(0);
  std::vector<std::future<Floats>> running;
  for (int i = 0; i < 4; ++i) running.push_back(std::async(std::launch::async, work, i));
  for (auto& each : running) CHECK(each.get() == expected);
}

TEST_CASE("a failed evaluation moves nothing to a device") {
  TwoDevices two;
  const Tensor a = copy_to(ones({64}), two.first).detach();
  const Tensor x = Tensor::from(counted(64));
  nn::Parameter p(Tensor::from(counted(64)));
  const auto fail = [&](const auto& attempt) {
    two.second.finish();
    two.second.trim();
    two.second.set_memory_limit(two.second.memory().in_use + 4096);
    CHECK_THROWS_WITH(attempt(), Catch::Contains("out of memory"));
    two.second.set_memory_limit(0);
  };
  const auto is_nowhere = [&](const Tensor& tensor) {
    const DeviceScope scope(two.second);
    const bool is_on_second = tensor.device() == two.second;
    const DeviceScope back(two.first);
    return is_on_second && tensor.device() == two.first;
  };
  SECTION("leaves and parameters") {
    const auto large = [&] { return cumsum(x * p.value() + zeros({16384, 64}), 0); };
    fail([&] {
      const DeviceScope scope(two.second);
      large().eval();
    });
    CHECK(is_nowhere(x));
    CHECK(is_nowhere(p.value()));
    CHECK_NOTHROW((x * p.value() + a).eval());
    CHECK(x.device() == two.first);
  }
  SECTION("also those of another device") {
    const Tensor y = x * 2.0;
    fail([&] {
      const Tensor there = copy_to(y, two.second);
      eval({y, cumsum(there + zeros({16384, 64}), 0)});
    });
    CHECK(is_nowhere(x));
    CHECK(is_nowhere(y));
  }
  SECTION("a compiled function") {
    const auto f = compile([](const Tensor& in) { return cumsum(in + zeros({16384, 64}), 0); });
    fail([&] {
      const DeviceScope scope(two.second);
      (void)f(x);
    });
    CHECK(is_nowhere(x));
  }
  SECTION("a loss scale") {
    nn::Parameter w(Tensor::from(counted(64)));
    optim::SGD sgd(optim::Parameters(nn::NamedParameters{{"w", w}}), {.learning_rate = 0.1});
    sgd.set_loss_scale({.initial = 8});
    const auto step = [&] { (void)sgd.step(sum(square(cumsum(w.value() + zeros({16384, 64}), 0)))).item<float>(); };
    fail([&] {
      const DeviceScope scope(two.second);
      step();
    });
    CHECK_NOTHROW(step());
    CHECK(sgd.loss_scale().device() == two.first);
    CHECK(w.value().device() == two.first);
  }
}

TEST_CASE("what depends on no device is computed on the current one, whatever else is evaluated") {
  const TwoDevices two;
  const Tensor a = copy_to(ones({4}), two.first).detach();
  a.eval();
  const Tensor t = randn({4}) * 3.0;
  SECTION("an evaluation") {
    const DeviceScope scope(two.second);
    CHECK(t.device() == two.second);
    eval({a * 2.0, t});
    CHECK(t.device() == two.second);
  }
  SECTION("an evaluation on a device") {
    eval(std::vector{t}, two.second);
    CHECK(t.device() == two.second);
  }
  SECTION("a compiled function") {
    const auto f = compile([](const Tensor& x, const Tensor& y) { return std::vector{x * 2.0, ones({4}) * 3.0 + y}; });
    const Tensor none = Tensor::from({0.0F, 0.0F, 0.0F, 0.0F});
    CHECK(f(a, none)[1].device() == two.first);
    const Tensor other = Tensor::from({0.0F, 0.0F, 0.0F, 0.0F});
    const DeviceScope scope(two.second);
    CHECK(f(a, other)[1].device() == two.second);
  }
}

TEST_CASE("a value on another device than asked for is an error, evaluated or not") {
  const TwoDevices two;
  const Tensor x = copy_to(ones({4}), two.first).detach();
  x.eval();
  const Tensor y = x * 2.0, other = randn({4}) * 3.0;
  CHECK_THROWS_WITH(eval(std::vector{y}, two.second), Catch::Contains("copy_to() copies values"));
  y.eval();
  CHECK_NOTHROW(eval(std::vector{y}, two.first));
  CHECK_THROWS_WITH(eval(std::vector{y}, two.second), Catch::Contains("copy_to() copies values"));
  CHECK_THROWS_WITH(eval(std::vector{y, other}, two.second), Catch::Contains("copy_to() copies values"));
  CHECK(other.device() == two.first);
}
