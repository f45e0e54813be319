// Fused kernels give what single operations give, on random graphs.
#include "lib/exec/fuse/fusion.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <memory>
#include <random>

#include "clnet/clnet.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/statistics.h"
#include "tests/ops/check.h"
#include "tests/ops/each_solver.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// A graph of `count` operations over tensors of shapes that broadcast to one another, all elementwise if asked for; the same for
/// the same seed.
std::vector<Tensor> random_graph(unsigned seed, int count, Dtype dtype, bool elementwise = false) {
  std::mt19937 random(seed);
  const auto draw = [&](std::size_t below) { return random() % below; };
  const std::vector<Shape> shapes{{3, 5, 17}, {5, 1}, {17}, {1}, {}, {3, 1, 1}, {1, 5, 17}, {3, 5, 1}};
  std::vector<Tensor> values;
  for (int k = 0; k < 6; ++k) {
    const auto& shape = shapes[draw(shapes.size())];
    std::vector<float> content(static_cast<std::size_t>(shape.numel()));
    for (auto& value : content) value = static_cast<float>(draw(2000)) / 500.0F - 2.0F;
    values.push_back(cast(Tensor::from(content, shape), dtype).detach());
  }
  std::vector<Tensor> wanted;
  for (int k = 0; k < count; ++k) {
    const Tensor a = values[draw(values.size())], b = values[draw(values.size())], c = values[draw(values.size())];
    Tensor y;
    try {
      switch (draw(17)) {
        case 0: y = a + b; break;
        case 1: y = a - b; break;
        case 2: y = a * b; break;
        case 3: y = relu(a); break;
        case 4: y = where(greater(a, b), b, c); break;
        case 5: y = tanh(a); break;
        case 6: y = a * 0.5 + 1.0; break;
        case 7: y = reshape(a, {a.numel()}); break;
        case 8: y = elementwise ? a * b + c : sum(a, {0}, true); break;
        case 9: y = cast(cast(a * 10.0, Dtype::i32), dtype); break;
        case 10: y = cast(cast(a, Dtype::f16), dtype); break;
        case 11: y = a.rank() == 1 && a.numel() == 255 ? reshape(a, {3, 5, 17}) : expand(a, {3, 5, 17}); break;
        case 12: y = cast(logical_not(less(a, b)), dtype) * c; break;
        case 13: y = elementwise ? exp(a) / (b + 3.0) : softmax(tanh(a), -1); break;
        case 14: y = cast(arange(17, -1, 0.125, Dtype::f32), dtype) + a; break;
        case 15: y = cast(cast(abs(a) * 60.0, Dtype::u8) * cast(abs(b) * 60.0, Dtype::u8), dtype) * 0.01; break;
        default: y = maximum(a, b) - minimum(b, c); break;
      }
    } catch (const ShapeError&) {
      continue;  // shapes that do not broadcast, or no dimension to reduce
    }
    values.push_back(tanh(y));
    if (draw(5) == 0) wanted.push_back(draw(3) ? y : values.back());
  }
  wanted.push_back(values.back());
  return wanted;
}

/// Most of the time goes into builds; tests/fuzz makes graphs of all operations.
unsigned graphs(Dtype dtype) { return (dtype == Dtype::f32 ? 3U : 1U) * (all_wanted() ? 4U : 1U); }

}  // namespace

