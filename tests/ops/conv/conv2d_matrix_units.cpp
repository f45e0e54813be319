// Convolutions by units that multiply small matrices: their emulation on CPUs, and which devices choose them.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "lib/cl/matrix_units.h"
#include "lib/exec/choose/solver.h"
#include "lib/ops/conv/conv2d.h"
#include "tests/ops/check.h"
#include "tests/support/gpu_info.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet;
using ops::Conv2dDirection;

namespace {

struct Shapes {
  Shape x, weight;
  Conv2dFuncOptions options;
};

/// Slices of one tap's channels, whole and ragged; few channels; strides of whose phases some have fewer taps; groups; more than
/// a tile.
std::vector<Shapes> all_shapes() {
  return {{{2, 16, 9, 7}, {24, 16, 3, 3}, {.padding = 1}},
          {{1, 70, 5, 6}, {33, 70, 1, 3}, {.padding = {0, 1}}},
          {{2, 3, 11, 8}, {9, 3, 3, 2}, {.padding = {1, 0, 2, 1}, .dilation = {1, 2}}},
          {{1, 20, 12, 10}, {18, 10, 3, 3}, {.stride = 2, .padding = 1, .groups = 2}},
          {{3, 17, 8, 5}, {40, 17, 1, 1}, {}},
          {{1, 9, 7, 6}, {48, 9, 3, 2}, {.stride = 2, .padding = 1}}};
}

/// Values of few digits, which every element holds: products and sums are exact, and results rounded once.
Tensor drawn(const Shape& shape, Dtype dtype, std::uint64_t seed) {
  auto values = testing::make_values({shape, -2, 2}, seed);
  for (auto& value : values.values) value = std::round(value * 4) / 4;
  return testing::to_tensor(values, dtype).detach();
}

/// With what follows elementwise.
Tensor run(Conv2dDirection direction, const Shapes& s, const Tensor& x, const Tensor& weight, const Tensor& bias,
           const Tensor& g) {
  if (direction == Conv2dDirection::forward) return relu(conv2d(x, weight, bias, s.options));
  const std::vector<Tensor> y{conv2d(x, weight, {}, s.options)}, given{g},
      wanted{direction == Conv2dDirection::backward_data ? x : weight};
  return relu(gradients(y, given, wanted)[0]);
}

const char* name_of(Conv2dDirection direction) {
  return direction == Conv2dDirection::forward         ? "conv2d"
         : direction == Conv2dDirection::backward_data ? "conv2d_backward_data"
                                                       : "conv2d_backward_weights";
}

constexpr std::array all_directions{Conv2dDirection::forward, Conv2dDirection::backward_data, Conv2dDirection::backward_weights};

ops::Conv2dProblem problem(Dtype dtype, std::int64_t channels = 64) {
  ops::Conv2dProblem p;
  p.n = 16, p.c = p.o = channels, p.h = p.w = p.oh = p.ow = 56, p.kh = p.kw = 3, p.top = p.left = 1, p.dtype = dtype;
  return p;
}

DeviceInfo gpu(const std::string& architecture, std::size_t sub_group = 32) {
  return clnet::test::gpu_info(architecture, sub_group, 80);
}

/// Each layout that the emulation has, or the unit of a GPU.
std::vector<exec::Config> layouts(Conv2dDirection direction) {
  return ops::conv2d_matrix_units_gpu_configs(problem(Dtype::f16), direction, Device::current().info());
}

bool runs_here(Dtype dtype) {
  const auto element = dtype == Dtype::f16 ? ocl::UnitElement::f16 : ocl::UnitElement::bf16;
  const auto refusal = ocl::matrix_unit_refusal(Device::current().info(), element);
  if (refusal) test::skip(*refusal);
  return !refusal;
}

void compare(Conv2dDirection direction, const Shapes& s, Dtype dtype, const exec::Choice& choice) {
  const auto x = drawn(s.x, dtype, 1), weight = drawn(s.weight, dtype, 2), bias = drawn({s.weight[0]}, dtype, 3);
  const auto g = drawn(conv2d(x, weight, {}, s.options).shape(), dtype, 4);
  const auto by = [&](const exec::ForceSolver&) {
    return cast(run(direction, s, x, weight, bias, g), Dtype::f32).to_vector<float>();
  };
  const auto expected = by(exec::ForceSolver(name_of(direction), "direct"));
  const auto values = by(exec::ForceSolver(name_of(direction), choice));
  CHECK(values == expected);
  if (direction == Conv2dDirection::backward_weights) return;
  const auto summed = direction == Conv2dDirection::forward ? s.weight[1] : s.weight[0] / s.options.groups;
  if (summed % 16 != 0 && summed < 64) return;  // elements of a slice are of different taps
  const auto packed = by(exec::ForceSolver(name_of(direction), exec::Choice{"packed_" + choice.solver, choice.config}));
  CHECK(packed == expected);
}

}  // namespace

