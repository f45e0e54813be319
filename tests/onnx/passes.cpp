// Passes over ONNX graphs: the patterns are found, and give what the nodes give.
#include "lib/onnx/passes.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/onnx.h"
#include "tests/onnx/builder.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;

namespace {

onnx::Model with_passes(const Builder& builder, bool passes, std::int64_t opset = 17) {
  const Folder folder;
  return onnx::load(folder.write("model.onnx", builder.model(opset)), {.passes = passes});
}

/// The graph after passes.
std::shared_ptr<const onnx::Program> passed(const Builder& builder, std::int64_t opset = 17) {
  static std::vector<std::shared_ptr<onnx::ModelFile>> files;  // texts of the graph point into them
  files.push_back(std::make_shared<onnx::ModelFile>(onnx::read_model(builder.model(opset), "model.onnx")));
  std::vector<onnx::MissingOperator> missing;
  return onnx::optimized(onnx::resolve(*files.back(), missing));
}

std::size_t fusions(const onnx::Program& program) {
  std::size_t count = 0;
  for (const auto& instruction : program.instructions) count += instruction.fusion ? 1 : 0;
  return count;
}

std::vector<double> values(const Shape& shape, double scale = 1) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < shape.numel(); ++i) out.push_back(scale * std::sin(1.7 * static_cast<double>(i) + 0.3));
  return out;
}
Tensor tensor(const Shape& shape, double scale = 1) { return Tensor::from(values(shape, scale), shape).to(Dtype::f32); }

/// Both ways to compute the network agree, and differ from the reference by rounding only.
void check_both(const Builder& builder, const std::vector<Tensor>& inputs, const std::vector<double>& expected,
                std::int64_t opset = 17) {
  for (const bool passes : {false, true}) {
    CAPTURE(passes);
    auto model = with_passes(builder, passes, opset);
    const auto y = model.run(inputs)[0].to_vector<double>();
    REQUIRE(y.size() == expected.size());
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(expected[i]).epsilon(1e-4).margin(1e-5));
  }
}

Builder norm(bool by_product = false, std::int64_t axis = -1) {
  Builder b;
  b.initializer("two", {}, {2}).initializer("eps", {}, {1e-5}).initializer("weight", {3}, {1, 0.5, -2});
  b.initializer("bias", {3}, {0.25, 0, 1}).input("x").output("y");
  b.node("ReduceMean", {"x"}, {"mean"}, {attribute("axes", std::vector<std::int64_t>{axis})});
  b.node("Sub", {"x", "mean"}, {"difference"});
  if (by_product)
    b.node("Mul", {"difference", "difference"}, {"square"});
  else
    b.node("Pow", {"difference", "two"}, {"square"});
  b.node("ReduceMean", {"square"}, {"variance"}, {attribute("axes", std::vector<std::int64_t>{axis})});
  b.node("Add", {"variance", "eps"}, {"sum"}).node("Sqrt", {"sum"}, {"root"}).node("Div", {"difference", "root"}, {"normed"});
  return b.node("Mul", {"normed", "weight"}, {"scaled"}).node("Add", {"bias", "scaled"}, {"y"});
}

std::vector<double> norm_of(const std::vector<double>& x) {
  const double weight[] = {1, 0.5, -2}, bias[] = {0.25, 0, 1};
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size(); row += 3) {
    const double mean = (x[row] + x[row + 1] + x[row + 2]) / 3;
    double variance = 0;
    for (std::size_t i = 0; i < 3; ++i) variance += (x[row + i] - mean) * (x[row + i] - mean) / 3;
    for (std::size_t i = 0; i < 3; ++i) y.push_back((x[row + i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i]);
  }
  return y;
}

}  // namespace

TEST_CASE("the nodes of a layer norm are one operation") {
  for (const bool by_product : {false, true}) {
    const auto b = norm(by_product);
    const auto program = passed(b);
    CHECK(program->instructions.size() == 1);
    CHECK(fusions(*program) == 1);
    check_both(b, {tensor({2, 3}, 3)}, norm_of(values({2, 3}, 3)));
  }
}

