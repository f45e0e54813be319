// Every configuration of every solver computes what the reference solver does.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/lower/lower.h"
#include "lib/exec/statistics.h"
#include "lib/graph/op.h"
#include "lib/ops/attention/attention.h"
#include "lib/ops/optimize/optimizer_update.h"
#include "tests/ops/check.h"
#include "tests/support/guarded.h"
#include "tests/support/skip.h"

using namespace clnet;
using Catch::Matchers::Contains;

namespace {

using Program = std::function<Tensor()>;

/// What could be chosen for `op` in the program, and on PoCL, which is a CPU, the tiles for GPUs, too; where they are for matrix
/// units these are emulated.
std::vector<std::string> choices(const std::string& op, const Program& program) {
  const auto info = Device::current().info();
  const auto list = [&](const DeviceInfo& device) {
    const Tensor y = program();
    exec::ListChoices choices;
    exec::lower(exec::Subgraph(exec::collect({&y, 1})), device, {.list = &choices});
    return choices.of(op);
  };
  auto result = list(info);
  auto gpu = info;
  gpu.type = DeviceType::gpu;
  gpu.compute_units = 16;
  if (info.type == DeviceType::cpu) gpu.name = "a GPU", gpu.architecture = "sm_86";
  for (auto& choice : list(gpu))
    if (std::find(result.begin(), result.end(), choice) == result.end()) result.push_back(std::move(choice));
  return result;
}

/// Of those whose solver's name begins so.
void check_choices(const std::string& op, const Program& program, double tolerance, std::size_t least = 3,
                   const std::string& beginning = {}) {
  std::vector<float> expected;
  {
    const exec::ForceSolver reference(op, exec::solver_names(op).back());
    expected = program().to_vector<float>();
  }
  double largest = 0;
  for (const auto value : expected) largest = std::max(largest, std::abs(static_cast<double>(value)));
  const auto all = choices(op, program);
  CHECK(all.size() >= least);
  const auto solver_of = [](const std::string& choice) { return choice.substr(0, choice.find('{')); };
  std::size_t number = 0;  // among those of its solver
  testing::ForcedRuns runs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& choice = all[i];
    number = i > 0 && solver_of(choice) == solver_of(all[i - 1]) ? number + 1 : 0;
    const bool last = i + 1 == all.size() || solver_of(all[i + 1]) != solver_of(choice);
    if (!choice.starts_with(beginning)) continue;
    // In a sample, of each solver the first, every third and the last.
    if (number % 3 != 0 && !last && !testing::all_wanted()) continue;
    INFO(op << ":" << choice);
    const exec::ForceSolver force(op, exec::Choice::parse(choice));
    std::vector<float> values;
    if (!runs.run(op, op + ":" + choice, [&] { values = program().to_vector<float>(); })) continue;
    REQUIRE(values.size() == expected.size());
    std::size_t wrong = 0;
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const auto error = std::abs(static_cast<double>(values[k]) - static_cast<double>(expected[k]));
      if (!(error <= tolerance * largest)) ++wrong;
    }
    CHECK(wrong == 0);
  }
  runs.check();
}

/// The kernels that a GPU of 82 units would run.
std::vector<std::string> kernels_on_gpu(const Tensor& y) {
  auto gpu = Device::current().info();
  gpu.type = DeviceType::gpu;
  gpu.compute_units = 82;
  // Whoever made the CPU that plays it.
  gpu.vendor = "NVIDIA Corporation", gpu.name = "a GPU", gpu.architecture = "sm_86";
  gpu.prefers_vector_kernels = false;
  const auto recording = exec::lower(exec::Subgraph(exec::collect({&y, 1})), gpu).recording;
  std::vector<std::string> result;
  for (const auto& command : recording.commands())
    if (const auto* launch = std::get_if<exec::Launch>(&command)) result.push_back(launch->function());
  return result;
}

/// How many products the convolution for GPUs makes of it, forced.
std::size_t products_of(const Tensor& y) {
  const auto recording = exec::lower(exec::Subgraph(exec::collect({&y, 1})), Device::current().info()).recording;
  for (const auto& command : recording.commands())
    if (const auto* launch = std::get_if<exec::Launch>(&command); launch && launch->function() == "conv2d_gpu")
      return launch->global()[2];
  return 0;
}

Tensor random(const Shape& shape, Dtype dtype = Dtype::f32) { return cast(randn(shape), dtype).detach(); }

}  // namespace

TEST_CASE("all configurations of products", "[long]") {
  manual_seed(1);
  const auto transposed = [](const Tensor& x) { return transpose(x, -1, -2); };
  const Tensor a = random({67, 45}), b = random({45, 131}), at = random({45, 67}), bt = random({131, 45});
  check_choices(
      "matmul", [&] { return matmul(a, b); }, 1e-5);
  check_choices(
      "matmul", [&] { return matmul(transposed(at), transposed(bt)); }, 1e-5);
  // Long enough for parts along k.
  const Tensor x = random({3, 20, 700}), w = random({17, 700}), bias = random({17}), y = random({3, 20, 700});
  check_choices(
      "matmul", [&] { return relu(linear(x, w, bias)); }, 1e-5);
  check_choices(
      "matmul", [&] { return matmul(x, transposed(y)); }, 1e-5);
  const Tensor tall = random({70, 1}), row = random({1, 45});
  check_choices(
      "matmul", [&] { return matmul(tall, row); }, 1e-6);
  const Tensor wide = random({5, 5000}), high = random({5000, 9});
  check_choices(
      "matmul", [&] { return matmul(wide, high) + 1.0; }, 1e-5);
  for (const auto dtype : {Dtype::f16, Dtype::bf16}) {
    const Tensor u = random({33, 300}, dtype), v = random({300, 40}, dtype);
    check_choices(
        "matmul", [&] { return cast(matmul(u, v), Dtype::f32); }, dtype == Dtype::f16 ? 2e-3 : 2e-2);
  }
}

