// compile(): the same results as the function's own, without building its graph again.
#include "clnet/compile.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "tests/ops/check.h"
#include "tests/support/memory_limit.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

Tensor input(const Shape& shape, std::uint64_t seed) { return make_tensor(shape, seed).detach(); }

}  // namespace

TEST_CASE("a compiled function computes what the function does, and runs it once per shape and dtype") {
  int calls = 0;
  const auto f = [&](const Tensor& x, const Tensor& y) {
    ++calls;
    return matmul(x, y) + sum(x, {1}, true) * 2.0;
  };
  const auto g = compile(f);
  for (std::uint64_t seed : {1U, 2U, 3U}) {
    const Tensor x = input({4, 5}, seed), y = input({5, 6}, seed + 10);
    compare("result", to_array(g(x, y)), to_array(f(x, y)), 1e-6);
  }
  CHECK(calls == 4);  // one of the compiled function's
  const Tensor x = input({2, 5}, 4), y = input({5, 6}, 5);
  compare("other shape", to_array(g(x, y)), to_array(f(x, y)), 1e-6);
  compare("lazy inputs", to_array(g(relu(x), y * 2.0)), to_array(f(relu(x), y * 2.0)), 1e-6);
  CHECK(g.graphs() == 2);
}

TEST_CASE("a compiled function takes scalars of the host, views and the same tensor twice") {
  const auto f = [](const Tensor& x, const Tensor& scale) { return x * scale + 1.0; };
  const auto g = compile(f);
  const Tensor x = input({6, 4}, 1);
  for (double scale : {2.0, -3.0}) {
    const Tensor number = Tensor::scalar(scale);
    compare("number", to_array(g(x, number)), to_array(f(x, number)), 1e-6);
    const Tensor computed = (Tensor::scalar(scale) + 0.0).detach();
    compare("computed", to_array(g(x, computed)), to_array(f(x, computed)), 1e-6);
  }
  const Tensor part = slice(x, 0, 2, 3);
  compare("view", to_array(g(part, Tensor::scalar(2.0))), to_array(f(part, Tensor::scalar(2.0))), 1e-6);
  const auto product = compile([](const Tensor& a, const Tensor& b) { return a * b; });
  compare("twice", to_array(product(x, x)), to_array(x * x), 1e-6);
}

TEST_CASE("results may be inputs, constants and several tensors, as vector, pair or tuple") {
  const Tensor constant = input({3}, 7);
  const auto pair = compile([&](const Tensor& x) { return std::pair(x, constant); });
  const auto vector = compile([&](const Tensor& x) { return std::vector<Tensor>{x + 1.0, x + 1.0, constant * 2.0}; });
  const auto tuple = compile([](const Tensor& x) { return std::tuple(exp(x), x, reshape(x, {3, 1})); });
  const Tensor x = input({3}, 1), y = input({3}, 2);
  for (const Tensor& given : {x, y}) {
    const auto [same, other] = pair(given);
    compare("input", to_array(same), to_array(given), 0);
    compare("constant", to_array(other), to_array(constant), 0);
    const auto all = vector(given);
    REQUIRE(all.size() == 3);
    compare("first", to_array(all[0]), to_array(given + 1.0), 1e-6);
    compare("second", to_array(all[1]), to_array(given + 1.0), 1e-6);
    compare("third", to_array(all[2]), to_array(constant * 2.0), 1e-6);
    const auto [power, itself, column] = tuple(given);
    compare("power", to_array(power), to_array(exp(given)), 1e-6);
    compare("itself", to_array(itself), to_array(given), 0);
    CHECK(column.shape() == Shape{3, 1});
  }
}

TEST_CASE("what was written down outside of a compiled function is computed once") {
  const Tensor table = exp(input({64}, 3));
  const auto g = compile([&](const Tensor& x) { return x * table; });
  const Tensor x = input({64}, 1);
  (void)g(x);
  const auto before = exec::statistics();
  compare("product", to_array(g(x)), to_array(x * table), 1e-6);
  CHECK(exec::statistics().operations - before.operations == 2);  // one of each
}

TEST_CASE("what waits outside of a compiled function is computed as it would be without") {
  nn::Parameter count(zeros({4}).detach()), rate(full({4}, 0.5).detach());
  const Tensor waiting = relu(input({4}, 1));
  count.follow(waiting, [&](const Tensor& now, const Tensor& value) { return now + value * rate.value(); });
  const auto g = compile([&](const Tensor& x) { return x * waiting; });
  const Tensor x = input({4}, 2);
  compare("product", to_array(g(x)), to_array(x * relu(input({4}, 1))), 1e-6);
  compare("count", to_array(count.value()), to_array(relu(input({4}, 1)) * 0.5), 1e-6);
}