TEST_CASE("a pattern that does not fit a run's shapes runs node by node") {
  // The mean along the first dimension is no layer norm.
  const auto b = norm(false, 0);
  CHECK(fusions(*passed(b)) == 1);
  const Tensor x = tensor({2, 3});
  CHECK(with_passes(b, true).run({x})[0].to_vector<float>() == with_passes(b, false).run({x})[0].to_vector<float>());
}

TEST_CASE("values between that others read are no pattern") {
  auto b = norm();
  b.output("difference");
  CHECK(fusions(*passed(b)) == 0);
}

TEST_CASE("parameters of a pattern train, are exchanged, and get gradients in inference") {
  const auto b = norm();
  auto model = with_passes(b, true), plain = with_passes(b, false);
  const Tensor x = tensor({2, 3}, 3);
  const auto before = model(x).to_vector<float>();
  model.parameter("weight").set(Tensor::from({2.0F, 2.0F, 2.0F}));
  plain.load_state_dict(model.state_dict());
  const auto after = model(x).to_vector<double>(), expected = plain(x).to_vector<double>();
  CHECK(model(x).to_vector<float>() != before);
  for (std::size_t i = 0; i < after.size(); ++i) CHECK(after[i] == Approx(expected[i]).margin(1e-5));
  const auto gradient_of = [&](onnx::Model& of) {
    return gradients((of(x) * of(x)).sum(), of.parameters())[0].to_vector<double>();
  };
  const auto a = gradient_of(model), c = gradient_of(plain);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(c[i]).epsilon(1e-3).margin(1e-4));
  // Training computes the file's own nodes, to the bit.
  model.train();
  CHECK(model(x).to_vector<float>() == plain(x).to_vector<float>());
}

TEST_CASE("GELU by erf is one operation in each order of its factors") {
  for (int form = 0; form < 3; ++form) {
    CAPTURE(form);
    Builder b;
    b.initializer("root", {}, {form == 2 ? 1 / std::numbers::sqrt2 : std::numbers::sqrt2});
    b.initializer("one", {}, {1}).initializer("half", {}, {0.5}).input("x").output("y");
    b.node(form == 2 ? "Mul" : "Div", {"x", "root"}, {"scaled"}).node("Erf", {"scaled"}, {"erf"});
    b.node("Add", {"erf", "one"}, {"sum"});
    if (form == 0) b.node("Mul", {"x", "sum"}, {"product"}).node("Mul", {"product", "half"}, {"y"});
    if (form == 1) b.node("Mul", {"half", "x"}, {"product"}).node("Mul", {"product", "sum"}, {"y"});
    if (form == 2) b.node("Mul", {"sum", "half"}, {"product"}).node("Mul", {"x", "product"}, {"y"});
    CHECK(passed(b)->instructions.size() == 1);
    std::vector<double> expected;
    for (const auto x : values({7}, 3)) expected.push_back(0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)));
    check_both(b, {tensor({7}, 3)}, expected);
  }
}

TEST_CASE("GELU by tanh is one operation") {
  for (const bool by_products : {false, true}) {
    Builder b;
    b.initializer("c", {}, {0.044715}).initializer("d", {}, {std::sqrt(2 / std::numbers::pi)}).initializer("three", {}, {3});
    b.initializer("one", {}, {1}).initializer("half", {}, {0.5}).input("x").output("y");
    if (by_products)
      b.node("Mul", {"x", "x"}, {"square"}).node("Mul", {"square", "x"}, {"cube"});
    else
      b.node("Pow", {"x", "three"}, {"cube"});
    b.node("Mul", {"cube", "c"}, {"part"}).node("Add", {"x", "part"}, {"inner"}).node("Mul", {"inner", "d"}, {"scaled"});
    b.node("Tanh", {"scaled"}, {"tanh"}).node("Add", {"tanh", "one"}, {"sum"});
    b.node("Mul", {"x", "half"}, {"product"}).node("Mul", {"product", "sum"}, {"y"});
    CHECK(passed(b)->instructions.size() == 1);
    std::vector<double> expected;
    for (const auto x : values({7}, 3))
      expected.push_back(0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))));
    check_both(b, {tensor({7}, 3)}, expected);
  }
}

