// What a saved network has of the module and of batches: weights, metadata, inputs, and graphs for one batch or for all.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/onnx/builder.h"
#include "tests/onnx/one_node.h"
#include "tests/onnx/save_checks.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;

namespace {

using In = const std::vector<Tensor>&;
using Out = std::vector<Tensor>;

/// Saved for `examples`, it computes the same for `other`, or refuses another batch.
void check_batches(const onnx::Function& f, const std::vector<Tensor>& examples, const std::vector<Tensor>& other, bool follows) {
  const Folder folder;
  onnx::save(f, examples, folder / "m.onnx");
  auto loaded = onnx::load(folder / "m.onnx");
  CHECK((loaded.inputs()[0].extents[0] == "batch") == follows);
  check_same(loaded.run(examples), f(examples), false);
  if (follows) check_same(loaded.run(other), f(other), false);
}

}  // namespace

TEST_CASE("a frozen network is saved with its weights", "[save]") {
  const Folder folder;
  Builder b;
  b.input("x", Type::f32, {-1, 2, 4}).output("y").initializer("w", {3, 2, 1}, {1, 2, 3, 4, 5, 6});
  b.initializer("scale", {3}, {1, 2, 3}).initializer("shift", {3}, {0, 1, 0});
  b.initializer("mean", {3}, {1, 0, 1}).initializer("var", {3}, {1, 2, 1});
  b.node("Conv", {"x", "w"}, {"c"}).node("BatchNormalization", {"c", "scale", "shift", "mean", "var"}, {"y"});
  auto model = loaded(b, 18);
  model.freeze();
  const Tensor x = eval_of(randn({2, 2, 4}));
  const Tensor before = eval_of(model(x));
  onnx::save(model, {x}, folder / "m.onnx");
  auto again = onnx::load(folder / "m.onnx");
  check_same({again(x)}, {before}, false);
  io::StateDict zero;
  for (const auto& [name, value] : again.state_dict()) zero.emplace_back(name, name == "w" ? zeros_like(value) : value);
  again.load_state_dict(zero);
  model.load_state_dict(zero);
  check_same({again(x)}, {model(x)}, false);
}

TEST_CASE("a part of the batch is no number of the graph", "[save]") {
  const auto quarter = [](In in) -> Out { return {slice(in[0], 0, 0, in[0].size(0) / 4)}; };
  check_batches(quarter, {eval_of(randn({8, 3}))}, {}, false);
}

TEST_CASE("a constant of one batch is not that of another", "[save]") {
  const Tensor a = eval_of(randn({4})), b = eval_of(randn({4}));
  const auto f = [a, b](In in) -> Out { return {(in[0] + a) * (in[0].size(0) == 2 ? a : b)}; };
  check_batches(f, {eval_of(randn({2, 4}))}, {}, false);
  const auto same = [a](In in) -> Out { return {(in[0] + a) * a}; };
  check_batches(same, {eval_of(randn({2, 4}))}, {eval_of(randn({3, 4}))}, true);
}

TEST_CASE("flags, texts, dtypes and momenta of one batch are not those of another", "[save]") {
  const Tensor image = eval_of(randn({2, 1, 4, 4})), rows = eval_of(randn({2, 3}));
  const auto flag = [](In in) -> Out { return {avg_pool2d(in[0], 2, {.padding = 1, .count_include_pad = in[0].size(0) == 2})}; };
  check_batches(flag, {image}, {}, false);
  const auto text = [](In in) -> Out {
    return {interpolate(in[0], {.size = {8, 8}, .mode = in[0].size(0) == 2 ? Interpolation::bilinear : Interpolation::bicubic})};
  };
  check_batches(text, {image}, {}, false);
  const auto dtype = [](In in) -> Out { return {cast(in[0], in[0].size(0) == 2 ? Dtype::i32 : Dtype::i64) * 2}; };
  check_batches(dtype, {rows}, {}, false);
  nn::BatchNorm1d one{3, {.momentum = 0.5}}, all{3, {.momentum = std::nullopt}};
  one.inference();
  all.inference();
  const auto momentum = [&](In in) -> Out { return {in[0].size(0) == 2 ? one(in[0]) : all(in[0])}; };
  check_batches(momentum, {rows}, {}, false);
}

