// Saved graphs that random programs found to be wrong.
#include <catch2/catch.hpp>
#include <vector>

#include "tests/onnx/one_node.h"
#include "tests/onnx/save_checks.h"

using namespace clnet;
using namespace clnet::test;
using Catch::Contains;

namespace {

using Out = std::vector<Tensor>;

/// What load() makes of the saved function gives the same for these inputs.
onnx::Model check_again(const onnx::Function& f, const std::vector<Tensor>& inputs, double most = 1e-6) {
  const Folder folder;
  onnx::save(f, inputs, folder / "m.onnx");
  auto loaded = onnx::load(folder / "m.onnx");
  const auto want = f(inputs), got = loaded.run(inputs);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i, got[i].spec(), want[i].spec());
    CHECK(difference(got[i], want[i]) <= most);
  }
  return loaded;
}

Tensor counted(const Shape& shape, Dtype dtype = Dtype::f32) {
  return eval_of(reshape(sin(arange(shape.numel(), 0, 1, dtype) * 1.7) * 3.0, shape));
}

}  // namespace

TEST_CASE("a batch of 1 whose graph is another one is saved as it is", "[save]") {
  const auto squeezed = check_again([](const auto& in) { return Out{squeeze(in[0], 0)}; }, {counted({1})});
  CHECK(squeezed.inputs()[0].extents == std::vector<std::string>{"1"});
  check_again([](const auto& in) { return Out{slice(in[0], 0, 0, -2, -1)}; }, {counted({1})});
  const auto free = check_again([](const auto& in) { return Out{in[0] * 2}; }, {counted({1, 3})});
  CHECK(free.inputs()[0].extents[0] == "batch");
}

TEST_CASE("a saved slice_update drops what leads outside", "[save]") {
  const auto f = [](const std::vector<Tensor>& in) { return Out{slice_update(in[0], 1, in[2], in[1])}; };
  for (const std::int64_t place : {-3, -1, 0, 2, 3, 4, 9}) {
    CAPTURE(place);
    check_again(f, {counted({2, 4}), counted({2, 2}) + 10, Tensor::from({place}, {1})}, 0);
  }
}

TEST_CASE("a saved softplus has its threshold", "[save]") {
  check_again(
      [](const auto& in) {
        return Out{softplus(in[0], 1, 1.5), softplus(in[0], 2, 0.5), softplus(in[0])};
      },
      {counted({3, 5})});
}

TEST_CASE("saved adaptive pools divide each axis by its own rule", "[save]") {
  check_again(
      [](const auto& in) {
        return Out{adaptive_avg_pool2d(in[0], {2, 2}), adaptive_max_pool2d(in[0], {2, 2}), adaptive_max_pool2d(in[0], {4, 7})};
      },
      {counted({2, 3, 4, 5})});
  check_again([](const auto& in) { return Out{adaptive_max_pool3d(in[0], 3)}; }, {counted({1, 1, 6, 3, 5})});
}

TEST_CASE("saved pools that round up count no window behind the tensor", "[save]") {
  check_again(
      [](const auto& in) {
        const auto both = max_pool2d_with_indices(in[0], 2, {.stride = Pair(3), .ceil_mode = true});
        return Out{max_pool2d(in[0], 2, {.stride = Pair(3), .ceil_mode = true}),
                   both.y,
                   both.indices,
                   avg_pool2d(in[0], 2, {.stride = Pair(3), .ceil_mode = true}),
                   avg_pool2d(in[0], 2, {.stride = Pair(3), .padding = 1, .ceil_mode = true}),
                   avg_pool2d(in[0], 3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false})};
      },
      {counted({1, 2, 9, 7})});
  // A window that is longer than the tensor.
  check_again(
      [](const auto& in) {
        return Out{avg_pool1d(in[0], 3, {.stride = std::int64_t{2}, .ceil_mode = true}),
                   max_pool1d(in[0], 3, {.stride = std::int64_t{2}, .ceil_mode = true})};
      },
      {counted({3, 4, 2})});
}

TEST_CASE("attributes of f32 make no f64 less exact", "[save]") {
  if (!Device::current().info().fp64) return;
  check_again(
      [](const auto& in) {
        return Out{leaky_relu(in[0], 0.01), elu(in[0], 0.3),  celu(in[0], 0.3),
                   hardsigmoid(in[0]),      hardswish(in[0]), softplus(in[0])};
      },
      {counted({3, 5}, Dtype::f64)}, 1e-15);
}

TEST_CASE("weights of a loaded Resize are f64 beside f64", "[save]") {
  if (!Device::current().info().fp64) return;
  const InterpolateOptions options{.size = {9, 7}, .mode = Interpolation::bilinear, .antialias = true};
  check_again([&](const auto& in) { return Out{interpolate(in[0], options)}; }, {counted({2, 1, 5, 15}, Dtype::f64)}, 1e-15);
}

TEST_CASE("corners of antialiased images are no operator of ONNX", "[save]") {
  const Folder folder;
  const InterpolateOptions options{.size = {3, 3}, .mode = Interpolation::bilinear, .align_corners = true, .antialias = true};
  const onnx::Function f = [&](const auto& in) { return Out{interpolate(in[0], options)}; };
  CHECK_THROWS_WITH(onnx::save(f, {counted({1, 1, 7, 5})}, folder / "m.onnx"), Contains("has no operator of ONNX"));
}

TEST_CASE("a saved loss or histogram has no index outside", "[save]") {
  check_again([](const auto& in) { return Out{histc(in[0], 4, -1, 1)}; }, {counted({3, 5})}, 0);
  const Tensor targets = Tensor::from({1, 0, -1, 2, -1, 0}, {2, 3});
  check_again([](const auto& in) { return Out{multilabel_margin_loss(in[0], in[1])}; }, {counted({2, 3}), targets});
}

TEST_CASE("sign() of a NaN is 0 and ONNX's Sign of it NaN, saved or loaded", "[save]") {
  const auto values = [](Dtype dtype) { return cast(Tensor::from<float>({NAN, -NAN, -2, 0, 3, INFINITY}, {1, 6}), dtype); };
  for (const auto dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
    check_again([](const auto& in) { return Out{sign(in[0])}; }, {values(dtype)}, 0);
  const Tensor x = values(Dtype::f32);
  CHECK(sign(x).to_vector<float>() == std::vector<float>{0, 0, -1, 0, 1, 1});
  auto loaded = one_node("Sign", 1);
  const auto signs = Tensor::from<float>({NAN, NAN, -1, 0, 1, 1}, {1, 6});
  CHECK(difference(loaded(x), signs) == 0);
  // As one node again, however often.
  const Folder folder;
  onnx::save(loaded, {x}, folder / "m.onnx");
  auto again = onnx::load(folder / "m.onnx");
  CHECK(again.operators() == loaded.operators());
  CHECK(difference(again(x), signs) == 0);
}