TEST_CASE("a compiled training step sees parameters as they are, and trains as the plain one") {
  const auto losses = [](bool compiles) {
    manual_seed(5);
    nn::Sequential model{nn::Linear{6, 8}, nn::BatchNorm1d{8}, tanh, nn::Dropout{0.3}, nn::Linear{8, 3}};
    optim::Adam optimizer{model, {.learning_rate = 0.05}};
    const auto f = [&](const Tensor& x, const Tensor& labels) {
      const Tensor loss = cross_entropy(model(x), labels);
      auto results = gradients(loss, model.parameters());
      results.push_back(loss);
      return results;
    };
    const auto step = compile(f);
    manual_seed(6);
    std::vector<double> found;
    for (std::uint64_t k = 0; k < 6; ++k) {
      const Tensor x = input({10, 6}, k);
      const Tensor labels = Tensor::from(std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2, 1}, Shape{10});
      auto results = compiles ? step(x, labels) : f(x, labels);
      if (!compiles) eval(results);
      found.push_back(results.back().item<double>());
      results.pop_back();
      optimizer.apply(results);
    }
    for (const auto& [name, buffer] : model.buffers()) {
      const auto values = buffer.value().to_vector<double>();
      found.insert(found.end(), values.begin(), values.end());
    }
    model.inference();
    const auto infer = compile([&](const Tensor& x) { return model(x); });
    const auto values = (compiles ? infer(input({10, 6}, 9)) : model(input({10, 6}, 9))).to_vector<double>();
    found.insert(found.end(), values.begin(), values.end());
    return found;
  };
  const auto plain = losses(false), compiled = losses(true);
  REQUIRE(plain.size() == compiled.size());
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(compiled[i] == Approx(plain[i]).epsilon(1e-5));
}

TEST_CASE("each call draws new random numbers, from the seed as it is") {
  const auto g = compile([](const Tensor& x) { return rand({8}) + x * 0.0; });
  const Tensor x = input({8}, 1);
  manual_seed(3);
  const auto first = g(x).to_vector<float>(), second = g(x).to_vector<float>();
  CHECK(first != second);
  manual_seed(3);
  CHECK(g(x).to_vector<float>() == first);
  CHECK(g.graphs() == 1);
}

TEST_CASE("modes, replaced layers and mixed precision build other graphs, and old ones are found again") {
  nn::Sequential model{nn::Linear{4, 4}, nn::Dropout{0.5}};
  const auto g = compile([&](const Tensor& x) { return model(x); });
  const Tensor x = input({3, 4}, 1);
  const auto plain = [&] {
    model.inference();
    return to_array(model(x));
  };
  model.inference();
  compare("inference", to_array(g(x)), plain(), 1e-6);
  model.train();
  (void)g(x);
  CHECK(g.graphs() == 2);
  model.inference();
  compare("inference again", to_array(g(x)), plain(), 1e-6);
  CHECK(g.graphs() == 2);
  model.replace("0", nn::Linear{4, 7});
  compare("replaced", to_array(g(x)), plain(), 1e-6);
  CHECK(g.graphs() == 3);
  {
    const Autocast half(Dtype::bf16);
    CHECK(g(x).dtype() == Dtype::bf16);
  }
  CHECK(g(x).dtype() == Dtype::f32);
  CHECK(g.graphs() == 4);
}

TEST_CASE("a value that a parameter waits for is computed before it is read") {
  const nn::Parameter average(input({4}, 1));
  const auto g = compile([&](const Tensor& x) { return x + average.value(); });
  const Tensor x = input({4}, 2);
  for (int k = 0; k < 3; ++k) {
    nn::Parameter(average).set(average.value() * 0.5 + x);
    compare("sum", to_array(g(x)), to_array(x + average.value()), 1e-6);
  }
}

TEST_CASE("parameters themselves and parts of them may be results") {
  nn::Parameter p(input({4}, 1));
  const auto g = compile([&] { return std::tuple(p.value(), slice(p.value(), 0, 1, 2), stop_gradient(p.value())); });
  for (std::uint64_t seed : {2U, 3U}) {
    const auto [all, part, same] = g();
    compare("all", to_array(all), to_array(p.value()), 0);
    compare("part", to_array(part), to_array(slice(p.value(), 0, 1, 2)), 0);
    compare("same", to_array(same), to_array(p.value()), 0);
    p.set(input({4}, seed));
  }
}

