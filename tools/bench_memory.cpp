// Items of clnet-bench whose time is that of moving data: pools, normalisations, reductions, elementwise functions, indexing,
// random numbers, an optimizer's step.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "tools/bench_items.h"
#include "tools/bench_tables.h"

namespace clnet::bench {

namespace {

constexpr double mib = 1 << 20;

Item memory_bound(const std::string& name, double bytes, std::function<Run()> prepare) {
  return {name, bytes, "byte", 0, bytes, std::move(prepare)};
}

using Function = std::function<Tensor(const Tensor&)>;

Item function_of(const std::string& name, double bytes, const Shape& shape, const Function& function) {
  return memory_bound(name, bytes, [=]() -> Run {
    const Tensor x = rand(shape);
    x.eval();
    return [=] { function(x).eval(); };
  });
}

/// The gradient alone: the forward result is kept.
Item gradient_of(const std::string& name, double bytes, const Shape& shape, const Function& function) {
  return memory_bound(name, bytes, [=]() -> Run {
    const Tensor x = rand(shape);
    const Tensor y = function(x);
    const Tensor g = rand(y.shape());
    eval({x, y, g});
    return [=] {
      const std::vector<Tensor> outputs{y}, with{g}, inputs{x};
      gradients(outputs, with, inputs)[0].eval();
    };
  });
}

void add_both(std::vector<Item>& list, const std::string& name, double bytes, const Shape& shape, const Function& function) {
  list.push_back(function_of(name + "-forward", bytes, shape, function));
  list.push_back(gradient_of(name + "-backward", bytes, shape, function));
}

void add(std::vector<Item>& list, const Pool& p) {
  const auto padding = (p.kernel - 1) / 2, out = (p.size + 2 * padding - p.kernel) / p.stride + 1;
  add_both(list, fmt::format("{}pool{}s{}-{}-{}-b{}", p.max ? "max" : "avg", p.kernel, p.stride, p.channels, p.size, p.n),
           4.0 * static_cast<double>(p.n * p.channels * (p.size * p.size + out * out)), {p.n, p.channels, p.size, p.size},
           [=](const Tensor& x) {
             return p.max ? max_pool2d(x, p.kernel, {.stride = Pair(p.stride), .padding = padding})
                          : avg_pool2d(x, p.kernel, {.stride = Pair(p.stride), .padding = padding});
           });
}

void add(std::vector<Item>& list, const AdaptivePool& p) {
  const auto kind = p.out == 0 ? "global-avgpool" : fmt::format("adaptive-avgpool{}", p.out);
  const auto out = p.out == 0 ? 1 : p.out;
  add_both(list, fmt::format("{}-{}-{}-b{}", kind, p.channels, p.size, p.n),
           4.0 * static_cast<double>(p.n * p.channels * (p.size * p.size + out * out)), {p.n, p.channels, p.size, p.size},
           [=](const Tensor& x) { return p.out == 0 ? global_avg_pool2d(x) : adaptive_avg_pool2d(x, p.out); });
}

void add(std::vector<Item>& list, const Embedding& e) {
  const auto name = fmt::format("embedding-{}-{}-b{}", e.rows, e.width, e.count);
  const double result = 4.0 * static_cast<double>(e.count * e.width), indices = 8.0 * static_cast<double>(e.count);
  const auto item = [&](const char* what, double bytes, bool backward) {
    return memory_bound(name + what, bytes, [=]() -> Run {
      const Tensor table = rand({e.rows, e.width}), places = randint(0, e.rows, {e.count}), g = rand({e.count, e.width});
      eval({table, places, g});
      if (!backward) return [=] { embedding(places, table).eval(); };
      return [=] {
        const std::vector<Tensor> outputs{embedding(places, table)}, with{g}, inputs{table};
        gradients(outputs, with, inputs)[0].eval();
      };
    });
  };
  list.push_back(item("-forward", indices + 2 * result, false));
  list.push_back(item("-backward", indices + result + 4.0 * static_cast<double>(e.rows * e.width), true));
}

/// A normalisation of x {a, features, ...} or {a, features} with weight and bias; with all three gradients, too, where wanted.
Item normalisation(const std::string& name, const Shape& shape,
                   Tensor (*function)(const Tensor& x, const Tensor& weight, const Tensor& bias), bool gradient) {
  return memory_bound(name + (gradient ? "-train" : "-forward"), (gradient ? 16.0 : 8.0) * static_cast<double>(shape.numel()),
                      [=]() -> Run {
                        const Tensor x = rand(shape), g = rand(shape), weight = rand({shape[1]}), bias = rand({shape[1]});
                        eval({x, g, weight, bias});
                        if (!gradient) return [=] { function(x, weight, bias).eval(); };
                        return [=] {
                          const std::vector<Tensor> y{function(x, weight, bias)}, with{g}, inputs{x, weight, bias};
                          // The result, too, which no gradient needs: a layer's step has both.
                          auto wanted = gradients(y, with, inputs);
                          wanted.push_back(y[0]);
                          eval(wanted);
                        };
                      });
}

/// Elements of {1024, 1024} along either dimension.
Item gathering(int dim) {
  return memory_bound(fmt::format("gather-{}-1m", dim), 16 * mib, [=]() -> Run {
    const Tensor x = rand({1024, 1024}), indices = randint(0, 1024, {1024, 1024});
    eval({x, indices});
    return [=] { gather(x, dim, indices).eval(); };
  });
}

/// A step with a given gradient: parameter, gradient and two averages read, all but the gradient written.
Item adam() {
  constexpr std::int64_t count = 25 << 20;
  return memory_bound("adam-25m", 7 * 4.0 * static_cast<double>(count), []() -> Run {
    const nn::Parameter parameter(rand({count}));
    const auto optimizer = std::make_shared<optim::Adam>(nn::NamedParameters{{"parameter", parameter}});
    const Tensor gradient = rand({count});
    gradient.eval();
    return [=] { optimizer->apply({gradient}); };
  });
}

}  // namespace

std::vector<Item> memory_items() {
  std::vector<Item> list;
  list.push_back(function_of("relu-64m", 2 * 256 * mib, {64 << 20}, relu));
  list.push_back(function_of("softmax-4096-1000", 2 * 4 * 4096e3, {4096, 1000}, [](const Tensor& x) { return softmax(x, 1); }));
  list.push_back(function_of("sum-64m", 256 * mib, {64 << 20}, [](const Tensor& x) { return sum(x); }));
  list.push_back(function_of("argmax-64m", 256 * mib, {64 << 20}, [](const Tensor& x) { return argmax(x, 0); }));

  list.push_back(normalisation(
      "batch-norm-64-56-b16", {16, 64, 56, 56},
      [](const Tensor& x, const Tensor& weight, const Tensor& bias) { return batch_norm_training(x, weight, bias).y; }, true));
  for (const bool gradient : {false, true})
    list.push_back(normalisation(
        "layer-norm-4096-1024", {4096, 1024},
        [](const Tensor& x, const Tensor& weight, const Tensor& bias) { return layer_norm(x, 1, weight, bias); }, gradient));

  for (const auto& p : pools) add(list, p);
  for (const auto& p : adaptive_pools) add(list, p);

  const std::pair<const char*, Tensor (*)(const Tensor&)> functions[] = {
      {"exp", exp},
      {"log", log},
      {"log1p", log1p},
      {"expm1", expm1},
      {"sin", sin},
      {"cos", cos},
      {"tanh", tanh},
      {"erf", erf},
      {"rsqrt", rsqrt},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"gelu-tanh", [](const Tensor& x) { return gelu(x, Gelu::tanh); }},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"mish", mish},
      {"pow2", [](const Tensor& x) { return pow(x, 2.0); }},
      {"pow2.5", [](const Tensor& x) { return pow(x, 2.5); }},
      {"pow-x", [](const Tensor& x) { return pow(x, x); }}};
  for (const auto& [name, function] : functions)
    list.push_back(function_of(fmt::format("elementwise-{}-1m", name), 8 * mib, {1 << 20}, function));
  const std::pair<const char*, Tensor (*)(const Shape&, Dtype)> generators[] = {{"rand", rand}, {"randn", randn}};
  for (const auto& [name, generator] : generators)
    list.push_back(memory_bound(fmt::format("{}-1m", name), 4 * mib, [=, generator = generator]() -> Run {
      return [=] { generator({1 << 20}, Dtype::f32).eval(); };
    }));
  list.push_back(function_of("dropout-1m", 8 * mib, {1 << 20}, [](const Tensor& x) { return dropout(x, 0.5); }));
  list.push_back(function_of("permute-6d-1m", 8 * mib, {4, 8, 4, 16, 16, 32}, [](const Tensor& x) {
    return permute(x, {5, 3, 1, 4, 2, 0});
  }));
  for (const int dim : {0, 1}) list.push_back(gathering(dim));
  for (const auto& e : embeddings) add(list, e);
  list.push_back(adam());
  return list;
}

}  // namespace clnet::bench