TEST_CASE("other numbers are no GELU") {
  Builder b;
  b.initializer("root", {}, {1.5}).initializer("one", {}, {1}).initializer("half", {}, {0.5}).input("x").output("y");
  b.node("Div", {"x", "root"}, {"scaled"}).node("Erf", {"scaled"}, {"erf"}).node("Add", {"erf", "one"}, {"sum"});
  b.node("Mul", {"x", "sum"}, {"product"}).node("Mul", {"product", "half"}, {"y"});
  std::vector<double> expected;
  for (const auto x : values({7})) expected.push_back(0.5 * x * (1 + std::erf(x / 1.5)));
  check_both(b, {tensor({7})}, expected);
}

namespace {

constexpr std::int64_t heads = 2, queries = 3, keys = 4, width = 2;

/// softmax(q k' factor + mask) v for {1, heads, length, width}.
std::vector<double> attention_of(double factor, const std::function<double(std::int64_t, std::int64_t)>& mask) {
  const auto q = values({1, heads, queries, width}), k = values({1, heads, keys, width}, 2),
             v = values({1, heads, keys, width}, 3);
  std::vector<double> y;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < queries; ++i) {
      std::vector<double> weights;
      double sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        double score = 0;
        for (std::int64_t d = 0; d < width; ++d)
          score += q[static_cast<std::size_t>((h * queries + i) * width + d)] *
                   k[static_cast<std::size_t>((h * keys + j) * width + d)];
        weights.push_back(std::exp(score * factor + mask(i, j)));
        sum += weights.back();
      }
      for (std::int64_t d = 0; d < width; ++d) {
        double value = 0;
        for (std::int64_t j = 0; j < keys; ++j)
          value += weights[static_cast<std::size_t>(j)] / sum * v[static_cast<std::size_t>((h * keys + j) * width + d)];
        y.push_back(value);
      }
    }
  return y;
}

std::vector<Tensor> attention_inputs() {
  return {tensor({1, heads, queries, width}), tensor({1, heads, keys, width}, 2), tensor({1, heads, keys, width}, 3)};
}

const std::string swaps = attribute("perm", std::vector<std::int64_t>{0, 1, 3, 2});

}  // namespace

TEST_CASE("the nodes of an attention are one operation") {
  Builder b;
  b.initializer("scale", {}, {2}).initializer("mask", {3, 4}, {0, -1, 0, 0, -3, 0, 0, 1, 0, 0, 2, 0});
  b.input("q").input("k").input("v").output("y");
  b.node("Transpose", {"k"}, {"columns"}, {swaps}).node("MatMul", {"q", "columns"}, {"products"});
  b.node("Div", {"products", "scale"}, {"scores"}).node("Add", {"scores", "mask"}, {"masked"});
  b.node("Softmax", {"masked"}, {"weights"}, {attribute("axis", std::int64_t{-1})}).node("MatMul", {"weights", "v"}, {"y"});
  CHECK(passed(b)->instructions.size() == 1);
  const double mask[3][4] = {{0, -1, 0, 0}, {-3, 0, 0, 1}, {0, 0, 2, 0}};
  check_both(b, attention_inputs(), attention_of(0.5, [&](auto i, auto j) { return mask[i][j]; }));
}

TEST_CASE("queries and keys of an attention may have the scale, and a choice the mask") {
  for (const bool allows : {false, true}) {
    Builder b;
    b.initializer("root", {}, {0.75}).initializer("none", {}, {-INFINITY});
    std::vector<double> chosen;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j) chosen.push_back((j <= i + 1) == allows ? 1 : 0);
    b.initializer("chosen", {3, 4}, chosen, Type::boolean);
    b.input("q").input("k").input("v").output("y");
    b.node("Mul", {"q", "root"}, {"scaled_q"}).node("Transpose", {"k"}, {"columns"}, {swaps});
    b.node("Mul", {"columns", "root"}, {"scaled_k"}).node("MatMul", {"scaled_q", "scaled_k"}, {"scores"});
    b.node("Where", {"chosen", allows ? "scores" : "none", allows ? "none" : "scores"}, {"masked"});
    b.node("Softmax", {"masked"}, {"weights"}).node("MatMul", {"weights", "v"}, {"y"});
    CHECK(passed(b)->instructions.size() == 1);
    check_both(b, attention_inputs(), attention_of(0.5625, [](auto i, auto j) { return j <= i + 1 ? 0 : -INFINITY; }));
  }
}