TEST_CASE("an input whose value goes while another one is computed is computed again") {
  auto device = Device::current();
  const auto g = compile([](const Tensor& a, const Tensor& b) { return sum(a, {1}) + sum(b, {1}); });
  const Tensor x = make_tensor({256, 256}, 1).detach(), w = make_tensor({256, 256}, 2).detach();
  const auto expected = to_array(sum(matmul(x, w), {1}) + sum(matmul(w, w), {1}));
  (void)g(x, w);
  const Tensor kept = matmul(x, w), result = matmul(kept, x), waiting = matmul(w, w);
  result.eval();
  device.finish();
  // Room for a tensor and a half.
  const test::MemoryLimit limit(device.memory().in_use + 256 * 256 * 6);
  compare("sum", to_array(g(kept, waiting)), expected, 1e-4);
}

TEST_CASE("compiled functions call each other, and hold no value of a call") {
  const auto inner = compile([](const Tensor& x) { return relu(x) * 2.0; });
  const auto outer = compile([&](const Tensor& x) { return inner(x) + 1.0; });
  auto device = Device::current();
  device.finish();
  const auto before = device.memory().in_use;
  for (std::uint64_t k = 0; k < 4; ++k) {
    const Tensor x = input({1000}, k);
    compare("nested", to_array(outer(x)), to_array(relu(x) * 2.0 + 1.0), 1e-6);
  }
  CHECK(inner.graphs() == 0);
  device.finish();
  device.trim();
  CHECK(device.memory().in_use <= before);
}

TEST_CASE("a compiled function may not read or set values, and errors leave it as it was") {
  nn::Linear layer{3, 3};
  optim::SGD optimizer{layer, {.learning_rate = 0.1}};
  const Tensor x = input({2, 3}, 1);
  const auto throws = [&](const auto& f) {
    CHECK_THROWS_WITH(compile(f)(x), Catch::StartsWith("compile: "));
    CHECK_THROWS_WITH(compile(f)(x), Catch::StartsWith("compile: "));
  };
  throws([](const Tensor& t) { return t * sum(t).item<double>(); });
  throws([](const Tensor& t) { return t * t.to_vector<double>().front(); });
  throws([](const Tensor& t) { return t * relu(t).detach(); });
  // They would be other ones in the next call.
  throws([&](const Tensor& t) { return t * layer.parameter("bias").value().to_vector<double>().front(); });
  throws([&](const Tensor& t) { return t + layer.parameter("bias").value().detach(); });
  throws([&](const Tensor& t) {
    const Tensor twice = layer.parameter("bias").value() * 2.0;
    twice.eval();
    return t + twice;
  });
  throws([&](const Tensor& t) { return optimizer.step(mean(layer(t))); });
  throws([&](const Tensor& t) {
    layer.parameter("bias").set(sum(t, {0}));
    return t;
  });
  throws([](const Tensor&) { return Tensor{}; });
  const auto g = compile([](const Tensor& t) { return matmul(t, t); });
  CHECK_THROWS_AS(g(x), ShapeError);
  CHECK(g.graphs() == 0);
  CHECK_THROWS_WITH(g(Tensor{}), Catch::Contains("input 0") && Catch::Contains("undefined"));
  compare("afterwards", to_array(layer(x)), to_array(layer(x)), 0);
}

TEST_CASE("gradients by a parameter's value from outside are refused, as they would be zero") {
  const nn::Parameter p(input({3}, 1)), waiting(ones({3}));
  const Tensor before = p.value(), waits = waiting.value();
  CHECK_THROWS_WITH(compile([&](const Tensor& x) { return gradients(sum(x * waiting.value()), {waits})[0]; })(input({3}, 2)),
                    Catch::StartsWith("compile: gradients by a parameter's value"));
  const auto f = [&](const Tensor& by) { return [&, by](const Tensor& x) { return gradients(sum(x * p.value()), {by})[0]; }; };
  CHECK_THROWS_WITH(compile(f(before))(input({3}, 2)), Catch::StartsWith("compile: gradients by a parameter's value"));
  const auto g = compile([&](const Tensor& x) { return gradients(sum(x * p.value()), {p.value()})[0]; });
  compare("gradient", to_array(g(input({3}, 2))), to_array(input({3}, 2)), 1e-6);
}

