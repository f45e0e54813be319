#include "tools/bench_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "clnet/clnet.h"

namespace clnet::bench {

namespace {

/// x {n, in, size, size}, weight {out, in / groups, kernel, kernel}, padding that keeps the size at stride 1.
struct Conv {
  std::int64_t n, in, out, size, kernel, stride = 1, groups = 1;

  std::int64_t out_size() const { return (size - 1) / stride + 1; }
  double flops() const {
    return 2.0 * static_cast<double>(n * out * out_size() * out_size()) * static_cast<double>(in / groups * kernel * kernel);
  }
  Conv2dOptions options() const { return {.stride = stride, .padding = kernel / 2, .groups = groups}; }
  Tensor x() const { return rand({n, in, size, size}); }
  Tensor weight() const { return rand({out, in / groups, kernel, kernel}); }
};

Item forward(const std::string& name, const Conv& c) {
  return {name + "-forward", c.flops(), "FLOP", [c]() -> Run {
            const Tensor x = c.x(), w = c.weight();
            eval({x, w});
            return [=] { conv2d(x, w, {}, c.options()).eval(); };
          }};
}

/// The gradient of x (which = 0) or of the weight.
Item backward(const std::string& name, const Conv& c, int which) {
  return {name + (which == 0 ? "-backward-data" : "-backward-weights"), c.flops(), "FLOP", [c, which]() -> Run {
            const Tensor x = c.x(), w = c.weight(), g = rand({c.n, c.out, c.out_size(), c.out_size()});
            eval({x, w, g});
            return [=] {
              const std::vector<Tensor> outputs{conv2d(x, w, {}, c.options())}, with{g}, inputs{which == 0 ? x : w};
              gradients(outputs, with, inputs)[0].eval();
            };
          }};
}

Item product(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k, const MatmulOptions& options = {}) {
  return {
      name, 2.0 * static_cast<double>(m * n) * static_cast<double>(k), "FLOP", [=]() -> Run {
        const Tensor a = options.transpose_a ? rand({k, m}) : rand({m, k}), b = options.transpose_b ? rand({n, k}) : rand({k, n});
        eval({a, b});
        return [=] { matmul(a, b, options).eval(); };
      }};
}

Item memory_bound(const std::string& name, double bytes, const Shape& shape, Tensor (*function)(const Tensor&)) {
  return {name, bytes, "byte", [=]() -> Run {
            const Tensor x = rand(shape);
            x.eval();
            return [=] { function(x).eval(); };
          }};
}

struct Network {
  const char* name;
  Shape image;
  std::int64_t classes;
};

std::vector<float> random_pixels(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (auto& value : values) value = static_cast<float>((state = state * 1664525 + 1013904223) >> 8) / (1 << 24);
  return values;
}

Shape with_batch(const Network& net, std::int64_t batch) { return {batch, net.image[0], net.image[1], net.image[2]}; }

Item inference(const Network& net, std::int64_t batch) {
  return {fmt::format("{}-infer-b{}", net.name, batch), static_cast<double>(batch), "image", [=]() -> Run {
            const std::shared_ptr<nn::Module> model = models::make(net.name, net.image, net.classes);
            model->eval();
            const auto pixels = std::make_shared<std::vector<float>>(random_pixels(batch * net.image.numel()));
            return [=] { (void)(*model)(Tensor::from(*pixels, with_batch(net, batch))).to_vector<float>(); };
          }};
}

Item training(const Network& net, std::int64_t batch, bool adam) {
  return {fmt::format("{}-train-b{}", net.name, batch), static_cast<double>(batch), "image", [=]() -> Run {
            const std::shared_ptr<nn::Module> model = models::make(net.name, net.image, net.classes);
            const auto optimizer = std::make_shared<optim::Optimizer>(
                adam ? optim::Optimizer(optim::Adam{*model, {.learning_rate = 1e-3}})
                     : optim::Optimizer(optim::SGD{*model, {.learning_rate = 1e-3, .momentum = 0.9}}));
            const auto pixels = std::make_shared<std::vector<float>>(random_pixels(batch * net.image.numel()));
            std::vector<std::int32_t> labels;
            for (std::int64_t i = 0; i < batch; ++i) labels.push_back(static_cast<std::int32_t>(i % net.classes));
            return [=] {
              const Tensor images = Tensor::from(*pixels, with_batch(net, batch)), targets = Tensor::from(labels, Shape{batch});
              optimizer->step(cross_entropy((*model)(images), targets));
            };
          }};
}

double seconds(const Run& run, int times) {
  const auto device = Device::current();
  run();
  device.finish();
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    device.finish();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

std::vector<Item> items() {
  std::vector<Item> list;
  for (std::int64_t size : {256, 512, 1024, 2048}) list.push_back(product(fmt::format("matmul-{}", size), size, size, size));
  list.push_back(product("linear-b64-3136-128-forward", 64, 128, 3136, {.transpose_b = true}));
  list.push_back(product("linear-b64-3136-128-backward-data", 64, 3136, 128));
  list.push_back(product("linear-b64-3136-128-backward-weights", 128, 3136, 64, {.transpose_a = true}));
  list.push_back(product("linear-b1-2048-1000-forward", 1, 1000, 2048, {.transpose_b = true}));

  struct Named {
    std::string name;
    Conv conv;
  };
  for (const auto& [name, c] :
       {Named{"conv-3-64-224-b16", {16, 3, 64, 224, 3}}, Named{"conv-64-64-56-b16", {16, 64, 64, 56, 3}},
        Named{"conv-128-128-28-b16", {16, 128, 128, 28, 3}}, Named{"conv-256-256-14-b16", {16, 256, 256, 14, 3}},
        Named{"conv-512-512-7-b16", {16, 512, 512, 7, 3}}, Named{"conv1x1-256-64-56-b16", {16, 256, 64, 56, 1}},
        Named{"conv1x1-64-256-56-b16", {16, 64, 256, 56, 1}}, Named{"depthwise-144-56-b16", {16, 144, 144, 56, 3, 1, 144}},
        // ResNet's first layer, a strided one, and the layers of clnet-train's `cnn`
        Named{"conv7x7-3-64-224-b16", {16, 3, 64, 224, 7, 2}}, Named{"conv-64-128-56-s2-b16", {16, 64, 128, 56, 3, 2}},
        Named{"conv-1-32-28-b64", {64, 1, 32, 28, 3}}, Named{"conv-32-64-14-b64", {64, 32, 64, 14, 3}},
        // VGG-16 and DeepBench
        Named{"conv-64-128-112-b8", {8, 64, 128, 112, 3}}, Named{"conv-512-512-14-b8", {8, 512, 512, 14, 3}}}) {
    list.push_back(forward(name, c));
    list.push_back(backward(name, c, 0));
    list.push_back(backward(name, c, 1));
  }

  const double mib = 1 << 20;
  list.push_back(memory_bound("relu-64m", 2 * 256 * mib, {64 << 20}, relu));
  list.push_back(memory_bound("softmax-4096-1000", 2 * 4 * 4096e3, {4096, 1000}, [](const Tensor& x) { return softmax(x, 1); }));
  list.push_back(memory_bound("sum-64m", 256 * mib, {64 << 20}, [](const Tensor& x) { return sum(x); }));
  list.push_back(memory_bound("maxpool2-64-112-b16", 1.25 * 4 * 16 * 64 * 112 * 112, {16, 64, 112, 112},
                              [](const Tensor& x) { return max_pool2d(x, 2); }));

  const Shape digits{1, 28, 28}, photo{3, 224, 224};
  const Network keras_cnn{"keras-cnn", digits, 10}, cnn{"cnn", digits, 10}, lenet5{"lenet5", digits, 10},
      resnet18{"resnet18", photo, 1000}, mobilenetv2{"mobilenetv2", photo, 1000};
  for (const auto& net : {keras_cnn, cnn, lenet5})
    for (std::int64_t batch : {1, 64}) list.push_back(inference(net, batch));
  for (std::int64_t batch : {32, 128}) list.push_back(training(keras_cnn, batch, true));
  for (std::int64_t batch : {64, 256}) list.push_back(training(cnn, batch, true));
  list.push_back(training(lenet5, 64, true));
  for (const auto& net : {resnet18, mobilenetv2}) {
    for (std::int64_t batch : {1, 16}) list.push_back(inference(net, batch));
    list.push_back(training(net, 16, false));
  }
  return list;
}

Peak measure_peak() {
  const auto device = Device::current();
  const auto& info = device.info();
  // Ten chains of multiply-adds hide the latency of one; work-items enough for every core several times over.
  constexpr std::int64_t steps = 4096, chains = 10, lanes = 16;
  const auto items = static_cast<std::int64_t>(info.compute_units) * (info.prefers_vector_kernels ? 64 : 4096);
  const Kernel multiply("multiply", R"(kernel void multiply(IN(x), OUT(y), const int steps) {
      const float16 factor = (float16)(LOAD(x, 0));
      float16 a = factor, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5, g = a + 6, h = a + 7, i = a + 8, j = a + 9;
      for (int k = 0; k < steps; ++k) {
        a = fma(a, factor, factor); b = fma(b, factor, factor); c = fma(c, factor, factor); d = fma(d, factor, factor);
        e = fma(e, factor, factor); f = fma(f, factor, factor); g = fma(g, factor, factor); h = fma(h, factor, factor);
        i = fma(i, factor, factor); j = fma(j, factor, factor);
      }
      const float16 total = a + b + c + d + e + f + g + h + i + j;
      STORE(y, get_global_id(0), total.s0 + total.s5 + total.sa + total.sf);
    })");
  const auto cores = multiply.outputs([=](const auto&) {
                               return std::vector<Spec>{{{items}, Dtype::f32}};
                             })
                         .range({items}, {info.prefers_vector_kernels ? 1 : 64})
                         .scalar("steps", static_cast<double>(steps));
  const Tensor half = Tensor::from({0.5F});
  const Kernel copy("copy", R"(kernel void copy(IN(x), OUT(y), const int chunk) {
      const int first = (int)get_global_id(0) * chunk;
      for (int i = first; i < first + chunk; i += 16) vstore16(vload16(0, PTR(x) + i), 0, PTR(y) + i);
    })");
  // Buffers well beyond the caches. A GPU wants short pieces for neighbouring work-items.
  const std::int64_t count = 32 << 20, chunk = info.prefers_vector_kernels ? 1 << 16 : 16;
  const auto whole = copy.range({count / chunk}, {}).scalar("chunk", static_cast<double>(chunk));
  const Tensor x = zeros({count});
  eval({half, x});
  return {2.0 * static_cast<double>(steps * chains * lanes * items) / seconds([&] { cores(half).eval(); }, 5),
          8.0 * static_cast<double>(count) / seconds([&] { whole(x).eval(); }, 5)};
}

}  // namespace clnet::bench