TEST_CASE("fused operations give what single ones give, on random graphs") {
  for (auto dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
    for (unsigned seed = 0; seed < graphs(dtype); ++seed) {
      INFO("seed " << seed << " in " << to_string(dtype));
      auto fused = random_graph(seed, 25, dtype), single = random_graph(seed, 25, dtype);
      REQUIRE(fused.size() == single.size());
      const auto start = exec::statistics().kernels;
      eval(fused);
      const auto between = exec::statistics().kernels;
      {
        const exec::NoFusion none;
        eval(single);
      }
      const auto end = exec::statistics().kernels;
      CHECK(between - start <= end - between);
      for (std::size_t k = 0; k < fused.size(); ++k) {
        const auto a = fused[k].to_vector<float>(), b = single[k].to_vector<float>();
        REQUIRE(a.size() == b.size());
        // Compilers may contract a product and a sum in one kernel. Where that tips a rounding to f16, bf16 or i32, values that
        // are up to one step apart meet in later operations.
        const double tolerance = dtype == Dtype::f32 ? 2e-2 : 5e-2;
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
          wrong += !(std::abs(a[i] - b[i]) <= tolerance * std::max(1.0F, std::abs(b[i])));
        INFO("result " << k << " of shape " << to_string(fused[k].shape()) << ": " << wrong << " elements differ");
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE("fused elementwise operations give the bits that single ones give, on random graphs") {
  for (auto dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
    for (unsigned seed = 100; seed < 100 + graphs(dtype); ++seed) {
      INFO("seed " << seed << " in " << to_string(dtype));
      const auto fused = random_graph(seed, 20, dtype, true), single = random_graph(seed, 20, dtype, true);
      eval(fused);
      const exec::NoFusion none;
      eval(single);
      for (std::size_t k = 0; k < fused.size(); ++k) {
        std::vector<std::byte> a(static_cast<std::size_t>(fused[k].spec().bytes())), b(a.size());
        fused[k].to_bytes(a.data(), a.size());
        single[k].to_bytes(b.data(), b.size());
        INFO("result " << k << " of shape " << to_string(fused[k].shape()));
        CHECK(a == b);
      }
    }
}

namespace {

Tensor filled(const Shape& shape, unsigned seed, Dtype dtype) {
  std::mt19937 random(seed);
  std::vector<float> content(static_cast<std::size_t>(shape.numel()));
  for (auto& value : content) value = static_cast<float>(random() % 2000) / 1000.0F - 1.0F;
  return cast(Tensor::from(content, shape), dtype).detach();
}

/// Runs the graph fused and not, and compares; gives the number of kernels of both.
template <class Graph>
std::pair<std::uint64_t, std::uint64_t> compare_with_single(const Graph& graph) {
  const auto start = exec::statistics().kernels;
  const Tensor fused = graph();
  fused.eval();
  const auto between = exec::statistics().kernels;
  const exec::NoFusion none;
  const auto want = graph().template to_vector<float>();
  const auto end = exec::statistics().kernels;
  const auto got = fused.to_vector<float>();
  REQUIRE(got.size() == want.size());
  const double tolerance = fused.dtype() == Dtype::f32 ? 1e-5 : 2e-2;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    wrong += !(std::abs(got[i] - want[i]) <= tolerance * std::max(1.0F, std::abs(want[i])));
  CHECK(wrong == 0);
  return {between - start, end - between};
}

}  // namespace

TEST_CASE("several results may take the memory of what they are made of") {
  const auto total = [](std::uint64_t seed) {
    auto values = make_values({{3, 5}, -1, 1}, seed);
    return sum(to_tensor(values, Dtype::f32), {1});
  };
  const auto results = [&] {
    const Tensor a = total(1), b = total(2), c = total(3), d = total(4);
    std::vector<Tensor> all;
    // a and d are read later: the first result can only take what the second and third are made of.
    const Tensor product = a * d;
    for (const auto& result : {product, b - product, c + product, a, d}) all.push_back(softmax(result, 0));
    eval(all);
    return all;
  };
  const auto fused = results();
  const exec::NoFusion apart;
  const auto single = results();
  for (std::size_t k = 0; k < fused.size(); ++k)
    compare("result " + std::to_string(k), to_array(fused[k]), to_array(single[k]), 0);
}

TEST_CASE("every solver of conv2d and matmul finishes its elements by what follows, or leaves that to a kernel") {
  for (const std::string kind : {"conv2d", "depthwise", "matmul"}) {
    const bool conv = kind != "matmul", depthwise = kind == "depthwise";
    const std::string op = conv ? "conv2d" : kind;
    std::size_t number = 0;
    for (const auto& solver : exec::solver_names(op)) {
      auto dtypes = sampled_dtypes(number++);
      dtypes.push_back(Dtype::f32);
      for (auto dtype : dtypes) {
        INFO(kind << " by " << solver << " in " << to_string(dtype));
        const exec::ForceSolver force(op, solver);
        const std::int64_t channels = depthwise ? 5 : conv ? 19 : 35;
        const Tensor x = conv ? filled({2, 5, 9, 7}, 1, dtype) : filled({37, 45}, 1, dtype);
        const Tensor weight = conv ? filled({channels, depthwise ? 1 : 5, 3, 3}, 2, dtype) : filled({45, channels}, 2, dtype);
        const Tensor bias = filled({channels}, 3, dtype), scale = conv ? filled({channels, 1, 1}, 4, dtype) : bias;
        const auto product = [&] {
          return conv ? conv2d(x, weight, bias, {.padding = 1, .groups = depthwise ? 5 : 1}) : matmul(x, weight);
        };
        const Tensor residual = filled(product().shape(), 5, dtype);
        try {
          const auto [fused, single] = compare_with_single([&] { return relu(product()); });
          CHECK(single - fused <= 1);
          compare_with_single([&] { return relu(product() * scale + residual); });
          compare_with_single([&] { return leaky_relu(product() * 0.5 + filled({1}, 6, dtype), 0.1); });
        } catch (const Unsupported&) {
          continue;  // a solver that refuses this problem
        }
      }
    }
  }
}

TEST_CASE("every solver of a convolution's input gradient finishes its elements by what follows, or leaves that to a kernel") {
  struct Sizes {
    Shape x, weight;
    Conv2dFuncOptions options;
  };
  const std::vector<Sizes> all{
      {{2, 5, 9, 7}, {6, 5, 3, 3}, {.padding = 1}},
      {{2, 10, 6, 5}, {36, 5, 3, 3}, {.padding = 1, .groups = 2}},
      {{2, 12, 5, 7}, {9, 12, 1, 1}, {}},
      // Pixels that are not seen are finished, too.
      {{2, 5, 9, 8}, {34, 5, 3, 3}, {.stride = 2, .padding = 1}},
      {{2, 7, 9, 8}, {16, 7, 1, 1}, {.stride = 2}},
      {{2, 5, 9, 7}, {5, 1, 3, 3}, {.padding = 1, .groups = 5}},
      {{2, 5, 9, 7}, {10, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 5}},
  };
  const std::string op = "conv2d_backward_data";
  std::vector<exec::Choice> choices;
  for (const auto& name : exec::solver_names(op)) choices.push_back({name, {}});  // as each wants to
  for (const std::int64_t parts : {1, 2})
    choices.push_back({"gpu", {{"m", 16}, {"n", 16}, {"k", 8}, {"rows", 2}, {"columns", 2}, {"parts", parts}}});
  std::size_t number = 0;
  for (const auto& sizes : all) {
    for (const auto& choice : choices) {
      // In a sample one case of three is in a narrow type, the others are in f32.
      const bool narrow = number % 3 == 0;
      std::vector<Dtype> dtypes;
      if (narrow || all_wanted()) dtypes = sampled_dtypes(number);
      if (!narrow || all_wanted()) dtypes.push_back(Dtype::f32);
      ++number;
      for (const auto dtype : dtypes) {
        INFO(to_string(sizes.x) << " by " << to_string(sizes.weight) << " by " << choice.text() << " in " << to_string(dtype));
        const exec::ForceSolver force =
            choice.config.text().empty() ? exec::ForceSolver(op, choice.solver) : exec::ForceSolver(op, choice);
        const Tensor x = filled(sizes.x, 1, dtype), weight = filled(sizes.weight, 2, dtype), residual = filled(sizes.x, 3, dtype),
                     scale = filled({sizes.x[1], 1, 1}, 4, dtype);
        const Tensor g = filled(conv2d(x, weight, {}, sizes.options).shape(), 5, dtype);
        const auto gradient = [&] {
          const Tensor y = conv2d(x, weight, {}, sizes.options);
          return gradients({&y, 1}, {&g, 1}, {&x, 1})[0];
        };
        const bool always = choice.solver == "direct" || choice.solver == "gpu" || choice.solver == "depthwise_gpu";
        try {
          const auto [fused, single] = compare_with_single([&] { return relu(gradient()); });
          CHECK(single - fused <= 1);
          if (always) CHECK(single - fused == 1);
          compare_with_single([&] { return gradient() * scale + residual; });
        } catch (const Unsupported&) {
          continue;  // a solver that refuses this problem
        }
      }
    }
  }
}

TEST_CASE("the gradient of an activation behind a normalisation is part of the convolution's that follows") {
  const Tensor x = filled({3, 6, 8, 7}, 1, Dtype::f32), weight = (filled({6}, 2, Dtype::f32) * 9.0).detach(),
               bias = filled({6}, 3, Dtype::f32);
  std::vector<std::unique_ptr<exec::ForceSolver>> references;
  for (const auto& op : exec::ops_with_solvers())
    references.push_back(std::make_unique<exec::ForceSolver>(op, exec::solver_names(op).back()));
  for (const bool depthwise : {false, true}) {
    const Tensor filter = filled(depthwise ? Shape{6, 1, 3, 3} : Shape{4, 6, 1, 1}, 4, Dtype::f32);
    const Conv2dFuncOptions options = depthwise ? Conv2dFuncOptions{.padding = 1, .groups = 6} : Conv2dFuncOptions{};
    for (const bool skipped : {false, true}) {
      INFO(depthwise << skipped);
      const auto gradient = [&] {
        const Tensor h = relu6(batch_norm_training(x, weight, bias).y), y = conv2d(h, filter, {}, options);
        Tensor loss = sum(y * y);
        if (skipped) loss = loss + sum(h * filled(h.shape(), 6, Dtype::f32));
        const auto both = gradients(loss, {x, filter});
        eval(both);
        return both[0];
      };
      // Three of batch_norm, three of its gradient, and the convolution with its two.
      const auto [fused, single] = compare_with_single(gradient);
      CHECK(fused == 9);
      CHECK(single >= fused + 4);
    }
  }
}

TEST_CASE("products of batches that are looped over are finished at the right elements") {
  const Tensor a = filled({2, 3, 4, 5}, 1, Dtype::f32), b = filled({3, 5, 6}, 2, Dtype::f32),
               c = filled({2, 3, 4, 6}, 3, Dtype::f32);
  with_each_solver(
      "matmul", [&] { matmul(a, b).eval(); },
      [&] {
        compare_with_single([&] { return relu(matmul(a, b) + c); });
        compare_with_single([&] { return matmul(a, b) * filled({6}, 4, Dtype::f32); });
      });
}

TEST_CASE("reductions begin with what only they read and end with what follows, on every solver") {
  struct Example {
    std::string op;
    std::function<Tensor(const Tensor&)> compute;
    Shape shape = {4, 7, 19};
    bool follows = true;  ///< what follows can be a part of it
  };
  const Tensor targets = cast(filled({28}, 9, Dtype::f32) * 3.0 + 3.0, Dtype::i32).detach();
  const std::vector<Example> examples{
      {"reduce", [](const Tensor& x) { return sum(x, {2}); }},
      {"reduce", [](const Tensor& x) { return mean(x, {1}, true); }},
      {"reduce",
       [](const Tensor& x) {
         return max(x, {0, 2});
       }},
      {"softmax", [](const Tensor& x) { return softmax(x, 2); }},
      {"softmax", [](const Tensor& x) { return log_softmax(x, 1); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, 2, {}, {}); }},
      {"cross_entropy",
       [&](const Tensor& x) { return cross_entropy(x, targets, {.reduction = Reduction::none}); },
       {28, 19},
       false},
  };
  // Most of the time goes into builds: f16 with one half of it only.
  for (const auto& example : examples)
    for (auto dtype : {Dtype::f32, Dtype::f16}) {
      const auto& compute = example.compute;
      const auto& shape = example.shape;
      const Tensor a = filled(shape, 1, dtype), b = filled(shape, 2, dtype), scale = filled({1}, 3, dtype);
      with_each_solver(
          example.op, [&] { compute(a).eval(); },
          [&] {
            INFO(to_string(dtype));
            if (dtype == Dtype::f16) {
              const auto [fused, single] = compare_with_single([&] { return compute((a - b) * scale); });
              CHECK(single - fused == 2);
              return;
            }
            const auto [fused, single] = compare_with_single([&] { return relu(compute(a * b + 0.25) + 0.5) * 2.0; });
            CHECK(single - fused == (example.follows ? 5 : 4));
          });
    }
}

TEST_CASE("a value that others read, too, and one that is dear are computed by kernels of their own") {
  const Tensor a = filled({4, 19}, 1, Dtype::f32);
  const auto kernels = [](const std::vector<Tensor>& wanted) {
    const auto start = exec::statistics().kernels;
    eval(wanted);
    return exec::statistics().kernels - start;
  };
  CHECK(kernels({sum(a * 2.0, {1})}) == 1);
  CHECK(kernels({sum(exp(a), {1})}) == 2);
  const Tensor doubled = a * 2.0;
  CHECK(kernels({sum(doubled, {1}), doubled}) == 2);
  const Tensor shifted = a + 1.0;
  CHECK(kernels({sum(shifted, {1}), max(shifted, {0})}) == 3);
  CHECK(kernels({sum(a + filled({19}, 2, Dtype::f32), {1})}) == 2);  // a row for all
}

TEST_CASE("large sums in levels begin and end with other operations") {
  const Tensor a = filled({3, 300007}, 1, Dtype::f32), b = filled({3, 300007}, 2, Dtype::f32);
  with_each_solver(
      "reduce", [&] { sum(a).eval(); },
      [&] {
        compare_with_single([&] { return sqrt(mean((a - b) * (a - b), {1})); });
        compare_with_single([&] { return sqrt(mean((a - b) * (a - b))); });
      });
}

TEST_CASE("results share a kernel only where nothing that was moved to another kernel reads them") {
  const auto graph = [] {
    const Tensor x = filled({2, 3, 4, 4}, 1, Dtype::f32), b = filled({3}, 2, Dtype::f32), w = filled({3}, 3, Dtype::f32);
    const auto bn = batch_norm_training(x, w, b);
    const Tensor v = relu(bn.var), loss = mean(sin(bn.y)) + mean(b * 0.5) + sum(v);
    auto wanted = gradients(loss, {x, b});
    wanted.push_back(v);
    return wanted;
  };
  auto fused = graph();
  REQUIRE_NOTHROW(eval(fused));
  const exec::NoFusion none;
  auto single = graph();
  for (std::size_t k = 0; k < fused.size(); ++k) {
    const auto got = fused[k].to_vector<float>(), want = single[k].to_vector<float>();
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(1e-6));
  }
}

TEST_CASE("what is left of a kernel when a value is computed elsewhere still has its loops") {
  const auto ramp = [](const Shape& shape, float from) {
    std::vector<float> values(static_cast<std::size_t>(shape.numel()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<float>(i % 13);
    return Tensor::from(values, shape);
  };
  const Tensor x = ramp({10, 24}, 0), a = ramp({24}, 1), bias = ramp({6}, 2), big = ramp({16, 10, 4, 6}, 3);
  const auto both = [&] {
    const Tensor p = x * 2.0, k = reshape(p, {10, 4, 6}) + 1.0, s = reshape(a, {4, 6}) + bias;
    const Tensor m = p + reshape(s, {24}), t = big * k;
    eval({m, t});
    return std::pair{m.to_vector<float>(), t.to_vector<float>()};
  };
  const auto fused = both();
  const exec::NoFusion apart;
  CHECK(both() == fused);
}