TEST_CASE("threads share a compiled function") {
  nn::Linear layer{8, 8};
  const auto g = compile([layer](const Tensor& x) mutable { return tanh(layer(x)); });
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t k = 0; k < 20; ++k) {
        const Tensor x = input({static_cast<std::int64_t>(1 + k % 3), 8}, 100 * t + k);
        const auto found = g(x).to_vector<float>(), expected = tanh(nn::Linear(layer)(x)).to_vector<float>();
        for (std::size_t i = 0; i < found.size(); ++i)
          if (std::abs(found[i] - expected[i]) > 1e-5F) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(g.graphs() == 3);
}

TEST_CASE("a compiled function draws the numbers that the plain one would, in every call") {
  const auto f = [](const Tensor& x) {
    const Tensor u = rand({4}), unread = rand({4}), v = rand({4});
    return v + 2.0 * u + x * 0.0;
  };
  const auto g = compile(f);
  const Tensor x = input({4}, 1);
  manual_seed(1);
  const std::vector<Array> expected{to_array(f(x)), to_array(f(x)), to_array(f(x))};
  manual_seed(1);
  for (const auto& values : expected) compare("drawn", to_array(g(x)), values, 0);
  CHECK(g.graphs() == 1);
}

TEST_CASE("a parameter follows inputs, parameters and values from outside in every call of a compiled function") {
  const auto blend = [](const Tensor& now, const Tensor& value) { return now * 0.5 + value; };
  const auto last = [](const Tensor&, const Tensor& value) { return value; };
  nn::Parameter mean_of_inputs(zeros({4})), newest(zeros({4})), count(zeros({4})), average(zeros({4})), sums(zeros({4}));
  nn::Parameter weight(input({4}, 1));
  const Tensor one = ones({4}).detach(), waiting = relu(input({4}, 2)) + 1.0;
  const auto g = compile([&](const Tensor& x) {
    mean_of_inputs.follow(x, blend);
    newest.follow(x, last);
    count.follow(one, [](const Tensor& now, const Tensor& value) { return now + value; });
    average.follow(weight.value(), blend);
    sums.follow(x * 2.0, blend);
    sums.follow(waiting, blend);
    return x * weight.value();
  });
  Tensor blended = zeros({4}), weights = blended, summed = blended;
  for (std::uint64_t k = 0; k < 3; ++k) {
    const Tensor x = input({4}, 10 + k);
    blended = (blended * 0.5 + x).detach();
    weights = (weights * 0.5 + weight.value()).detach();
    summed = (summed * 0.5 + waiting).detach();
    compare("result", to_array(g(x)), to_array(x * weight.value()), 1e-6);
    compare("mean of inputs", to_array(mean_of_inputs.value()), to_array(blended), 1e-6);
    compare("newest", to_array(newest.value()), to_array(x), 0);
    compare("count", to_array(count.value()), to_array(full({4}, static_cast<double>(k + 1))), 0);
    compare("average", to_array(average.value()), to_array(weights), 1e-6);
    compare("sums", to_array(sums.value()), to_array(summed), 1e-6);
    weight.set(input({4}, 20 + k));
  }
  CHECK(g.graphs() == 1);
}

TEST_CASE("a tensor from outside stays what it is, though a parameter that had its value follows") {
  const auto add = [](const Tensor& now, const Tensor& value) { return now + value; };
  nn::Parameter p(input({2}, 1));
  const Tensor start = p.value();
  const auto g = compile([&](const Tensor& x) {
    const Tensor y = x * 2.0;
    p.follow(y, add);
    return y + start;
  });
  const Tensor x = input({2}, 2);
  for (int k = 0; k < 3; ++k) compare("result", to_array(g(x)), to_array(x * 2.0 + start), 1e-6);
  compare("parameter", to_array(p.value()), to_array(start + x * 6.0), 1e-5);
}