TEST_CASE("a query of an attention that may see no key is NaN, fused or not") {
  // As ONNX defines Softmax, and as its evaluator and onnxruntime compute it.
  for (const bool adds : {false, true})
    for (const bool is_input : {false, true}) {
      CAPTURE(adds, is_input);
      const auto type = adds ? Type::f32 : Type::boolean;
      const double sees = adds ? 0 : 1, hides = adds ? -INFINITY : 0;
      const std::vector<double> mask{sees, hides, sees, sees, hides, hides, hides, hides, hides, hides, hides, sees};
      Builder b;
      b.initializer("none", {}, {-INFINITY}).input("q").input("k").input("v").output("y");
      if (is_input)
        b.input("mask", type, {3, 4});
      else
        b.initializer("mask", {3, 4}, mask, type);
      b.node("Transpose", {"k"}, {"columns"}, {swaps}).node("MatMul", {"q", "columns"}, {"scores"});
      if (adds)
        b.node("Add", {"scores", "mask"}, {"masked"});
      else
        b.node("Where", {"mask", "scores", "none"}, {"masked"});
      b.node("Softmax", {"masked"}, {"weights"}).node("MatMul", {"weights", "v"}, {"y"});
      CHECK(passed(b)->instructions.size() == 1);
      auto inputs = attention_inputs();
      if (is_input) inputs.push_back(to_tensor(HostTensor::of(type, Shape{3, 4}, mask)));
      auto expected =
          attention_of(1, [&](auto i, auto j) { return mask[static_cast<std::size_t>(i * keys + j)] == sees ? 0 : -INFINITY; });
      std::size_t blind = 0;
      for (const bool passes : {true, false}) {
        const auto y = with_passes(b, passes).run(inputs)[0].to_vector<double>();
        REQUIRE(y.size() == expected.size());
        for (std::size_t i = 0; i < y.size(); ++i) {
          const bool is_blind = i / static_cast<std::size_t>(width) % 3 == 1;
          blind += is_blind ? 1 : 0;
          CAPTURE(passes, i);
          if (is_blind)
            CHECK(std::isnan(y[i]));
          else
            CHECK(y[i] == Approx(expected[i]).margin(1e-6));
        }
      }
      CHECK(blind == 2 * static_cast<std::size_t>(heads * width));
    }
}

TEST_CASE("heads of an attention may be cut out after its keys were turned") {
  // PyTorch turns {heads, keys, width}, then adds the batch.
  Builder b;
  b.initializer("cut", {4}, {1, heads, width, keys}, Type::i64).initializer("whole", {3}, {heads, keys, width}, Type::i64);
  b.input("q").input("k").input("v").output("y");
  b.node("Reshape", {"k", "whole"}, {"flat"});
  b.node("Transpose", {"flat"}, {"columns"}, {attribute("perm", std::vector<std::int64_t>{0, 2, 1})});
  b.node("Reshape", {"columns", "cut"}, {"by_heads"}).node("MatMul", {"q", "by_heads"}, {"scores"});
  b.node("Softmax", {"scores"}, {"weights"}).node("MatMul", {"weights", "v"}, {"y"});
  CHECK(passed(b)->instructions.size() == 2);
  check_both(b, attention_inputs(), attention_of(1, [](auto, auto) { return 0; }));
}

