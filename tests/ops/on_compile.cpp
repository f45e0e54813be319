// on_compile(): who is told what compiles, and what an evaluation leaves behind that was cancelled.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clnet/clnet.h"

using namespace clnet;

namespace {

/// A kernel that nobody compiled before, which doubles.
Kernel fresh_kernel() {
  static int count = 0;
  const auto name =
      "twice" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) + "_" + std::to_string(++count);
  return {name, "kernel void " + name + "(IN(x), OUT(y)) { const size_t i = get_global_id(0); STORE(y, i, 2 * LOAD(x, i)); }"};
}

/// Told by on_compile() while it lives.
struct CompileTold {
  std::vector<std::pair<std::size_t, std::size_t>> calls;
  std::vector<std::thread::id> threads;
  bool goes_on = true;

  CompileTold() {
    on_compile([this](std::size_t done, std::size_t total) {
      calls.emplace_back(done, total);
      threads.push_back(std::this_thread::get_id());
      return goes_on;
    });
  }
  ~CompileTold() { on_compile({}); }
  CompileTold(const CompileTold&) = delete;
  CompileTold& operator=(const CompileTold&) = delete;
};

}  // namespace

TEST_CASE("on_compile tells of new kernels, on the thread that evaluates, and of none that is there") {
  const auto x = Tensor::from<float>({1, 2, 3});
  const auto twice = fresh_kernel();
  const auto compute = [&] { return twice.range({3}, {1})(x).to_vector<float>(); };
  CompileTold told;
  CHECK(compute() == std::vector<float>{2, 4, 6});
  REQUIRE(told.calls.size() >= 2);
  CHECK(told.calls.front() == std::pair<std::size_t, std::size_t>(0, 1));
  CHECK(told.calls.back() == std::pair<std::size_t, std::size_t>(1, 1));
  for (const auto& thread : told.threads) CHECK(thread == std::this_thread::get_id());
  told.calls.clear();
  CHECK(compute() == std::vector<float>{2, 4, 6});
  CHECK(told.calls.empty());
}

TEST_CASE("an evaluation whose compiling is cancelled changes nothing, and may be made again") {
  manual_seed(3);
  nn::Sequential model{nn::Linear{3, 4}, nn::BatchNorm1d{4}, nn::Linear{4, 1}};
  optim::Adam adam{model};
  const auto state = [&] {
    std::vector<std::vector<float>> values;
    for (const auto& [name, tensor] : model.state_dict()) values.push_back(cast(tensor, Dtype::f32).to_vector<float>());
    return values;
  };
  const auto x = Tensor::from<float>({1, 2, 3, 4, 5, 7}, {2, 3});
  const auto twice = fresh_kernel();
  const auto step = [&] { return adam.step(mean(square(model(reshape(twice.range({6}, {1})(x), {2, 3}))))).item<float>(); };
  const auto before = state();
  CompileTold told;
  told.goes_on = false;
  CHECK_THROWS_WITH(step(), Catch::Matchers::StartsWith("compiling was cancelled after 0 of "));
  CHECK(told.calls.size() == 1);
  CHECK(state() == before);
  told.goes_on = true;
  CHECK(step() > 0);
  CHECK(state() != before);
}

TEST_CASE("what a function given to on_compile throws leaves the evaluation") {
  const auto x = Tensor::from<float>({1});
  const auto twice = fresh_kernel();
  on_compile([](std::size_t, std::size_t) -> bool { throw Error("not today"); });
  CHECK_THROWS_WITH(twice.range({1}, {1})(x).eval(), Catch::Matchers::Contains("not today"));
  on_compile({});
  CHECK(twice.range({1}, {1})(x).item<float>() == 2);
}

TEST_CASE("a function given to on_compile that evaluates gets an error, and does not wait for itself") {
  const auto x = Tensor::from<float>({1});
  const auto twice = fresh_kernel();
  const auto known = x + 1;
  CHECK(known.item<float>() == 2);
  float seen = 0;
  on_compile([&](std::size_t, std::size_t) {
    seen = known.item<float>();
    return (x * 3).item<float>() > 0;
  });
  CHECK_THROWS_WITH(twice.range({1}, {1})(x).eval(), Catch::Matchers::Contains("what on_compile() calls must not evaluate"));
  on_compile({});
  CHECK(seen == 2);
  CHECK((twice.range({1}, {1})(x) + x * 3).item<float>() == 5);
}

TEST_CASE("nor may a function given to on_compile call a compiled function, be it the one that compiles") {
  const auto x = Tensor::from<float>({1});
  const auto twice = fresh_kernel(), other = fresh_kernel();
  const auto compiled = compile([&](const Tensor& v) { return twice.range({1}, {1})(v); });
  const auto second = compile([&](const Tensor& v) { return other.range({1}, {1})(v); });
  for (const auto* called : {&compiled, static_cast<decltype(&compiled)>(nullptr)}) {
    on_compile([&](std::size_t, std::size_t) {
      if (called)
        (void)(*called)(x);
      else
        (void)second(x);
      return true;
    });
    CHECK_THROWS_WITH(compiled(x), Catch::Matchers::Contains("what on_compile() calls must not evaluate"));
    on_compile({});
  }
  CHECK(compiled(x).item<float>() == 2);
  CHECK(second(x).item<float>() == 2);
}

TEST_CASE("handles that a function given to on_compile makes keep their values") {
  manual_seed(3);
  nn::Linear model{3, 4};
  optim::Adam adam(model, {.learning_rate = 0.01});
  const auto twice = fresh_kernel();
  const auto x = ones({2, 3});
  adam.step(mean(square(model(x)))).eval();
  const auto values_of = [](const io::StateDict& state) {
    std::vector<std::vector<float>> values;
    for (const auto& [name, tensor] : state)
      if (tensor.dtype() == Dtype::f32) values.push_back(tensor.to_vector<float>());
    return values;
  };
  const auto before = values_of(adam.state_dict());
  io::StateDict held;
  on_compile([&](std::size_t, std::size_t) {
    if (held.empty()) held = adam.state_dict();
    return true;
  });
  adam.step(mean(twice.range({8}, {1})(reshape(square(model(x)), {8})).detach() + mean(square(model(x))))).eval();
  on_compile({});
  REQUIRE_FALSE(held.empty());
  CHECK(values_of(held) == before);
  CHECK(values_of(adam.state_dict()) != before);
}