TEST_CASE("convolutions by matrix units are those of the reference solver, by every layout") {
  for (const auto dtype : {Dtype::f16, Dtype::bf16}) {
    if (!runs_here(dtype)) continue;
    for (const auto direction : all_directions) {
      const auto all = layouts(direction);
      const auto shapes = all_shapes();
      for (std::size_t i = 0; i < shapes.size(); ++i)
        for (const auto& config : all) {
          const auto& s = shapes[i];
          // Of bf16 one layout is enough, as words lie alike; of the others two shapes.
          if (&config != &all.front() && (dtype == Dtype::bf16 || i >= 2)) continue;
          auto whole = exec::Choice{"matrix_units_gpu", config};
          INFO(to_string(dtype) << " " << name_of(direction) << " of " << to_string(s.x) << " and " << to_string(s.weight) << " "
                                << whole.text());
          compare(direction, s, dtype, whole);
        }
    }
  }
}

TEST_CASE("convolutions by matrix units in parts, and in every tile") {
  if (!runs_here(Dtype::f16)) return;
  if (ocl::matrix_unit(Device::current().info())->wave != 32) return test::skip("the tiles are for waves of 32");
  const Shapes s{{2, 48, 10, 13}, {130, 48, 3, 3}, {.stride = {1, 2}, .padding = 1}};
  for (const auto direction : all_directions)
    for (const auto& [m, rows, columns] : {std::array<std::int64_t, 3>{128, 64, 32}, {64, 32, 32}, {32, 16, 16}})
      for (const std::int64_t parts : {1, 3}) {
        if (parts > 1 && m > 32) continue;
        const exec::Choice choice{"matrix_units_gpu",
                                  {{"m", m}, {"n", m}, {"k", 16}, {"rows", rows}, {"columns", columns}, {"parts", parts}}};
        INFO(name_of(direction) << " " << choice.text());
        compare(direction, s, Dtype::f16, choice);
      }
}

TEST_CASE("convolutions of f16 and bf16 go to matrix units on devices that have them") {
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  for (const auto direction : all_directions) {
    INFO(name_of(direction));
    const auto refusal = [&](Dtype dtype, const DeviceInfo& device) {
      return ops::conv2d_matrix_units_gpu_rejects(problem(dtype), direction, device).value_or("");
    };
    CHECK(refusal(Dtype::f16, gpu("sm_86")).empty());
    CHECK(refusal(Dtype::bf16, gpu("sm_90")).empty());
    CHECK(refusal(Dtype::f16, gpu("sm_75")).empty());
    CHECK_FALSE(refusal(Dtype::bf16, gpu("sm_75")).empty());
    CHECK_FALSE(refusal(Dtype::f16, gpu("sm_61")).empty());
    CHECK(refusal(Dtype::bf16, gpu("gfx90a", 64)).empty());
    CHECK(refusal(Dtype::f32, gpu("sm_86")) == "f32 is not rounded for matrix units");
    auto small = gpu("sm_86");
    small.local_memory = 1 << 10;
    CHECK_THAT(refusal(Dtype::f16, small), Catch::Contains("no tile"));
    CHECK_FALSE(ops::conv2d_matrix_units_gpu_declines(problem(Dtype::f16), direction, gpu("sm_86")).has_value());
    CHECK(ops::conv2d_matrix_units_gpu_declines(problem(Dtype::f16, 2), direction, gpu("sm_86")).has_value());
    // Groups of the largest tile are alone on an SM, but not where weights come in the order of the tile.
    CHECK(ops::conv2d_matrix_units_gpu_configs(problem(Dtype::f16), direction, gpu("sm_86"))[0]["m"] == 64);
    if (direction == Conv2dDirection::backward_weights) continue;
    CHECK(ops::conv2d_matrix_units_gpu_configs(problem(Dtype::f16, 128), direction, gpu("sm_86"))[0]["m"] == 64);
    CHECK(ops::conv2d_packed_matrix_units_gpu_configs(problem(Dtype::f16, 128), direction, gpu("sm_86"))[0]["m"] == 128);
  }
}