TEST_CASE("sums that have no room beside one another are made in rounds") {
  // One part of a sum that is too long for one float, whatever the list says.
  const exec::Config config{{"m", 16}, {"n", 16}, {"k", 8}, {"rows", 2}, {"columns", 2}, {"parts", 1}};
  manual_seed(3);
  const Tensor a = random({2, 18, 4500}), b = random({2, 4500, 17}), x = random({2, 600, 3, 3}), w = random({5, 600, 3, 3}),
               bias = random({5}), g = random({2, 5, 3, 3}), image = random({1, 2, 70, 70}), seen = random({1, 3, 70, 70}),
               kernel = random({3, 2, 3, 3}), back = random({600, 4, 3, 3}), from = random({1, 600, 4, 4});
  const std::vector<std::pair<std::string, Program>> programs{
      {"matmul", [&] { return relu(matmul(a, b)); }},
      {"conv2d", [&] { return relu(conv2d(x, w, bias, {.padding = 1})); }},
      {"conv2d_backward_data", [&] { return conv_transpose2d(from, back); }},
      // Of the four phases one has a second round.
      {"conv2d_backward_data", [&] { return conv_transpose2d(from, back, {}, {.stride = 2, .padding = 1}); }},
      {"conv2d_backward_weights", [&] { return gradients(sum(conv2d(image, kernel, {}, {.padding = 1}) * seen), {kernel})[0]; }}};
  for (const auto& entry : programs) {
    const auto& op = entry.first;
    INFO(op);
    const auto by = [&](const exec::ForceSolver&) { return entry.second().to_vector<float>(); };
    const auto expected = by(exec::ForceSolver(op, exec::solver_names(op).back()));
    const bool packs = op == "conv2d" || op == "conv2d_backward_data";
    for (const std::string solver : packs ? std::vector{"gpu", "packed_gpu"} : std::vector{"gpu"}) {
      INFO(solver);
      const auto before = exec::statistics().kernels;
      const auto values = by(exec::ForceSolver(op, exec::Choice{solver, config}));
      CHECK(exec::statistics().kernels - before >= 3);
      REQUIRE(values.size() == expected.size());
      for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(values[i] == Approx(expected[i]).margin(2e-3));
    }
  }
}

TEST_CASE("all configurations of convolutions in strips", "[long]") {
  if (!Device::current().info().prefers_vector_kernels) return test::skip("the device is no CPU with vectors");
  manual_seed(12);
  const Tensor x = random({2, 7, 25, 18}), image = random({2, 3, 31, 26}), first = random({96, 7, 1, 1}),
               taps = random({96, 3, 3, 3}), filter = random({96, 1, 3, 3}), last = random({30, 96, 1, 1});
  for (const std::int64_t stride : {1, 2})
    for (const bool layer : {false, true})
      check_choices(
          "conv2d_strips",
          [&] {
            const Tensor a = layer ? conv2d(image, taps, {}, {.stride = 2, .padding = 1}) : conv2d(x, first);
            return conv2d(relu(conv2d(relu(a), filter, {}, {.stride = stride, .padding = 1, .groups = 96})), last);
          },
          1e-5);
}