TEST_CASE("transposes that cancel are taken out, also around elementwise nodes") {
  const auto there = attribute("perm", std::vector<std::int64_t>{0, 2, 3, 1}),
             back = attribute("perm", std::vector<std::int64_t>{0, 3, 1, 2});
  Builder b;
  b.input("x").output("y");
  b.node("Transpose", {"x"}, {"a"}, {there}).node("Relu", {"a"}, {"b"}).node("Sigmoid", {"b"}, {"c"});
  b.node("Transpose", {"c"}, {"d"}, {back}).node("Transpose", {"d"}, {"e"}, {there}).node("Transpose", {"e"}, {"f"}, {back});
  b.node("Neg", {"f"}, {"y"});
  const auto program = passed(b);
  for (const auto& instruction : program->instructions) CHECK(instruction.op->name != "Transpose");
  std::vector<double> expected;
  for (const auto x : values({1, 2, 3, 4})) expected.push_back(-1 / (1 + std::exp(-std::max(0.0, x))));
  check_both(b, {tensor({1, 2, 3, 4})}, expected);

  // Twice the same permutation of three dimensions is another one.
  Builder other;
  other.input("x").output("y").node("Transpose", {"x"}, {"a"}, {there}).node("Transpose", {"a"}, {"y"}, {there});
  CHECK(passed(other)->instructions.size() == 2);
}

TEST_CASE("results of constants are computed once, those of shapes each time") {
  Builder b;
  b.initializer("c", {2}, {1, 2}, Type::i64).initializer("d", {2}, {0.5, 4}).input("x").output("y");
  b.node("Cast", {"c"}, {"as_float"}, {attribute("to", std::int64_t{1})}).node("Exp", {"as_float"}, {"exp"});
  b.node("Shape", {"x"}, {"shape"}).node("Cast", {"shape"}, {"extent"}, {attribute("to", std::int64_t{1})});
  b.node("Mul", {"x", "exp"}, {"product"}).node("Mul", {"product", "extent"}, {"y"});
  const auto program = passed(b);
  for (const auto& instruction : program->instructions)
    CHECK(instruction.kept == (instruction.op->name == "Exp" || instruction.node->inputs[0] == "c"));
  check_both(b, {Tensor::from({1.0F, 1.0F})}, {2 * std::exp(1), 2 * std::exp(2)});
  auto model = with_passes(b, true);
  auto compiled = compile([&](const Tensor& x) { return model(x); });
  for (int i = 0; i < 3; ++i) CHECK(compiled(Tensor::from({1.0F, 1.0F})).to_vector<double>()[1] == Approx(2 * std::exp(2)));
}

TEST_CASE("batch norm behind a convolution adds no kernel, follows its parameters, and ends in training") {
  // The plan computes it where the convolution stores; weights stay what they are.
  Builder b;
  b.initializer("w", {2, 1, 1, 1}, {2, -1}).initializer("scale", {2}, {1, 2}).initializer("bias", {2}, {0, 1});
  b.initializer("mean", {2}, {1, -1}).initializer("var", {2}, {4, 0.25}).input("x").output("y");
  b.node("Conv", {"x", "w"}, {"c"}).node("BatchNormalization", {"c", "scale", "bias", "mean", "var"}, {"y"});
  auto model = with_passes(b, true);
  const Tensor x = tensor({1, 1, 2, 2});
  const auto expected = [&](double w, double scale) {
    std::vector<double> y;
    for (const auto value : values({1, 1, 2, 2})) y.push_back((w * value - 1) / std::sqrt(4 + 1e-5) * scale);
    for (const auto value : values({1, 1, 2, 2})) y.push_back((-value + 1) / std::sqrt(0.25 + 1e-5) * 2 + 1);
    return y;
  };
  const auto check = [&](double w, double scale) {
    const auto y = model(x).to_vector<double>(), wanted = expected(w, scale);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(wanted[i]).margin(1e-5));
  };
  for (int i = 0; i < 3; ++i) check(2, 1);
  model.parameter("scale").set(Tensor::from({3.0F, 2.0F}));
  check(2, 3);
  model.parameter("w").set(Tensor::from({5.0F, -1.0F}, {2, 1, 1, 1}));
  check(5, 3);
  model.train();
  const auto trained = model(x).mean({0, 2, 3}).to_vector<double>();
  CHECK(trained[0] == Approx(0).margin(1e-5));
  CHECK(trained[1] == Approx(1).margin(1e-5));
}