TEST_CASE("a compiled function evaluates what was there before it, effects included, and nothing that it follows") {
  const auto add = [](const Tensor& now, const Tensor& value) { return now + value; };
  nn::Parameter rate(ones({1}) * 2.0), count(zeros({1})), other(zeros({1}));
  const Tensor waiting = relu(input({1}, 3)) + 1.0, before = waiting.detach();
  count.follow(waiting, [&](const Tensor& now, const Tensor& value) { return now + value * rate.value(); });
  const auto g = compile([&](const Tensor& x) { return x * waiting.item<float>(); });
  const Tensor x = input({2}, 4);
  compare("result", to_array(g(x)), to_array(x * before), 1e-6);
  const auto bad = compile([&](const Tensor& y) {
    const Tensor t = ones({1}) * 2.0;
    other.follow(t, add);
    (void)t.item<float>();
    return y * t;
  });
  CHECK_THROWS_WITH(bad(x), Catch::Contains("which a parameter follows; it may only build graph"));
  compare("other", to_array(other.value()), to_array(zeros({1})), 0);
}

TEST_CASE("while anomalies are looked for, compiled functions see parameters as in other calls") {
  nn::Parameter n(zeros({2}).detach());
  const auto g = compile([&](const Tensor& x) {
    n.follow(x, [](const Tensor& now, const Tensor&) { return now + 1.0; });
    return x + n.value();
  });
  const Tensor x = input({2}, 5);
  x.eval();
  compare("call", to_array(g(x)), to_array(x), 1e-6);
  const DetectAnomaly looking;
  compare("looking", to_array(g(x)), to_array(x + 1.0), 1e-6);
  compare("followed", to_array(n.value()), to_array(ones({2}) * 2.0), 0);
}

TEST_CASE("a compiled function may ask how many graphs it has") {
  CompiledCalls* calls = nullptr;
  std::size_t graphs = 7;
  auto g = compile([&](const Tensor& x) {
    graphs = calls ? calls->graphs() : 9;
    return x * 2.0;
  });
  (void)g(input({2}, 1));
  CHECK(graphs == 9);
  const auto again = compile([&](const Tensor& x) {
    const Tensor y = g(x);
    graphs = g.graphs();
    return y;
  });
  (void)again(input({3}, 1));
  CHECK(graphs == 1);
}

TEST_CASE("a compiled function may do nothing but let a parameter follow") {
  nn::Parameter newest(zeros({2}));
  const auto g = compile([&](const Tensor& x) {
    newest.follow(x, [](const Tensor&, const Tensor& value) { return value; });
    return std::vector<Tensor>{};
  });
  for (std::uint64_t k = 0; k < 2; ++k) {
    const Tensor x = input({2}, k);
    CHECK(g(x).empty());
    compare("newest", to_array(newest.value()), to_array(x), 0);
  }
}

TEST_CASE("a compiled function that switches modes is built once, and leaves them as it would") {
  nn::Sequential model{nn::Linear{4, 4}, nn::Dropout{0.5}};
  nn::Dropout other{0.5};
  int calls = 0;
  const Tensor x = input({3, 4}, 1);
  const auto infer = compile([&](const Tensor& t) {
    ++calls;
    model.inference();
    const Tensor y = model(t);
    model.train();
    model.child("1").train(false);
    return other(y);
  });
  other.inference();
  for (int k = 0; k < 3; ++k) {
    model.train(k != 1);
    model.child("0").train(k == 1);
    const Tensor found = infer(x);
    CHECK(model.training());
    CHECK(model.child("0").training());
    CHECK(!model.child("1").training());
    model.inference();
    compare("result", to_array(found), to_array(model(x)), 1e-6);
  }
  CHECK(calls == 1);
  // A mode that is read before it is set counts, and each graph leaves its own.
  const auto turn = compile([&](const Tensor& t) {
    const Tensor y = other(t);
    other.train(!other.training());
    return y;
  });
  other.inference();
  for (int k = 0; k < 4; ++k) {
    const Tensor found = turn(x);
    CHECK(other.training() == (k % 2 == 0));
    if (k % 2 == 0) compare("inference", to_array(found), to_array(x), 0);
  }
  CHECK(turn.graphs() == 2);
  // So do modes that are kept; whoever replaces a layer gets another graph, which sets that one's.
  const auto kept = compile([&](const Tensor& t) {
    const nn::KeptModes modes(model);
    model.inference();
    return model(t);
  });
  model.train();
  for (int k = 0; k < 2; ++k) {
    (void)kept(x);
    CHECK(model.training());
    CHECK(model.child("1").training());
  }
  CHECK(kept.graphs() == 1);
  model.replace("1", nn::Dropout{0.25});
  const Tensor replaced = kept(x);
  CHECK(model.child("1").training());
  model.inference();
  compare("replaced", to_array(replaced), to_array(model(x)), 1e-6);
  CHECK(kept.graphs() == 2);
}