TEST_CASE("all configurations of convolutions", "[long]") {
  manual_seed(2);
  struct Sizes {
    Shape x, weight;
    Conv2dFuncOptions options;
  };
  const std::vector<Sizes> all{
      {{3, 4, 9, 8}, {6, 4, 1, 1}, {.stride = 2}},
      {{3, 20, 14, 11}, {50, 20, 3, 3}, {.padding = 1}},
      {{2, 3, 17, 15}, {9, 3, 7, 5}, {.stride = 2, .padding = 3}},
      {{1, 64, 12, 10}, {70, 32, 3, 2}, {.stride = {2, 1}, .padding = {1, 0, 2, 1}, .dilation = {1, 2}, .groups = 2}},
      {{2, 5, 19, 13}, {10, 1, 5, 3}, {.stride = {2, 1}, .padding = {2, 1}, .groups = 5}},
      {{3, 6, 17, 9}, {6, 1, 3, 3}, {.stride = {3, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 6}},
      {{4, 3, 40, 30}, {3, 1, 3, 3}, {.padding = 1, .groups = 3}},
      // Tiles of Winograd's beyond the edges, more channels than a slice or a panel, and enough for parts of the sum.
      {{2, 7, 9, 12}, {5, 7, 3, 3}, {.padding = {2, 0, 1, 3}}},
      {{3, 70, 6, 5}, {37, 70, 3, 3}, {.padding = 1}},
      // Pixels of several strips, outputs of several panels.
      {{1, 7, 21, 19}, {40, 7, 1, 1}, {}},
      // Steps that leave rows of vectors, elements one by one, and whole rows in between.
      {{2, 19, 27, 39}, {40, 19, 1, 1}, {.stride = 2}},
      {{2, 5, 9, 70}, {6, 5, 1, 1}, {.stride = {2, 3}}},
      {{1, 6, 20, 33}, {8, 3, 1, 1}, {.stride = {1, 2}, .groups = 2}},
      {{1, 6, 20, 17}, {8, 6, 1, 1}, {.stride = {4, 1}, .padding = {0, 0, 3, 0}}},
      // Rows of whole vectors, and a rest.
      {{2, 1, 13, 75}, {8, 1, 3, 3}, {.padding = 1}},
      {{2, 2, 21, 77}, {2, 1, 3, 5}, {.padding = {1, 2}, .groups = 2}},
      // A plane that is no window of the first-level cache.
      {{1, 2, 90, 120}, {2, 1, 3, 3}, {.padding = 1, .groups = 2}},
  };
  for (const auto& sizes : all) {
    INFO(to_string(sizes.x) << " by " << to_string(sizes.weight));
    const Tensor x = random(sizes.x), w = random(sizes.weight), bias = random({sizes.weight[0]});
    const auto y = [&] { return conv2d(x, w, bias, sizes.options); };
    const Tensor g = random(y().shape());
    check_choices(
        "conv2d", [&] { return relu(y()); }, 1e-5);
    check_choices(
        "conv2d_backward_data", [&] { return gradients(sum(y() * g), {x})[0]; }, 1e-5);
    check_choices(
        "conv2d_backward_weights", [&] { return gradients(sum(y() * g), {w})[0]; }, 1e-5);
  }
}

TEST_CASE("all configurations of convolutions read nothing behind their tensors", "[long]") {
  manual_seed(14);
  struct Sizes {
    Shape x, weight;
    Conv2dFuncOptions options;
  };
  // Depthwise: a last row that no window sees, but the vectors of sums that are more than there are rows; planes of single
  // columns, and of whole rows in a vector. Then 1x1, and few channels.
  const std::vector<Sizes> all{
      {{1, 2, 20, 35}, {2, 1, 3, 3}, {.stride = 2, .groups = 2}},
      {{2, 3, 16, 21}, {3, 1, 3, 3}, {.stride = 2, .padding = {0, 0, 0, 2}, .groups = 3}},
      {{1, 3, 7, 5}, {3, 1, 3, 4}, {.padding = {1, 2, 1, 1}, .groups = 3}},
      {{2, 2, 33, 1}, {2, 1, 5, 1}, {.padding = {2, 0, 2, 0}, .groups = 2}},
      {{2, 7, 5, 7}, {5, 7, 1, 1}, {}},
      {{2, 5, 9, 39}, {6, 5, 1, 1}, {.stride = 2}},
      {{2, 3, 9, 41}, {10, 3, 3, 5}, {.stride = {1, 2}, .padding = {1, 2}}},
  };
  for (const auto& sizes : all) {
    INFO(to_string(sizes.x) << " by " << to_string(sizes.weight));
    const test::Guarded pixels(random(sizes.x).to_vector<float>()), weights(random(sizes.weight).to_vector<float>());
    const Tensor x = pixels.tensor(sizes.x), w = weights.tensor(sizes.weight);
    const auto y = [&] { return conv2d(x, w, {}, sizes.options); };
    const auto shape = y().shape();
    const test::Guarded seen(random(shape).to_vector<float>());
    const Tensor g = seen.tensor(shape);
    const auto gradient = [&](const Tensor& input) {
      const std::vector<Tensor> outputs{y()}, with{g}, inputs{input};
      return gradients(outputs, with, inputs)[0];
    };
    // As the device's memory is the host's on CPUs alone.
    check_choices("conv2d", y, 1e-5, 1, "cpu");
    check_choices(
        "conv2d_backward_data", [&] { return gradient(x); }, 1e-5, 1, "cpu");
    check_choices(
        "conv2d_backward_weights", [&] { return gradient(w); }, 1e-5, 1, "cpu");
  }
}

TEST_CASE("all configurations of transposed convolutions of lines, by pieces of rows", "[long]") {
  manual_seed(5);
  const Tensor x = random({2, 9, 460}), w = random({9, 18, 5}), scale = random({18, 1});
  check_choices(
      "conv2d_backward_data", [&] { return relu(conv_transpose1d(x, w, {}, {.stride = 2, .padding = 1})) * scale; }, 1e-5);
}

TEST_CASE("all configurations of convolutions of volumes", "[long]") {
  manual_seed(4);
  struct Sizes {
    Shape x, weight;
    Conv3dFuncOptions options;
  };
  const std::vector<Sizes> all{
      {{2, 5, 4, 9, 12}, {18, 5, 3, 3, 3}, {.padding = 1}},
      {{3, 2, 5, 7, 19}, {9, 2, 2, 3, 5}, {.stride = {1, 2, 1}, .padding = {0, 1, 2}}},
      {{2, 6, 7, 9, 8}, {6, 1, 1, 3, 3}, {.stride = {2, 1, 1}, .padding = {0, 1, 1}, .groups = 6}},
  };
  for (const auto& sizes : all) {
    INFO(to_string(sizes.x) << " by " << to_string(sizes.weight));
    const Tensor x = random(sizes.x), w = random(sizes.weight), bias = random({sizes.weight[0]});
    const Tensor scale = random({sizes.weight[0], 1, 1, 1});
    check_choices(
        "conv2d", [&] { return relu(conv3d(x, w, bias, sizes.options)) * scale; }, 1e-5);
    const Tensor g = random(conv3d(x, w, bias, sizes.options).shape());
    check_choices(
        "conv2d_backward_data", [&] { return gradients(sum(conv3d(x, w, bias, sizes.options) * g), {x})[0]; }, 1e-5);
  }
  const Tensor x = random({2, 5, 4, 9, 12}, Dtype::f16), w = random({18, 5, 3, 3, 3}, Dtype::f16);
  check_choices(
      "conv2d", [&] { return cast(relu(conv3d(x, w, {}, {.padding = 1})), Dtype::f32); }, 2e-3);
  const auto same = [](const Tensor& input, const Tensor& filters, const exec::Choice& choice) {
    INFO(choice.solver);
    const Tensor bias = random({filters.shape()[0]});
    const auto by = [&](const exec::ForceSolver&) {
      return relu(conv3d(input, filters, bias, {.padding = 1})).to_vector<float>();
    };
    const auto values = by(exec::ForceSolver("conv2d", choice)), expected = by(exec::ForceSolver("conv2d", "direct"));
    REQUIRE(values.size() == expected.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != Approx(expected[i]).margin(2e-3)) ++wrong;
    CHECK(wrong == 0);
  };
  // The sum in parts, each with the whole volume.
  same(random({2, 40, 3, 5, 6}), random({7, 40, 3, 3, 3}),
       {"gpu", {{"m", 16}, {"n", 16}, {"k", 8}, {"rows", 2}, {"columns", 2}, {"parts", 3}}});
  // Unfolded images of more than 64 MiB: two chunks, the second of which begins within the second volume.
  same(random({2, 4, 20, 64, 64}), random({4, 4, 3, 3, 3}), {"im2col", {}});
}

TEST_CASE("all configurations of running sums") {
  manual_seed(6);
  for (const auto& [shape, dim] : {std::pair{Shape{3, 2500}, 1}, {Shape{2, 1100, 3}, 1}, {Shape{70}, 0}}) {
    INFO(to_string(shape) << " along " << dim);
    const Tensor x = random(shape), g = random(shape);
    check_choices(
        "cumsum", [&, along = dim] { return cumsum(x, along); }, 1e-5);
    check_choices(
        "cumsum", [&, along = dim] { return gradients(sum(cumsum(x, along) * g), {x})[0]; }, 1e-5);
  }
}

TEST_CASE("all configurations of reductions") {
  manual_seed(7);
  // Rows and columns in one part and in several, and what one work-item of a row has more of than its registers hold.
  for (const auto& [shape, dim] :
       {std::pair{Shape{3, 70'000}, 1}, {Shape{130, 700}, 1}, {Shape{2, 5000, 3}, 1}, {Shape{9, 40, 300}, 1}}) {
    INFO(to_string(shape) << " along " << dim);
    const Tensor x = random(shape), integers = cast(x * 100.0, Dtype::i32).detach(), half = cast(x, Dtype::f16).detach();
    check_choices(
        "reduce", [&, along = dim] { return sum(x, {along}); }, 1e-5);
    check_choices(
        "reduce", [&, along = dim] { return max(half, {along}); }, 0);
    check_choices(
        "reduce", [&, along = dim] { return cast(sum(integers, {along}), Dtype::f32); }, 0);
    check_choices(
        "arg_reduce", [&, along = dim] { return cast(argmax(x, along), Dtype::f32); }, 0);
  }
}

TEST_CASE("all configurations of transposes and other copies") {
  manual_seed(11);
  for (const auto& [shape, order] : {std::pair{Shape{70, 131}, std::vector{1, 0}},
                                     {Shape{3, 65, 34}, {0, 2, 1}},
                                     {Shape{9, 10, 11, 130}, {2, 0, 1, 3}},
                                     {Shape{3, 8, 7, 5, 6}, {4, 1, 3, 0, 2}},
                                     {Shape{6, 1200}, {1, 0}},
                                     {Shape{2, 300, 40}, {2, 1, 0}}})
    for (const auto dtype : {Dtype::f32, Dtype::u8, Dtype::i64}) {
      INFO(to_string(shape) << " " << to_string(dtype));
      const Tensor x = cast(random(shape) * 9.0, dtype).detach();
      check_choices(
          "strided_copy", [&, &by = order] { return cast(permute(x, by), Dtype::f32); }, 0, 1);
    }
}

TEST_CASE("all configurations of elementwise kernels") {
  manual_seed(13);
  const Tensor x = random({40, 96}), row = random({96}), column = random({40, 1}), odd = random({7, 33}),
               half = random({64, 128}, Dtype::f16), planes = random({3, 5, 64, 16});
  const std::vector<Program> programs{[&] { return relu(x * 2.0) + exp(x); },
                                      [&] { return x * row + column; },
                                      [&] { return odd + 1.0; },
                                      [&] { return half * 3.0; },
                                      [&] {
                                        return planes * reshape(slice(row, 0, 0, 5), {5, 1, 1});
                                      },
                                      [&] {
                                        return expand(column, {40, 96}) * row;
                                      }};
  for (std::size_t i = 0; i < programs.size(); ++i) {
    INFO(i);
    check_choices(
        "elementwise", [&] { return cast(programs[i](), Dtype::f32); }, 0, 2);
  }
}

TEST_CASE("all configurations of pooling") {
  manual_seed(14);
  struct Sizes {
    Shape x;
    Pair kernel, stride = 1;
    Padding padding = 0;
  };
  // A GPU without vectors has one way of each.
  const std::size_t least = Device::current().info().prefers_vector_kernels ? 2 : 1;
  // Rows of whole vectors, some with a rest, and narrow ones.
  for (const auto& sizes : std::vector<Sizes>{{{2, 3, 20, 70}, 3, 2, 1},
                                              {{2, 3, 16, 64}, 2, 2},
                                              {{1, 2, 21, 45}, 3, 1, 1},
                                              {{3, 2, 9, 11}, {2, 3}, {2, 1}},
                                              {{2, 2, 40, 31}, {9, 5}, 3}}) {
    INFO(to_string(sizes.x));
    const Tensor x = random(sizes.x);
    const auto averages = [&] { return avg_pool2d(x, sizes.kernel, {.stride = sizes.stride, .padding = sizes.padding}); };
    const Tensor g = random(averages().shape());
    check_choices(
        "max_pool2d", [&] { return max_pool2d(x, sizes.kernel, {.stride = sizes.stride, .padding = sizes.padding}); }, 0, least);
    check_choices(
        "avg_pool2d", [&] { return relu(averages()); }, 1e-5, least);
    check_choices(
        "avg_pool2d_backward", [&] { return gradients(sum(averages() * g), {x})[0]; }, 1e-5, least);
  }
}

TEST_CASE("all configurations of an optimizer's steps") {
  manual_seed(15);
  for (const auto dtype : {Dtype::f32, Dtype::bf16}) {
    const auto tensors = [&](std::int64_t count) {
      return ops::UpdateTensors{random({count}, dtype), random({count}, dtype), {random({count}), rand({count}).detach()}};
    };
    // Whole chunks, a rest, and less than a vector.
    const std::vector<ops::UpdateTensors> all{tensors(3), tensors(32768), tensors(9001)};
    const auto number = [](double value) { return Tensor::scalar(value); };
    check_choices(
        "optimizer_update",
        [&] {
          const auto updated = ops::optimizer_update(ops::UpdateRule::adam, all, {0.01, 0.95, 1e-3, false},
                                                     {number(0.1), number(0.99), number(1.5), number(0.9), number(0.1), {}});
          Tensors flat;
          for (const auto& x : updated) flat.push_back(cast(x, Dtype::f32));
          return concat(flat, 0);
        },
        dtype == Dtype::f32 ? 1e-6 : 1e-2, 2);
  }
}

TEST_CASE("an optimizer's steps take memory that begins anywhere") {
  manual_seed(16);
  // Ends of pages, so that it begins at no multiple of a vector.
  constexpr std::int64_t count = 20001;
  const test::Guarded parameter(random({count}).to_vector<float>()), gradient(random({count}).to_vector<float>());
  const ops::UpdateTensors tensors{parameter.tensor({count}), gradient.tensor({count}), {}};
  const auto updated = [&](const char* solver) {
    const exec::ForceSolver force("optimizer_update", solver);
    const auto number = [](double value) { return Tensor::scalar(value); };
    return ops::optimizer_update(ops::UpdateRule::sgd, {tensors}, {0.01, 0, 0, false},
                                 {number(0.1), number(0.99), number(1), number(0), number(1), {}})[0]
        .to_vector<float>();
  };
  if (!Device::current().info().prefers_vector_kernels) return test::skip("solvers for CPUs");
  const auto vectors = updated("chunks_cpu"), elements = updated("direct");
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < vectors.size(); ++i) wrong += std::abs(vectors[i] - elements[i]) <= 1e-6F ? 0 : 1;
  CHECK(wrong == 0);
}

TEST_CASE("all configurations of adding at indices") {
  manual_seed(12);
  const auto indices = [](const Shape& shape, double below) { return cast(rand(shape) * below, Dtype::i32).detach(); };
  const Tensor table = random({37, 5}), many = indices({1500}, 36), one = zeros({700}, Dtype::i32).detach(),
               g = random({1500, 5});
  for (const auto& picks : {many, one, indices({1}, 30)}) {
    INFO(picks.numel());
    const Tensor of_picks = slice(g, 0, 0, picks.numel()).detach();
    check_choices(
        "index_add", [&] { return gradients(sum(embedding(picks, table) * of_picks), {table})[0]; }, 1e-5);
    for (const auto dtype : {Dtype::i32, Dtype::i64}) {
      INFO(to_string(dtype));
      const Tensor whole = cast(of_picks * 9.0, dtype).detach();
      check_choices(
          "index_add",
          [&] {
            return cast(index_add(zeros({37, 5}, dtype), 0, picks, whole), Dtype::f32);
          },
          0);
    }
  }
  const Tensor x = random({3, 20, 4}), at = indices({3, 900, 4}, 20), h = random({3, 900, 4}, Dtype::f16);
  check_choices(
      "index_add", [&] { return gradients(sum(cast(gather(x, 1, at), Dtype::f16) * h), {x})[0]; }, 1e-5);
}

TEST_CASE("all configurations of scattering and reducing") {
  manual_seed(14);
  for (const std::int64_t picks : {70, 1500}) {
    INFO(picks);
    const Tensor x = random({3, 20, 4}), at = cast(rand({3, picks, 4}) * 21.0, Dtype::i32).detach(),
                 source = random({3, picks, 4});
    check_choices(
        "last_picks", [&] { return scatter(x, 1, at, source); }, 0);
    for (const auto reduction : {ScatterReduction::amin, ScatterReduction::amax})
      check_choices(
          "scatter_reduce", [&] { return scatter_reduce(x, 1, at, source, reduction, reduction == ScatterReduction::amax); }, 0);
    const Tensor near_one = exp(source * 0.1).detach();
    check_choices(
        "scatter_reduce", [&] { return scatter_reduce(x, 1, at, near_one, ScatterReduction::prod); }, 1e-5);
  }
}

TEST_CASE("all configurations of softmax") {
  manual_seed(8);
  for (const auto& [shape, dim] : {std::pair{Shape{5, 3000}, 1}, {Shape{37, 300}, 1}, {Shape{3, 40, 70}, 1}}) {
    INFO(to_string(shape) << " along " << dim);
    const Tensor x = random(shape), g = random(shape);
    check_choices(
        "softmax", [&, along = dim] { return relu(softmax(x, along)) * g; }, 1e-5);
    check_choices(
        "softmax", [&, along = dim] { return log_softmax(cast(x, Dtype::bf16), along); }, 2e-2);
  }
  const Tensor logits = random({70, 300}), weight = rand({300});
  const Tensor targets = cast(rand({70}) * 300.0, Dtype::i32).detach();
  const auto losses = [&] {
    return cross_entropy(logits, targets, {.weight = weight, .label_smoothing = 0.1, .reduction = Reduction::none});
  };
  check_choices("cross_entropy", losses, 1e-5);
  // Only lanes vary.
  check_choices(
      "cross_entropy_backward", [&] { return gradients(sum(losses()), {logits})[0]; }, 1e-5, 1);
}

TEST_CASE("all configurations of normalisation") {
  manual_seed(9);
  for (const Shape& shape : {Shape{5, 3000}, Shape{90, 300}}) {
    INFO(to_string(shape));
    const Tensor x = random(shape), w = random({shape[1]}), bias = random({shape[1]}), g = random(shape);
    const auto y = [&] { return layer_norm(x, 1, w, bias); };
    check_choices(
        "layer_norm", [&] { return relu(y()); }, 1e-5);
    check_choices(
        "layer_norm",
        [&] {
          const auto all = gradients(sum(y() * g), {x, w, bias});
          return concat({flatten(all[0], 0), all[1], all[2]}, 0);
        },
        2e-5);
  }
  for (const Shape& shape : {Shape{3, 5, 60, 50}, Shape{4, 3, 47, 31}, Shape{70, 20}}) {
    INFO(to_string(shape));
    const Tensor x = random(shape), w = random({shape[1]}), bias = random({shape[1]}), g = random(shape);
    const auto y = [&] { return batch_norm_training(x, w, bias).y; };
    check_choices(
        "batch_norm", [&] { return relu(y()); }, 1e-5);
    check_choices(
        "batch_norm",
        [&] {
          const auto all = gradients(sum(y() * g), {x, w, bias});
          return concat({flatten(all[0], 0), all[1], all[2]}, 0);
        },
        2e-5);
  }
}

TEST_CASE("all configurations of recurrences", "[long]") {
  manual_seed(10);
  const std::int64_t steps = 3, batch = 13, hidden = 70;
  const Tensor h0 = random({batch, hidden}), c0 = random({batch, hidden}), g = random({steps, batch, hidden}),
               last = random({batch, hidden});
  // Sequences of no step, of some and of all.
  std::vector<std::int64_t> lengths(batch);
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = static_cast<std::int64_t>(i) % (steps + 1);
  const RecurrentOptions plain, reverse{.reverse = true, .lengths = Tensor::from(lengths)};
  for (const std::int64_t gates : {1, 2, 3, 4}) {
    const Tensor x = random({steps, batch, 9});
    const auto rows = (gates == 2 ? 1 : gates) * hidden;  // 2: relu instead of tanh
    const RecurrentWeights w{random({rows, 9}), random({rows, hidden}) * 0.1, {}, {}, {}};
    for (const auto& options : {plain, reverse}) {
      INFO(gates << " gates" << (options.reverse ? " in reverse" : ""));
      const auto all = [&](const Tensor& y, const Tensor& h, const Tensor& c) {
        Tensor loss = sum(y * g) + sum(h * last);
        if (c.defined()) loss = loss + sum(c * g);
        auto values =
            gradients(loss, c.defined() ? std::vector<Tensor>{x, h0, w.weight_hh, c0} : std::vector<Tensor>{x, h0, w.weight_hh});
        values.insert(values.end(), {y, h});
        for (auto& value : values) value = flatten(value, 0);
        return concat(values, 0);
      };
      check_choices(
          "recurrent",
          [&] {
            if (gates == 4) {
              const auto result = lstm_layer(x, h0, c0, w, options);
              return all(result.output, result.h, result.c);
            }
            const auto nonlinearity = gates == 2 ? Nonlinearity::relu : Nonlinearity::tanh;
            const auto result = gates == 3 ? gru_layer(x, h0, w, options) : rnn_layer(x, h0, w, nonlinearity, options);
            return all(result.output, result.h, {});
          },
          1e-5);
    }
  }
}

TEST_CASE("recurrences whose sums have more than a block", "[long]") {
  manual_seed(11);
  const std::int64_t batch = 2, hidden = 260;
  const Tensor x = random({2, batch, 3}), g = random({2, batch, hidden});
  const RecurrentWeights w{random({3 * hidden, 3}), random({3 * hidden, hidden}) * 0.1, {}, {}, {}};
  check_choices(
      "recurrent",
      [&] {
        const Tensor y = gru_layer(x, {}, w).output;
        return concat({flatten(y, 0), flatten(gradients(sum(y * g), {x})[0], 0)}, 0);
      },
      1e-5, 3, "gpu");
}

TEST_CASE("all configurations of attention", "[long]") {
  manual_seed(5);
  struct Sizes {
    Shape q, k, v;
    AttentionOptions options;
  };
  const std::vector<Sizes> all{
      {{1, 2, 70, 32}, {1, 2, 70, 32}, {1, 2, 70, 32}, {.causal = true}},
      // Rows of more than a slice and one that is no whole vector, heads that share keys.
      {{1, 4, 19, 7}, {1, 2, 67, 7}, {1, 2, 67, 40}, {.mask = random({4, 19, 67}), .dropout = 0.3}},
  };
  for (const auto& sizes : all) {
    INFO(to_string(sizes.q) << " to " << to_string(sizes.k));
    const Tensor q = random(sizes.q), k = random(sizes.k), v = random(sizes.v);
    // The same weights are dropped each time.
    const auto attention = ops::checked_attention(q, k, v, sizes.options);
    const Tensor g = random(sizes.q.with(-1, sizes.v[-1]));
    check_choices(
        "attention", [&] { return ops::streaming_attention(attention); }, 1e-5);
    // All three gradients of one evaluation.
    check_choices(
        "attention",
        [&] {
          const auto all_of = gradients(sum(ops::streaming_attention(attention) * g), {q, k, v});
          return concat({flatten(all_of[0], 0), flatten(all_of[1], 0), flatten(all_of[2], 0)}, 0);
        },
        2e-5);
  }
  // Few queries, whose solver makes no gradients, and keys of more than one tile.
  const Tensor q = random({1, 2, 3, 20}), k = random({1, 2, 150, 20}), v = random({1, 2, 150, 33});
  const auto few = ops::checked_attention(q, k, v, {.causal = true, .start = Tensor::scalar(140, Dtype::i64)});
  check_choices(
      "attention", [&] { return ops::streaming_attention(few); }, 1e-5);
}

TEST_CASE("gradients of strided convolutions run the taps that each phase has, in any parts") {
  struct Sizes {
    Shape x, weight;
    Conv2dFuncOptions options;
    std::vector<std::size_t> products;  // that are launched with the sums in 1, 2 and 4 parts
  };
  const std::vector<Sizes> all{
      // Phases of 4, 2, 2 and 1 taps; in order of k by channel and by tap.
      {{2, 7, 9, 12}, {5, 7, 3, 3}, {.stride = 2, .padding = 1}, {4, 5, 9}},
      {{1, 20, 12, 11}, {40, 20, 3, 3}, {.stride = 2, .padding = {0, 1, 2, 1}}, {4, 5, 9}},
      // One phase of four sees anything.
      {{2, 9, 5, 7}, {16, 9, 1, 1}, {.stride = 2}, {4, 2, 2}},
      {{2, 6, 8, 8}, {34, 3, 1, 1}, {.stride = 2, .padding = 1, .groups = 2}, {8, 4, 8}},
      // Rows in strides, columns that are dilated.
      {{1, 4, 13, 10}, {8, 4, 5, 2}, {.stride = {3, 1}, .padding = {2, 1}, .dilation = {1, 2}}, {3, 5, 10}},
      {{1, 6, 21, 10}, {12, 2, 2, 5}, {.stride = {5, 2}, .padding = {1, 3}, .groups = 3}, {30, 24, 42}},
      // Strides divide the kernel: all have as many.
      {{1, 4, 10, 9}, {8, 4, 4, 2}, {.stride = 2, .padding = 1}, {4, 8, 8}},
      // Rows that no output sees, and an image smaller than the stride.
      {{1, 4, 2, 3}, {24, 4, 3, 3}, {.stride = 4, .padding = 1}, {16, 18, 27}},
  };
  manual_seed(4);
  testing::ForcedRuns runs;
  for (const auto& sizes : all) {
    const Tensor x = random(sizes.x), w = random(sizes.weight);
    const Tensor g = random(conv2d(x, w, {}, sizes.options).shape());
    const auto gradient = [&] {
      const Tensor y = conv2d(x, w, {}, sizes.options);
      return gradients({&y, 1}, {&g, 1}, {&x, 1})[0];
    };
    const auto expected = [&] {
      const exec::ForceSolver reference("conv2d_backward_data", "direct");
      return gradient().to_vector<float>();
    }();
    for (std::size_t i = 0; i < 3; ++i) {
      const auto parts = std::int64_t{1} << i;
      for (const std::string solver : {"gpu", "packed_gpu"}) {
        INFO(to_string(sizes.x) << " by " << to_string(sizes.weight) << " in " << parts << " by " << solver);
        const exec::Choice choice{solver, {{"m", 16}, {"n", 16}, {"k", 8}, {"rows", 2}, {"columns", 2}, {"parts", parts}}};
        const exec::ForceSolver force("conv2d_backward_data", choice);
        // Parts of packed weights are of whole slices.
        if (solver == "gpu") CHECK(products_of(gradient()) == sizes.products[i]);
        std::vector<float> values;
        if (!runs.run("conv2d_backward_data", choice.text(), [&] { values = gradient().to_vector<float>(); })) continue;
        REQUIRE(values.size() == expected.size());
        for (std::size_t at = 0; at < expected.size(); ++at) REQUIRE(values[at] == Approx(expected[at]).margin(1e-4));
      }
    }
  }
  runs.check();
}

TEST_CASE("GPUs have weights in the order of their tiles in inference, and where one packing serves enough work") {
  using Kernels = std::vector<std::string>;
  const Kernels packed{"conv2d_pack_gpu", "conv2d_gpu"};
  nn::Conv2d layer{32, 8, 1};
  nn::ConvTranspose2d back{32, 8, 2, {.stride = 2}};
  const Tensor x = random({16, 32, 112, 112}), weight = layer.parameters().at(0).second;
  CHECK(kernels_on_gpu(relu(layer(x))) == packed);
  CHECK(kernels_on_gpu(relu(back(x))) == packed);
  // In training others read it, too, and next time it is another.
  const Tensor y = layer(x);
  const auto step = kernels_on_gpu(weight - 0.1 * gradients(sum(y * y), {weight})[0]);
  CHECK(std::count(step.begin(), step.end(), packed[0]) == 0);
  CHECK(std::count(step.begin(), step.end(), packed[1]) == 2);
  // 5 billion multiply-adds.
  const Tensor image = random({8, 64, 56, 56}), filter = random({64, 64, 7, 7});
  CHECK(kernels_on_gpu(conv2d(image, filter, {}, {.padding = 3})).front() == packed[0]);
}

TEST_CASE("GPUs transpose matrices through local memory") {
  using Kernels = std::vector<std::string>;
  CHECK(kernels_on_gpu(transpose(random({16, 70}), 0, 1)) == Kernels{"transpose_gpu"});
  CHECK(kernels_on_gpu(permute(random({2, 20, 9, 8}), {0, 2, 3, 1})) == Kernels{"transpose_gpu"});
  CHECK(kernels_on_gpu(transpose(random({15, 70}), 0, 1)) == Kernels{"strided_copy"});
  CHECK(kernels_on_gpu(transpose(random({20, 30, 40}), 0, 1)) == Kernels{"strided_copy"});
  CHECK(kernels_on_gpu(permute(random({20, 30, 40}), {2, 1, 0})) == Kernels{"strided_copy"});
}

TEST_CASE(
    "GPUs have kernels of their own for depthwise convolutions, those of 3x3, and for adding, reducing and placing at many "
    "indices") {
  using Kernels = std::vector<std::string>;
  const std::string depthwise = "conv2d_depthwise_gpu", add = "index_add_sorted";
  const Tensor x = random({16, 32, 112, 112}), w = random({32, 1, 3, 3}), wide = random({16, 576, 14, 14}),
               few = random({576, 1, 3, 3});
  const auto loss = [](const Tensor& image, const Tensor& filter, std::int64_t groups) {
    return sum(conv2d(image, filter, {}, {.padding = 1, .groups = groups}) * 1.5);
  };
  CHECK(kernels_on_gpu(conv2d(x, w, {}, {.stride = 2, .groups = 32})) == Kernels{depthwise});
  CHECK(kernels_on_gpu(gradients(loss(x, w, 32), {x})[0]).back() == depthwise);
  // Too few channels for all units, and enough.
  CHECK(kernels_on_gpu(gradients(loss(x, w, 32), {w})[0]).back() == "conv2d_sum_parts");
  CHECK(kernels_on_gpu(gradients(loss(wide, few, 576), {few})[0]).back() == depthwise);
  CHECK(kernels_on_gpu(conv2d(x, random({8, 32, 1, 1}))) == Kernels{"conv2d_gpu"});
  // Winograd's with what follows, where the transforms are worth it.
  const Kernels winograd{"conv2d_winograd_pack_gpu", "conv2d_winograd_gpu"};
  const Tensor image = random({16, 64, 56, 56}), filter = random({64, 64, 3, 3}), bias = random({64});
  CHECK(kernels_on_gpu(relu(conv2d(image, filter, bias, {.padding = 1}) + image)) == winograd);
  CHECK(kernels_on_gpu(gradients(loss(image, filter, 1), {image})[0]).back() == winograd.back());
  CHECK(kernels_on_gpu(gradients(loss(image, filter, 1), {filter})[0]).back() != winograd.back());
  CHECK(kernels_on_gpu(conv2d(random({1, 64, 4, 4}), random({512, 64, 3, 3}), {}, {.padding = 1})).back() != winograd.back());

  const auto gradient = [&](std::int64_t picks) {
    const Tensor words = zeros({50'000, 4}), y = embedding(zeros({picks}, Dtype::i32), words), g = ones(y.shape());
    return kernels_on_gpu(gradients({&y, 1}, {&g, 1}, {&words, 1})[0]);
  };
  const auto count = [&](const Kernels& kernels) { return std::count(kernels.begin(), kernels.end(), add); };
  CHECK(count(gradient(32'768)) == 6);
  CHECK(count(gradient(100)) == 0);

  // Few lines, and so many that each has a work-item.
  const auto largest = [&](std::int64_t lines, std::int64_t picks) {
    const Tensor at = zeros({lines, picks}, Dtype::i32), source = ones({lines, picks});
    return kernels_on_gpu(scatter_reduce(zeros({lines, 10}), 1, at, source, ScatterReduction::amax));
  };
  CHECK(count(largest(8, 1000)) == 5);
  CHECK(largest(8, 64).back() == "scatter_reduce");
  CHECK(largest(100'000, 100).back() == "scatter_reduce");
  const auto placed = kernels_on_gpu(scatter(zeros({10}), 0, zeros({1000}, Dtype::i32), ones({1000})));
  CHECK(count(placed) == 3);
  CHECK(std::count(placed.begin(), placed.end(), "last_picks") == 1);
}

TEST_CASE("a configuration that a problem does not have is refused") {
  const Tensor a = random({20, 20});
  const exec::ForceSolver force("matmul", "cpu{lanes=3}");
  CHECK_THROWS_AS(eval({matmul(a, a)}), Unsupported);
  const exec::ForceSolver groups("softmax", "gpu{group=3}");
  CHECK_THROWS_WITH(eval({softmax(a, 1)}),
                    Contains("softmax: solver gpu refuses: it has no configuration {group=3} here, but {group="));
}
