// 1x1, depthwise and 1x1 in one pass: what it computes, and where it must not be taken.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/fuse/fusion.h"
#include "lib/exec/lower/lower.h"
#include "lib/graph/op.h"
#include "tests/ops/check.h"
#include "tests/support/skip.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

constexpr const char* list = "conv2d_strips";

struct Sizes {
  Shape x;
  std::int64_t channels, out;
  Pair kernel = 3;
  Conv2dFuncOptions depthwise = {.padding = 1};
  bool biased = false;
  Pair first_kernel = 1;
  Conv2dFuncOptions first = {};
};

/// Whole vectors of 4, 8 and 16 lanes, and one, two or three of them at a time.
const std::vector<Sizes> all_sizes{
    {{1, 3, 9, 7}, 48, 5},
    {{2, 17, 14, 14}, 32, 33, 3, {.padding = 1}, true},
    {{3, 5, 15, 11}, 64, 16, 3, {.stride = 2, .padding = 1}},
    {{1, 9, 7, 6}, 16, 70, 3, {.padding = 1}, true},
    // Fewer pixels than a tile has, in one dimension or in both.
    {{2, 4, 2, 2}, 48, 20},
    {{1, 4, 1, 3}, 16, 3},
    {{2, 6, 40, 3}, 32, 24, 3, {.stride = 2, .padding = 1}},
    // Padding on some sides only, none, and more than the kernel needs.
    {{1, 5, 10, 13}, 16, 8, 3, {.padding = {0, 2, 1, 0}}},
    {{1, 5, 10, 9}, 32, 8, 3, {.stride = 2, .padding = 0}},
    {{2, 5, 6, 5}, 16, 8, 3, {.padding = 4}, true},
    {{1, 7, 12, 17}, 48, 18, {5, 2}, {.stride = 2, .padding = {2, 1, 2, 0}}},
    // Sums in blocks, and strips of which the last one is lower.
    {{1, 20, 33, 19}, 288, 40},
    // A first one that is not 1x1: its window is staged.
    {{2, 3, 21, 30}, 32, 16, 3, {.padding = 1}, false, 3, {.stride = 2, .padding = 1}},
    {{1, 5, 9, 7}, 48, 20, 3, {.stride = 2, .padding = 1}, true, {3, 2}, {.padding = {1, 0, 2, 1}}},
    {{1, 3, 64, 5}, 16, 9, 3, {.padding = 1}, true, 5, {.stride = 2, .padding = 3}},
    {{2, 7, 6, 9}, 16, 4, 3, {.padding = 0}, false, 1, {.stride = 2}},
};

struct Weights {
  Tensor x, first, filter, last, scale, shift, out_scale;
  Tensor biases[3];
};

Weights weights_of(const Sizes& s, Dtype dtype = Dtype::f32) {
  const auto c = s.x[1];
  const auto made = [&](const Shape& shape, std::uint64_t seed) { return cast(make_tensor(shape, seed), dtype).detach(); };
  Weights w{made(s.x, 1),
            made({s.channels, c / s.first.groups, s.first_kernel.height, s.first_kernel.width}, 2),
            made({s.channels, 1, s.kernel.height, s.kernel.width}, 3),
            made({s.out, s.channels, 1, 1}, 4),
            made({s.channels, 1, 1}, 5),
            made({s.channels, 1, 1}, 6),
            made({s.out, 1, 1}, 7),
            {}};
  if (s.biased)
    for (int k = 0; k < 3; ++k) w.biases[k] = made({k < 2 ? s.channels : s.out}, static_cast<std::uint64_t>(8 + k));
  return w;
}

Tensor depthwise(const Tensor& x, const Sizes& s, const Weights& w) {
  auto options = s.depthwise;
  options.groups = static_cast<int>(s.channels);
  return conv2d(x, w.filter, w.biases[1], options);
}

Tensor expanded(const Sizes& s, const Weights& w) { return conv2d(w.x, w.first, w.biases[0], s.first); }
Tensor projected(const Tensor& x, const Weights& w) { return conv2d(x, w.last, w.biases[2]); }

/// As in MobileNet.
Tensor block(const Sizes& s, const Weights& w) {
  const Tensor a = relu6(expanded(s, w) * w.scale + w.shift), b = relu6(depthwise(a, s, w) * w.scale + 0.5);
  return projected(b, w) * w.out_scale;
}

/// Launches of the pass in what would be recorded.
int passes(const Tensors& wanted) {
  const auto recording = exec::lower(exec::Subgraph(exec::collect(wanted)), Device::current().info()).recording;
  int count = 0;
  for (const auto& command : recording.commands())
    if (const auto* launch = std::get_if<exec::Launch>(&command)) count += launch->function() == "conv2d_strips_cpu" ? 1 : 0;
  return count;
}

bool serves() { return Device::current().info().prefers_vector_kernels; }

using Program = std::function<Tensor()>;

/// The pass against the reference solver of convolutions, one after the other.
void check_pass(const Program& program) {
  const exec::ForceSolver strips(list, "cpu");
  CHECK(passes({program()}) == 1);
  const auto got = to_array(program());
  const exec::ForceSolver reference("conv2d", "direct");
  CHECK(passes({program()}) == 0);
  compare("y", got, to_array(program()), 2e-5);
}

}  // namespace