TEST_CASE("what is made of untrained weights follows them, also under compile()") {
  // A weight that the network turns, and one in integers, so large that it is a buffer.
  constexpr std::int64_t width = 9;
  std::vector<double> w, q;
  for (std::int64_t i = 0; i < 2 * width; ++i) w.push_back(static_cast<double>(i % 5) - 2);
  for (std::int64_t i = 0; i < width * width; ++i) q.push_back(static_cast<double>(i % 7) - 3);
  Builder b;
  b.initializer("w", {2, width}, w).initializer("q", {width, width}, q, Type::i8);
  b.initializer("scale", {}, {0.5}).input("x").output("y");
  b.node("Transpose", {"w"}, {"turned"}, {attribute("perm", std::vector<std::int64_t>{1, 0})});
  b.node("DequantizeLinear", {"q", "scale"}, {"d"}).node("MatMul", {"x", "d"}, {"z"}).node("MatMul", {"z", "turned"}, {"y"});
  const auto sums_of = [&](const std::vector<double>& of) {
    std::vector<double> z(width);
    for (std::size_t i = 0; i < of.size(); ++i) z[i % width] += 0.5 * of[i];
    return z;
  };
  const auto expected = [&] {
    std::vector<double> y(2);
    const auto z = sums_of(q);
    for (std::size_t i = 0; i < w.size(); ++i) y[i / width] += z[i % width] * w[i];
    return y;
  };
  const Tensor x = ones({1, width});
  auto model = with_passes(b, true);
  auto compiled = compile([&](const Tensor& in) { return model(in); });
  const auto check = [&] {
    for (int i = 0; i < 3; ++i) {
      CHECK(model(x).to_vector<double>() == expected());
      CHECK(compiled(x).to_vector<double>() == expected());
    }
  };
  check();
  model.freeze();
  check();
  w[0] = 7;
  model.parameter("w").set(Tensor::from(w, {2, width}).to(Dtype::f32));
  check();
  q[3] = 50;
  model.parameter("q").set(cast(Tensor::from(q, {width, width}), Dtype::i8));
  check();
  // Unfrozen it trains, under compile() too.
  model.freeze(false);
  const auto z = sums_of(q);
  auto slopes = compile([&](const Tensor& in) { return gradients(model(in).sum(), {model.parameter("w")})[0]; });
  const auto slope = slopes(x).to_vector<double>();
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(slope[i] == z[i % width]);
  model.train();
  optim::SGD sgd(model, {.learning_rate = 1});
  sgd.step(model(x).sum());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] -= z[i % width];
  check();
  model.inference();
  check();
  q[0] = -50;
  model.load_state_dict({{"w", Tensor::from(w, {2, width}).to(Dtype::f32)},
                         {"q", cast(Tensor::from(q, {width, width}), Dtype::i8)},
                         {"scale", Tensor::from({0.5F}).reshape(Shape{})}});
  check();
}

TEST_CASE("what is kept of weights and constants is as the nodes give it, whichever Autocast was first") {
  // 1 + 2^-10 is no bf16.
  Builder b;
  b.initializer("w", {2, 2}, {1.0009765625, 0, 0, 1}).initializer("one", {1, 1}, {1});
  b.initializer("shape", {2}, {1, 1}, Type::i64).input("x").output("y");
  b.node("MatMul", {"w", "w"}, {"square"}).node("MatMul", {"x", "square"}, {"of_weights"});
  b.node("ConstantOfShape", {"shape"}, {"zero"}).node("Expand", {"one", "shape"}, {"c"});
  b.node("Add", {"c", "zero"}, {"d"}).node("MatMul", {"d", "d"}, {"of_constants"});
  b.node("Mul", {"of_weights", "of_constants"}, {"y"});
  const Tensor x = ones({1, 2});
  const double exact = 1.0009765625 * 1.0009765625;
  for (const bool narrow_first : {true, false}) {
    auto model = with_passes(b, true);
    model.freeze();
    auto compiled = compile([&](const Tensor& in) { return cast(model(in), Dtype::f32); });
    const auto check = [&](bool narrow) {
      const Autocast scope(narrow ? Dtype::bf16 : Dtype::f32);
      const double wanted = narrow ? 1 : exact;
      for (int i = 0; i < 2; ++i) {
        CHECK(cast(model(x), Dtype::f32).to_vector<double>()[0] == Approx(wanted).epsilon(1e-6));
        CHECK(compiled(x).to_vector<double>()[0] == Approx(wanted).epsilon(1e-6));
      }
    };
    check(narrow_first);
    check(!narrow_first);
    check(narrow_first);
  }
}