TEST_CASE("heads that follow the batch share keys of one", "[save]") {
  const auto f = [](In in) -> Out { return {scaled_dot_product_attention(in[0], in[1], in[1])}; };
  check_batches(f, {eval_of(randn({6, 5, 8})), eval_of(randn({1, 7, 8}))}, {eval_of(randn({4, 5, 8})), eval_of(randn({1, 7, 8}))},
                true);
  check_batches(f, {eval_of(randn({6, 5, 8})), eval_of(randn({2, 7, 8}))}, {}, false);
}

TEST_CASE("norms over the batch are those of each batch", "[save]") {
  const Tensor x = eval_of(randn({4, 3, 2})), other = eval_of(randn({6, 3, 2}));
  check_batches([](In in) -> Out { return {layer_norm(reshape(in[0], {in[0].numel()}), 1, {}, {})}; }, {x}, {other}, true);
  check_batches([](In in) -> Out { return {group_norm(unsqueeze(in[0], 0), 1, {}, {})}; }, {x}, {other}, true);
  const auto channels = [](In in) -> Out {
    const Tensor y = unsqueeze(in[0], 0), sums = sum(in[0], {1, 2});
    return {batch_norm_inference(y, sums, square(sums), {}, {})};
  };
  check_batches(channels, {x}, {other}, true);
}

TEST_CASE("a kernel that follows the batch is saved for the examples'", "[save]") {
  const Tensor line = eval_of(randn({3, 1, 12}));
  const auto f = [line](In in) -> Out { return {conv1d(line, reshape(in[0], {1, 1, in[0].size(0)}))}; };
  check_batches(f, {eval_of(randn({4}))}, {}, false);
}

TEST_CASE("slices and rolls over the batch are those of each batch", "[save]") {
  const auto steps = [](In in) -> Out {
    const Tensor flat = reshape(in[0], {in[0].size(0) * 2});
    return {slice(flat, 0, 4, flat.size(0), 2)};
  };
  check_batches(steps, {eval_of(randn({5, 2}))}, {eval_of(randn({2, 2}))}, true);
  check_batches([](In in) -> Out { return {roll(in[0], {3}, {0})}; }, {eval_of(randn({5, 2}))}, {}, false);
}

TEST_CASE("a function that fails with another batch is saved for the examples'", "[save]") {
  const auto f = [](In in) -> Out {
    if (in[0].size(0) != 4) throw std::out_of_range("batch");
    return {in[0] * 2};
  };
  check_batches(f, {eval_of(randn({4, 2}))}, {}, false);
}

TEST_CASE("a saved Model keeps its metadata, and its parameters are no inputs", "[save]") {
  const Folder folder;
  nn::Sequential net{nn::Linear{3, 2}};
  onnx::save(net, {ones({2, 3})}, folder / "m.onnx", {.metadata = {{"labels", "cat,dog"}}});
  auto model = onnx::load(folder / "m.onnx");
  onnx::save(model, {ones({2, 3})}, folder / "again.onnx", {.metadata = {{"author", "somebody"}}});
  const auto text = content(folder / "again.onnx");
  CHECK(text.find("cat,dog") != std::string::npos);
  CHECK(text.find("somebody") != std::string::npos);

  Builder b;
  b.input("x", Type::f32, {-1, 3}).input("w", Type::f32, {3, 2}).output("y");
  b.initializer("w", {3, 2}, {1, 2, 3, 4, 5, 6}).node("MatMul", {"x", "w"}, {"y"});
  auto old = loaded(b, 18);
  onnx::save(old, {ones({2, 3}), ones({3, 2})}, folder / "old.onnx");
  auto saved = onnx::load(folder / "old.onnx");
  CHECK(saved.inputs().size() == 1);
  check_state(old, saved);
  CHECK(same_bits(saved(ones({5, 3})), old(ones({5, 3}))));
}
