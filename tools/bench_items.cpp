#include "tools/bench_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string_view>

#include "clnet/clnet.h"
#include "tools/bench_ranks.h"
#include "tools/bench_tables.h"

namespace clnet::bench {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::int64_t out_size(const Conv& c) { return (c.size - 1) / c.stride + 1; }
double flops(const Conv& c) {
  return 2.0 * static_cast<double>(c.n * c.out * out_size(c) * out_size(c)) *
         static_cast<double>(c.in / c.groups * c.kernel * c.kernel);
}
Shape input(const Conv& c) { return {c.n, c.in, c.size, c.size}; }
Shape weight(const Conv& c) { return {c.out, c.in / c.groups, c.kernel, c.kernel}; }
Shape output(const Conv& c) { return {c.n, c.out, out_size(c), out_size(c)}; }
double bytes(const Conv& c) { return 4.0 * static_cast<double>(input(c).numel() + weight(c).numel() + output(c).numel()); }
Conv2dFuncOptions options(const Conv& c) { return {.stride = c.stride, .padding = c.kernel / 2, .groups = c.groups}; }

std::string name(const Conv& c) {
  const auto stride = c.stride == 1 ? "" : fmt::format("-s{}", c.stride);
  if (c.groups == c.in && c.groups > 1) return fmt::format("depthwise-{}-{}{}-b{}", c.in, c.size, stride, c.n);
  const auto kernel = c.kernel == 3 ? "" : fmt::format("{0}x{0}", c.kernel);
  return fmt::format("conv{}-{}-{}-{}{}-b{}", kernel, c.in, c.out, c.size, stride, c.n);
}

Item forward(const Conv& c) {
  return {name(c) + "-forward", flops(c), "FLOP", flops(c), bytes(c), [c]() -> Run {
            const Tensor x = rand(input(c)), w = rand(weight(c));
            eval({x, w});
            return [=] { conv2d(x, w, {}, options(c)).eval(); };
          }};
}

enum class Gradient { data, weights };

Item backward(const Conv& c, Gradient which) {
  const auto* suffix = which == Gradient::data ? "-backward-data" : "-backward-weights";
  return {name(c) + suffix, flops(c), "FLOP", flops(c), bytes(c), [c, which]() -> Run {
            const Tensor x = rand(input(c)), w = rand(weight(c)), g = rand(output(c));
            eval({x, w, g});
            return [=] {
              const std::vector<Tensor> outputs{conv2d(x, w, {}, options(c))}, with{g}, inputs{which == Gradient::data ? x : w};
              gradients(outputs, with, inputs)[0].eval();
            };
          }};
}

std::string name(const Product& p) {
  const auto batch = p.batch == 0 ? "" : fmt::format("-b{}", p.batch);
  return p.m == p.n && p.n == p.k ? fmt::format("matmul-{}{}", p.m, batch)
                                  : fmt::format("matmul-{}x{}x{}{}", p.m, p.n, p.k, batch);
}

Shape matrices(std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  return batch == 0 ? Shape{rows, columns} : Shape{batch, rows, columns};
}

Item product(const std::string& name, const Product& p, const MatmulOptions& options = {}, Dtype dtype = Dtype::f32) {
  const auto batch = static_cast<double>(std::max<std::int64_t>(p.batch, 1));
  const double flops = 2.0 * batch * static_cast<double>(p.m * p.n) * static_cast<double>(p.k);
  const double bytes = static_cast<double>(size_of(dtype)) * batch * static_cast<double>(p.m * p.k + p.k * p.n + p.m * p.n);
  return {name, flops, "FLOP", flops, bytes, [p, options, dtype]() -> Run {
            const Tensor a = cast(rand(options.transpose_a ? matrices(p.batch, p.k, p.m) : matrices(p.batch, p.m, p.k)), dtype);
            const Tensor b = cast(rand(options.transpose_b ? matrices(p.batch, p.n, p.k) : matrices(p.batch, p.k, p.n)), dtype);
            eval({a, b});
            return [=] { matmul(a, b, options).eval(); };
          }};
}

std::vector<float> random_pixels(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (auto& value : values) value = static_cast<float>((state = state * 1664525 + 1013904223) >> 8) / (1 << 24);
  return values;
}

Shape image(const Network& net) { return {net.channels, net.size, net.size}; }
Shape images(const Network& net, std::int64_t batch) { return {batch, net.channels, net.size, net.size}; }

Item network(const Network& net, const char* mode, std::int64_t batch, double macs, std::function<Run()> prepare) {
  const auto count = static_cast<double>(batch);
  return {fmt::format("{}-{}-b{}", net.name, mode, batch), count, "image", 2 * count * macs, 0, std::move(prepare)};
}

/// Images on the device already, and the result stays there.
Item forward(const Network& net, std::int64_t batch) {
  return network(net, "forward", batch, net.macs, [=]() -> Run {
    const std::shared_ptr<nn::Module> model = models::make(net.name, image(net), net.classes);
    model->inference();
    const Tensor x = rand(images(net, batch));
    x.eval();
    return [=] { (*model)(x).eval(); };
  });
}

/// By a graph that is built in each call, or once.
Item inference(const Network& net, std::int64_t batch, bool compiled = false) {
  auto item = network(net, "infer", batch, net.macs, [=]() -> Run {
    const std::shared_ptr<nn::Module> model = models::make(net.name, image(net), net.classes);
    model->inference();
    const auto pixels = std::make_shared<std::vector<float>>(random_pixels(images(net, batch).numel()));
    const auto input = [=] { return Tensor::from(*pixels, images(net, batch)); };
    if (!compiled) return [=] { (void)(*model)(input()).to_vector<float>(); };
    const auto call = compile([=](const Tensor& x) { return (*model)(x); });
    return [=] { (void)call(input()).to_vector<float>(); };
  });
  if (compiled) item.name += "-compiled";
  return item;
}

/// SGD with momentum for photos, Adam for digits; convolutions and products in f16 where `dtype` says so.
Training prepared_training(const Network& net, std::int64_t batch, Dtype dtype) {
  const std::shared_ptr<nn::Module> model = models::make(net.name, image(net), net.classes);
  const auto optimizer = std::make_shared<optim::Optimizer>(
      net.classes == 10 ? optim::Optimizer(optim::Adam{*model, {.learning_rate = 1e-3}})
                        : optim::Optimizer(optim::SGD{*model, {.learning_rate = 1e-3, .momentum = 0.9}}));
  add_gradients_of_ranks(*optimizer);
  const auto pixels = std::make_shared<std::vector<float>>(random_pixels(images(net, batch).numel()));
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < batch; ++i) labels.push_back(static_cast<std::int32_t>(i % net.classes));
  return {model, optimizer, batch, [=](nn::Module& of, std::int64_t first, std::int64_t count) {
            const auto part = [=](const auto& values, const Shape& each) {
              return std::span(values).subspan(static_cast<std::size_t>(first * each.numel()),
                                               static_cast<std::size_t>(count * each.numel()));
            };
            const Tensor x = Tensor::from(part(*pixels, image(net)), images(net, count));
            const Tensor targets = Tensor::from(part(labels, {}), Shape{count});
            const Autocast products(dtype);
            return cross_entropy(of(x), targets);
          }};
}