TEST_CASE("a constant index is a part of the tensor") {
  Builder b;
  b.initializer("index", {}, {-1}, Type::i64).input("x").output("y");
  b.node("Gather", {"x", "index"}, {"y"}, {attribute("axis", std::int64_t{1})});
  auto model = with_passes(b, true);
  const Tensor y = model(Tensor::from({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3}));
  CHECK(y.shape() == Shape{2});
  CHECK(y.to_vector<float>() == std::vector<float>{3, 6});
}

TEST_CASE("nodes without their inputs or outputs are no patterns") {
  for (const auto* op : {"Transpose", "Softmax", "MatMul", "Mul", "Div", "Erf", "Sqrt", "ReduceMean", "Add", "Where"}) {
    CAPTURE(op);
    Builder b;
    b.input("x").output("y").node(op, {}, {"a"}).node("MatMul", {"a"}, {"b"}).node(op, {"x"}, {}).node(op, {"a"}, {""});
    b.node("Transpose", {"a"}, {"c"}).node("Mul", {"c", ""}, {"d"}).node(op, {"", "b"}, {"e"}).node("Add", {"e", "d"}, {"y"});
    CHECK(passed(b) != nullptr);
  }
}

TEST_CASE("a function's attributes may be others at each call") {
  // The function turns a weight by the permutation of its node.
  std::string function, by_reference, opset;
  protozero::pbf_writer(by_reference).add_string(1, "perm");
  protozero::pbf_writer(by_reference).add_int32(20, 7);
  protozero::pbf_writer(by_reference).add_string(21, "order");
  protozero::pbf_writer(opset).add_int64(2, 17);
  std::string node;
  {
    protozero::pbf_writer writer(node);
    writer.add_string(1, "w");
    writer.add_string(2, "turned");
    writer.add_string(4, "Transpose");
    writer.add_message(5, by_reference);
  }
  {
    protozero::pbf_writer writer(function);
    writer.add_string(1, "Turned");
    writer.add_string(4, "w");
    writer.add_string(5, "turned");
    writer.add_string(6, "order");
    writer.add_message(7, node);
    writer.add_message(9, opset);
    writer.add_string(10, "here");
  }
  Builder b;
  b.initializer("w", {2, 2}, {1, 2, 3, 4}).input("x").output("y");
  b.node("Turned", {"w"}, {"a"}, {attribute("order", std::vector<std::int64_t>{1, 0})}, "here");
  b.node("Turned", {"w"}, {"b"}, {attribute("order", std::vector<std::int64_t>{0, 1})}, "here");
  b.node("Sub", {"a", "b"}, {"c"}).node("Add", {"x", "c"}, {"y"});
  auto text = b.model(17);
  std::string imported;
  protozero::pbf_writer(imported).add_string(1, "here");
  protozero::pbf_writer(imported).add_int64(2, 1);
  protozero::pbf_writer(text).add_message(8, imported);
  protozero::pbf_writer(text).add_message(25, function);
  const Folder folder;
  auto model = onnx::load(folder.write("model.onnx", text));
  model.freeze();
  for (int i = 0; i < 2; ++i) CHECK(model(zeros({2, 2})).to_vector<float>() == std::vector<float>{0, 1, -1, 0});
}