TEST_CASE("1x1, depthwise and 1x1 in strips are what they are one after the other") {
  if (!serves()) return test::skip("the device is no CPU with vectors");
  for (const auto& sizes : all_sizes) {
    INFO(to_string(sizes.x) << " to " << sizes.channels << " and " << sizes.out << " channels, " << sizes.kernel.height << "x"
                            << sizes.kernel.width);
    const auto w = weights_of(sizes);
    check_pass([&] { return block(sizes, w); });
    if (!all_wanted() && &sizes - all_sizes.data() > 3) continue;
    check_pass([&] { return projected(depthwise(expanded(sizes, w), sizes, w), w); });
    check_pass([&] {
      const Tensor y = block(sizes, w);
      return relu(y + make_tensor(y.shape(), 20));
    });
    check_pass([&] { return tanh(projected(silu(depthwise(relu(expanded(sizes, w)), sizes, w)), w)); });
  }
}

TEST_CASE("a residual that the pass itself begins with is added to what it makes") {
  if (!serves()) return test::skip("the device is no CPU with vectors");
  const Sizes sizes{{2, 24, 15, 15}, 96, 24};
  const auto w = weights_of(sizes);
  check_pass([&] { return block(sizes, w) + w.x; });
  // Also where the input's memory could be taken for the result's.
  auto of_made = w;
  check_pass([&] {
    of_made.x = w.x * 0.5 + 1.0;
    return block(sizes, of_made) + of_made.x;
  });
}

TEST_CASE("the pass is not taken where somebody else needs what lies between") {
  if (!serves()) return test::skip("the device is no CPU with vectors");
  const exec::ForceSolver strips(list, "cpu");
  const Sizes sizes{{2, 8, 10, 9}, 32, 12};
  const auto w = weights_of(sizes);
  const Tensor a = relu(expanded(sizes, w)), b = relu(depthwise(a, sizes, w)), y = projected(b, w);
  CHECK(passes({y}) == 1);
  // As a result, by another operation, in part, or in another shape.
  CHECK(passes({y, a}) == 0);
  CHECK(passes({y, b}) == 0);
  CHECK(passes({y, sum(b)}) == 0);
  CHECK(passes({y, slice(a, 1, 0, 3)}) == 0);
  CHECK(passes({y, reshape(b, {-1})}) == 0);
  CHECK(passes({sum(y + projected(b, w))}) == 0);
  // Gradients need both.
  CHECK(passes(gradients(sum(y), {w.first})) == 0);
  // Elements that differ within a channel, and an activation that is read as a whole tensor.
  CHECK(passes({projected(depthwise(a * make_tensor(a.shape(), 30), sizes, w), w)}) == 0);
  CHECK(passes({projected(depthwise(a * make_tensor({1, 1, 10, 9}, 31), sizes, w), w)}) == 0);
  {
    const exec::NoFusion none;
    CHECK(passes({y}) == 0);
  }
  // The values are right in any case.
  Tensors both{y, b};
  eval(both);
  const exec::ForceSolver reference("conv2d", "direct");
  compare("y", to_array(both[0]), to_array(projected(relu(depthwise(relu(expanded(sizes, w)), sizes, w)), w)), 2e-5);
}

TEST_CASE("convolutions that are no such three, or in narrow types, stay apart") {
  if (!serves()) return test::skip("the device is no CPU with vectors");
  const auto refused = [](const Sizes& sizes, Dtype dtype = Dtype::f32) {
    const auto w = weights_of(sizes, dtype);
    INFO(to_string(sizes.x) << " " << sizes.channels);
    CHECK(passes({block(sizes, w)}) == 0);
    const exec::ForceSolver strips(list, "cpu");
    CHECK_THROWS_AS(passes({block(sizes, w)}), Unsupported);
  };
  refused({{1, 3, 9, 7}, 50, 5});
  refused({{1, 3, 9, 7}, 48, 5}, Dtype::f16);
  refused({{1, 3, 9, 7}, 48, 5}, Dtype::bf16);
  refused({{1, 300, 9, 7}, 48, 5});
  refused({{1, 3, 9, 7}, 48, 5, 3, {.padding = 2, .dilation = 2}});
  refused({{1, 3, 9, 9}, 48, 5, 3, {.stride = 3, .padding = 1}});
  refused({{1, 3, 9, 9}, 48, 5, 3, {.padding = 1}, false, 3, {.padding = 2, .dilation = 2}});
  refused({{1, 3, 9, 9}, 48, 5, 3, {.padding = 1}, false, 2, {.stride = {1, 2}}});
  refused({{1, 48, 9, 9}, 48, 5, 3, {.padding = 1}, false, 1, {.groups = 2}});
}

TEST_CASE("a weight that changes is seen by the next pass") {
  if (!serves()) return test::skip("the device is no CPU with vectors");
  const Sizes sizes{{1, 8, 10, 9}, 32, 12};
  auto w = weights_of(sizes);
  const exec::ForceSolver strips(list, "cpu");
  const auto before = to_array(block(sizes, w));
  for (auto* weight : {&w.first, &w.filter, &w.last}) {
    *weight = (*weight * 2.0).detach();
    const auto got = to_array(block(sizes, w));
    const exec::ForceSolver reference("conv2d", "direct");
    compare("y", got, to_array(block(sizes, w)), 2e-5);
    CHECK(got.values != before.values);
  }
}

TEST_CASE("a MobileNet's inference takes the pass, and its training does not") {
  if (!serves()) return test::skip("the device is no CPU with vectors");
  const auto net = models::make("mobilenetv2", {3, 64, 64}, 10);
  net->inference();
  const Tensor x = make_tensor({1, 3, 64, 64}, 3);
  const Tensor y = (*net)(x);
  // How many depends on the number of cores.
  CHECK(passes({y}) >= 1);
  const auto got = to_array(y);
  const exec::ForceSolver apart(list, "apart");
  CHECK(passes({(*net)(x)}) == 0);
  compare("y", got, to_array((*net)(x)), 1e-4);
}