/// Each layer is computed three times: forward, and for both gradients.
Item training(const Network& net, std::int64_t batch, Dtype dtype = Dtype::f32) {
  const auto prepare = [=] { return prepared_training(net, batch, dtype); };
  auto item = network(net, "train", batch, 3 * net.macs - net.first, [=]() -> Run {
    return [training = prepare()] { training.optimizer->step(training.loss(*training.model, 0, training.batch)); };
  });
  item.training = prepare;
  if (dtype != Dtype::f32) item.name += fmt::format("-{}", to_string(dtype));
  return item;
}

double seconds(const Run& run, int times) {
  const auto device = Device::current();
  run();
  device.finish();
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    const auto start = Clock::now();
    run();
    device.finish();
    best = std::min(best, since(start));
  }
  return best;
}

}  // namespace

std::vector<Item> items() {
  std::vector<Item> list;
  for (const auto& p : products) list.push_back(product(name(p), p));
  for (const auto dtype : {Dtype::f16, Dtype::bf16})
    for (const std::int64_t n : {256, 1024, 2048}) {
      const Product p{n, n, n};
      list.push_back(product(fmt::format("{}-{}", name(p), to_string(dtype)), p, {}, dtype));
    }
  for (const auto& p : linears) {
    const auto name = fmt::format("linear-{}-{}-b{}", p.k, p.n, p.m);
    list.push_back(product(name + "-forward", p, {.transpose_b = true}));
    list.push_back(product(name + "-backward-data", {p.m, p.k, p.n}));
    list.push_back(product(name + "-backward-weights", {p.n, p.k, p.m}, {.transpose_a = true}));
  }
  for (const auto& c : convs) {
    list.push_back(forward(c));
    list.push_back(backward(c, Gradient::data));
    list.push_back(backward(c, Gradient::weights));
  }
  for (auto& item : memory_items()) list.push_back(std::move(item));
  for (auto& item : function_items()) list.push_back(std::move(item));
  for (const auto& net : networks) {
    const bool photos = net.size > 100;
    for (std::int64_t batch : {1, photos ? 16 : 64}) {
      list.push_back(forward(net, batch));
      list.push_back(inference(net, batch));
    }
    list.push_back(inference(net, 1, true));
    if (net.training_batch > 0) {
      if (net.name == std::string_view("resnet18")) list.push_back(training(net, 8));  // of one rank of two
      list.push_back(training(net, net.training_batch));
      list.push_back(training(net, net.training_batch, Dtype::f16));
    }
    if (photos) continue;
    for (std::int64_t batch : {32, 64, 128, 256}) list.push_back(training(net, batch));
  }
  for (auto& item : model_items()) list.push_back(std::move(item));
  return list;
}

Result measure(const Item& item, double budget) {
  const auto run = item.prepare();
  const auto device = Device::current();
  for (int i = 0; i < 3; ++i) run();
  device.finish();
  auto start = Clock::now();
  run();
  device.finish();
  const auto runs = of_rank_0(std::max(1, static_cast<int>(0.02 / std::max(since(start), 1e-6))));
  std::vector<double> samples;
  const auto begin = Clock::now();
  while (of_rank_0(samples.size() < 5 || (since(begin) < budget && samples.size() < 1000)) != 0) {
    start = Clock::now();
    for (std::int64_t i = 0; i < runs; ++i) run();
    device.finish();
    samples.push_back(since(start) / static_cast<double>(runs));
  }
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front()};
}

Peak measure_peak() {
  const auto device = Device::current();
  const auto& info = device.info();
  // Ten chains of multiply-adds hide the latency of one and fit into 16 registers of the device's own width; work-items enough
  // for every core several times over.
  constexpr std::int64_t most_steps = 16384, chains = 10;
  const std::int64_t lanes = info.native_float_width >= 16 ? 16 : info.native_float_width >= 8 ? 8 : 4;
  const auto items = static_cast<std::int64_t>(info.compute_units) * (info.prefers_vector_kernels ? 64 : 4096);
  const Kernel multiply("multiply", fmt::format("typedef float{} lanes;\n", lanes) + R"(
    kernel void multiply(IN(x), OUT(y), const int steps) {
      const lanes factor = (lanes)(LOAD(x, 0));
      lanes a = factor, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5, g = a + 6, h = a + 7, i = a + 8, j = a + 9;
      for (int k = 0; k < steps; ++k) {
        a = fma(a, factor, factor); b = fma(b, factor, factor); c = fma(c, factor, factor); d = fma(d, factor, factor);
        e = fma(e, factor, factor); f = fma(f, factor, factor); g = fma(g, factor, factor); h = fma(h, factor, factor);
        i = fma(i, factor, factor); j = fma(j, factor, factor);
      }
      const lanes total = a + b + c + d + e + f + g + h + i + j;
      STORE(y, get_global_id(0), total.s0 + total.s1 + total.s2 + total.s3);
    })");
  const auto cores = [&](std::int64_t steps) {
    return multiply.outputs([=](const auto&) {
                     return std::vector<Spec>{{{items}, Dtype::f32}};
                   })
        .range({items}, {info.prefers_vector_kernels ? 1 : 64})
        .scalar("steps", static_cast<double>(steps));
  };
  const Tensor half = Tensor::from({0.5F});
  // A CPU copies long pieces, a GPU one access to memory of each work-item beside its neighbours'.
  const Kernel copy("copy", info.prefers_vector_kernels ? R"(kernel void copy(IN(x), OUT(y), const int chunk) {
      const int first = (int)get_global_id(0) * chunk;
      for (int i = first; i < first + chunk; i += 16) vstore16(vload16(0, PTR(x) + i), 0, PTR(y) + i);
    })"
                                                        : R"(kernel void copy(IN(x), OUT(y), const int chunk) {
      const int i = (int)get_global_id(0);
      ((global float4 *)PTR(y))[i] = ((global const float4 *)PTR(x))[i];
    })");
  // Buffers well beyond the caches, which are 50 MB and more on large GPUs; so large that a launch's latency does not count.
  constexpr std::int64_t mib = 1 << 20;
  const auto fits = static_cast<std::int64_t>(info.global_memory / 64);
  const std::int64_t bytes =
      info.prefers_vector_kernels ? 128 * mib : std::clamp(fits / mib, std::int64_t{128}, std::int64_t{1024}) * mib;
  const std::int64_t count = bytes / 4, chunk = info.prefers_vector_kernels ? 1 << 16 : 4;
  const auto whole = copy.range({count / chunk}, {}).scalar("chunk", static_cast<double>(chunk));
  const Tensor x = zeros({count});
  eval({half, x});
  // Where fma() is a function in software, as many steps as elsewhere would take minutes.
  constexpr double long_enough = 0.01;
  std::int64_t steps = 64;
  while (steps < most_steps && seconds([&] { cores(steps)(half).eval(); }, 2) < long_enough) steps *= 4;
  return {2.0 * static_cast<double>(steps * chains * lanes * items) / seconds([&] { cores(steps)(half).eval(); }, 15),
          8.0 * static_cast<double>(count) / seconds([&] { whole(x).eval(); }, 15)};
}

}  // namespace clnet::bench
