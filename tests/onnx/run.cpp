// Networks from ONNX files: what they compute, and that they train, are saved, and run under compile().
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/onnx.h"
#include "tests/onnx/builder.h"
#include "tests/onnx/one_node.h"
#include "tests/support/second_device.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
using Catch::Contains;

namespace {

/// Two layers: relu(x W + b), then Gemm with a transposed weight.
Builder perceptron() {
  Builder b;
  b.initializer("first.weight", {2, 3}, {1, -1, 0.5, 2, 0.25, -0.5}).initializer("first.bias", {3}, {0.5, 0, -1});
  b.initializer("second.weight", {2, 3}, {1, 2, 3, -1, 0, 1}).initializer("second.bias", {2}, {0.125, -0.25});
  b.input("x", Type::f32, {-1, 2}).output("y");
  b.node("MatMul", {"x", "first.weight"}, {"product"}).node("Add", {"product", "first.bias"}, {"sum"});
  b.node("Relu", {"sum"}, {"hidden"});
  b.node("Gemm", {"hidden", "second.weight", "second.bias"}, {"y"}, {attribute("transB", std::int64_t{1})});
  return b;
}

std::vector<double> perceptron_of(double x0, double x1) {
  const double w[2][3] = {{1, -1, 0.5}, {2, 0.25, -0.5}}, b[3] = {0.5, 0, -1}, v[2][3] = {{1, 2, 3}, {-1, 0, 1}},
               c[2] = {0.125, -0.25};
  std::vector<double> y{c[0], c[1]};
  for (int j = 0; j < 3; ++j) {
    const double h = std::max(0.0, x0 * w[0][j] + x1 * w[1][j] + b[j]);
    for (int i = 0; i < 2; ++i) y[static_cast<std::size_t>(i)] += h * v[i][j];
  }
  return y;
}

}  // namespace

TEST_CASE("a network of matrix products gives what it is made of") {
  auto model = loaded(perceptron(), 18);
  CHECK(model.missing_operators().empty());
  REQUIRE(model.inputs().size() == 1);
  CHECK(model.inputs()[0].name == "x");
  CHECK(model.inputs()[0].type == "float");
  CHECK(model.inputs()[0].extents == std::vector<std::string>{"n", "2"});
  const Tensor x = Tensor::from({1.0F, 2.0F, -3.0F, 0.5F}, {2, 2});
  const auto y = model(x).to_vector<double>();
  const auto first = perceptron_of(1, 2), second = perceptron_of(-3, 0.5);
  CHECK(y[0] == Approx(first[0]));
  CHECK(y[1] == Approx(first[1]));
  CHECK(y[2] == Approx(second[0]));
  CHECK(y[3] == Approx(second[1]));
}

TEST_CASE("initializers are parameters under their names, which train and are saved") {
  auto model = loaded(perceptron(), 18);
  std::vector<std::string> names;
  for (const auto& [name, parameter] : model.parameters()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"first.weight", "first.bias", "second.weight", "second.bias"});
  const auto before = model.state_dict();
  const Tensor x = Tensor::from({1.0F, 2.0F, -3.0F, 0.5F}, {2, 2}), target = zeros({2, 2});
  optim::SGD sgd(model, {.learning_rate = 0.01});
  model.train();
  std::vector<float> losses;
  for (int i = 0; i < 5; ++i) losses.push_back(sgd.step(mse_loss(model(x), target)).item<float>());
  CHECK(losses.back() < 0.5F * losses.front());
  auto other = loaded(perceptron(), 18);
  other.load_state_dict(model.state_dict());
  CHECK(equal(other(x), model(x)));
  other.load_state_dict(before);
  CHECK(other(x).to_vector<double>()[0] == Approx(perceptron_of(1, 2)[0]));
}

TEST_CASE("copies share parameters, clones have their own") {
  auto model = loaded(perceptron(), 18);
  auto copy = model;
  auto clone = nn::clone(model);
  const Tensor x = Tensor::from({1.0F, 2.0F}, {1, 2});
  const auto before = model(x).to_vector<float>();
  model.parameter("second.bias").set(Tensor::from({5.0F, 5.0F}));
  CHECK(copy(x).to_vector<float>() == model(x).to_vector<float>());
  CHECK(model(x).to_vector<float>() != before);
  CHECK(clone(x).to_vector<float>() == before);
}

TEST_CASE("shapes are computed on the host, so that a network with them compiles") {
  // reshape(x, {shape(x)[0], -1}) with the pieces that exporters write.
  Builder b;
  b.initializer("zero", {}, {0}, Type::i64).initializer("rest", {1}, {-1}, Type::i64);
  b.initializer("axis", {1}, {0}, Type::i64);
  b.input("x").output("y");
  b.node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "zero"}, {"batch"}).node("Unsqueeze", {"batch", "axis"}, {"one"});
  b.node("Concat", {"one", "rest"}, {"wanted"}, {attribute("axis", std::int64_t{0})});
  b.node("Reshape", {"x", "wanted"}, {"y"});
  auto model = loaded(b, 18);
  CHECK(model.parameters().empty());
  CHECK(model.buffers().empty());
  auto compiled = compile([&](const Tensor& x) { return model(x); });
  CHECK(compiled(ones({2, 3, 4})).shape() == Shape{2, 12});
  CHECK(compiled(ones({5, 1, 4})).shape() == Shape{5, 4});
}

TEST_CASE("a condition chooses a branch when the network runs") {
  Builder twice, half, b;
  twice.initializer("two", {1}, {2}).node("Mul", {"x", "two"}, {"a"}).output("a");
  half.initializer("part", {1}, {0.5}).node("Mul", {"x", "part"}, {"b"}).output("b");
  b.input("x").output("y").initializer("limit", {}, {0});
  b.node("ReduceSum", {"x"}, {"sum"}, {attribute("keepdims", std::int64_t{0})}).node("Greater", {"sum", "limit"}, {"positive"});
  b.node("If", {"positive"}, {"y"},
         {graph_attribute("then_branch", twice.graph()), graph_attribute("else_branch", half.graph())});
  auto model = loaded(b, 18);
  CHECK(model(Tensor::from({1.0F, 2.0F})).to_vector<float>() == std::vector<float>{2, 4});
  CHECK(model(Tensor::from({-1.0F, -2.0F})).to_vector<float>() == std::vector<float>{-0.5F, -1});
}

TEST_CASE("a loop runs as often as data say, carries values and collects outputs") {
  // Squares x until its sum exceeds 100, at most 10 times.
  Builder body, b;
  body.input("i", Type::i64).input("go", Type::boolean).input("v");
  body.initializer("hundred", {}, {100});
  body.node("Mul", {"v", "v"}, {"next"}).node("ReduceSum", {"next"}, {"sum"}, {attribute("keepdims", std::int64_t{0})});
  body.node("Less", {"sum", "hundred"}, {"more"}).node("Identity", {"sum"}, {"told"});
  body.output("more", Type::boolean).output("next").output("told");
  b.input("x").output("last").output("sums").initializer("most", {}, {10}, Type::i64);
  b.node("Loop", {"most", "", "x"}, {"last", "sums"}, {graph_attribute("body", body.graph())});
  auto model = loaded(b, 18);
  const auto outputs = model.run({Tensor::from({2.0F, 1.0F})});
  CHECK(outputs[0].to_vector<float>() == std::vector<float>{256, 1});
  CHECK(outputs[1].to_vector<float>() == std::vector<float>{5, 17, 257});
  const auto longer = model.run({Tensor::from({1.0F, 1.0F})});
  CHECK(longer[1].to_vector<float>() == std::vector<float>(10, 2.0F));
}

TEST_CASE("a scan carries a state over slices") {
  Builder body, b;
  body.input("sum")
      .input("slice")
      .node("Add", {"sum", "slice"}, {"next"})
      .node("Identity", {"next"}, {"told"})
      .output("next")
      .output("told");
  b.input("start").input("x").output("total").output("sums");
  b.node("Scan", {"start", "x"}, {"total", "sums"},
         {graph_attribute("body", body.graph()), attribute("num_scan_inputs", std::int64_t{1})});
  auto model = loaded(b, 18);
  const auto outputs = model.run({zeros({2}), Tensor::from({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {3, 2})});
  CHECK(outputs[0].to_vector<float>() == std::vector<float>{9, 12});
  CHECK(outputs[1].to_vector<float>() == std::vector<float>{1, 2, 4, 6, 9, 12});
}

TEST_CASE("batch norm follows its batches in training, unless its statistics are frozen") {
  Builder b;
  b.initializer("scale", {2}, {1, 2})
      .initializer("bias", {2}, {0, 1})
      .initializer("mean", {2}, {0, 0})
      .initializer("var", {2}, {1, 1});
  b.input("x").output("y").node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"y"},
                                {attribute("momentum", 0.75F)});
  const Tensor x = Tensor::from({1.0F, 10.0F, 3.0F, 30.0F}, {2, 2});
  for (const bool frozen : {false, true}) {
    CAPTURE(frozen);
    auto model = loaded(b, 15, {.freeze_statistics = frozen});
    CHECK(model.parameters().size() == 2);
    CHECK(model.buffers().size() == 2);
    CHECK(model(x).to_vector<double>()[1] == Approx(1 + 20 / std::sqrt(1 + 1e-5)));
    model.train();
    const auto y = model(x).to_vector<double>();
    if (frozen) {
      CHECK(y[0] == Approx(1 / std::sqrt(1 + 1e-5)));
      CHECK(model.parameter("mean").value().to_vector<float>() == std::vector<float>{0, 0});
    } else {
      // Means 2 and 20, variances of the whole population 1 and 100.
      CHECK(y[0] == Approx(-1 / std::sqrt(1 + 1e-5)));
      CHECK(model.parameter("mean").value().to_vector<double>()[1] == Approx(5));
      CHECK(model.parameter("var").value().to_vector<double>()[1] == Approx(0.75 + 25));
    }
  }
}

TEST_CASE("pools with ceil_mode count windows by the input, also where pads exceed half of them") {
  const auto result = [](const std::string& op, const std::vector<std::int64_t>& pads, std::int64_t dilation, std::int64_t counts,
                         const std::vector<float>& x) {
    Builder b;
    std::vector<std::string> attributes{attribute("kernel_shape", std::vector<std::int64_t>{3}), attribute("pads", pads),
                                        attribute("strides", std::vector<std::int64_t>{2}),
                                        attribute("ceil_mode", std::int64_t{1}),
                                        attribute("dilations", std::vector<std::int64_t>{dilation})};
    if (op == "AveragePool") attributes.push_back(attribute("count_include_pad", counts));
    b.input("x").output("y").node(op, {"x"}, {"y"}, attributes);
    return loaded(b, 19)(Tensor::from(x, {1, 1, static_cast<std::int64_t>(x.size())})).to_vector<float>();
  };
  // A third window would begin behind the input.
  CHECK(result("MaxPool", {0, 2}, 1, 0, {1, 2, 3, 4}) == std::vector<float>{3, 4});
  // What lies behind the padding does not count.
  const auto with = result("AveragePool", {2, 1}, 2, 1, {1, 2, 3, 4, 5});
  REQUIRE(with.size() == 3);
  CHECK(with[0] == Approx(4.0 / 3));
  CHECK(with[1] == Approx(3));
  CHECK(with[2] == Approx(4));
  const auto without = result("AveragePool", {2, 1}, 2, 0, {1, 2, 3, 4, 5});
  REQUIRE(without.size() == 3);
  CHECK(without[0] == Approx(2));
  CHECK_THROWS_WITH(result("AveragePool", {0, 0}, 9, 0, {1, 2, 3, 4, 5}), Contains("larger than the padded input"));
}

TEST_CASE("integers of 16 bits and without a sign wrap around") {
  Builder b;
  b.input("x", Type::u16).initializer("more", {2}, {1, 1000}, Type::u16).output("y", Type::u16);
  b.node("Add", {"x", "more"}, {"y"});
  auto model = loaded(b, 18);
  onnx::Value x(Tensor::from({65535, 65000}));
  const auto y = model.run_values({x});
  CHECK(y[0].type == "uint16");
  CHECK(y[0].tensor.to_vector<int>() == std::vector<int>{0, 464});
}

TEST_CASE("tensors in files keep ONNX's types") {
  const Folder folder;
  onnx::Value value(Tensor::from({1, 65535}));
  value.type = "uint16";
  onnx::save_tensor(folder / "t.pb", value);
  const auto read = onnx::load_tensor(folder / "t.pb");
  CHECK(read.type == "uint16");
  CHECK(read.tensor.to_vector<int>() == std::vector<int>{1, 65535});
}

TEST_CASE("constants that feed weights are parameters, in branches, too") {
  const auto weight = [](const std::vector<double>& values) {
    return attribute_of("value", 4, [&](auto& writer) {
      writer.add_message(5, onnx::write_tensor(HostTensor::of(Type::f32, {2, 2}, values), ""));
    });
  };
  Builder yes, no, b;
  yes.node("Constant", {}, {"w"}, {weight({1, 2, 3, 4})}).node("MatMul", {"x", "w"}, {"a"}).output("a");
  no.node("Constant", {}, {"v"}, {weight({4, 3, 2, 1})}).node("MatMul", {"x", "v"}, {"c"}).output("c");
  b.input("go", Type::boolean).input("x").output("y");
  b.node("If", {"go"}, {"y"}, {graph_attribute("then_branch", yes.graph()), graph_attribute("else_branch", no.graph())});
  auto model = loaded(b, 18);
  CHECK(model.parameters().size() == 2);
  model.parameter("w").set(Tensor::from({2.0F, 0.0F, 0.0F, 2.0F}, {2, 2}));
  const Tensor x = Tensor::from({1.0F, 3.0F}, {1, 2});
  const auto run = [&](bool go) { return model.run({full({}, go, Dtype::boolean), x})[0]; };
  CHECK(run(true).to_vector<int>() == std::vector<int>{2, 6});
  CHECK(run(false).to_vector<int>() == std::vector<int>{10, 6});
  CHECK(gradients(sum(run(true)), {model.parameter("w").value()})[0].to_vector<int>() == std::vector<int>{1, 1, 3, 3});
}

TEST_CASE("inputs have the declared extents, and a name stands for one extent") {
  Builder b;
  b.input("a", Type::f32, {-1, 3}).input("c", Type::f32, {-1, 1}).output("y").node("Add", {"a", "c"}, {"y"});
  auto model = loaded(b, 18);
  CHECK(model.run({ones({2, 3}), ones({2, 1})})[0].shape() == Shape{2, 3});
  const auto reason = [&](const Shape& first, const Shape& second) {
    try {
      model.run({ones(first), ones(second)});
    } catch (const ShapeError& error) {
      const std::string text = error.what();
      return text.substr(text.find(": ") + 2);
    }
    return std::string();
  };
  CHECK(reason({2, 4}, {2, 1}) == "input \"a\" is [2, 4], the network wants 3 in dimension 1");
  CHECK(reason({3}, {2, 1}) == "input \"a\" is [3], the network wants 2 dimensions");
  CHECK(reason({2, 3}, {1, 1}) == "input \"c\" is [1, 1], and \"n\" of another input is 2");
}

TEST_CASE("a network runs on the device of its inputs and parameters, whichever ran it before") {
  Builder b;
  const std::vector<double> many(5000, 2.0);
  b.initializer("w", {2, 2}, {1, 0, 0, 1}).initializer("half", {}, {0.5}).initializer("axis", {1}, {0}, Type::i64);
  b.input("x").output("y").output("z");
  const auto table = attribute_of(
      "value", 4, [&](auto& writer) { writer.add_message(5, onnx::write_tensor(HostTensor::of(Type::f32, {5000}, many), "")); });
  b.node("Constant", {}, {"table"}, {table}).node("MatMul", {"x", "w"}, {"p"}).node("Mul", {"p", "half"}, {"y"});
  b.node("ReduceSum", {"y"}, {"s"}, {attribute("keepdims", std::int64_t{0})}).node("Mul", {"table", "s"}, {"z"});
  auto model = loaded(b, 18);
  const auto check = [&](const Tensor& x) {
    const auto outputs = model.run({x});
    CHECK(outputs[0].to_vector<float>() == std::vector<float>{1, 2});
    CHECK(outputs[1].to_vector<float>() == std::vector<float>(5000, 6));
    return outputs[0].device();
  };
  const auto first = Device::current(), second = second_device();
  const Tensor x = Tensor::from({2.0F, 4.0F}, {1, 2});
  CHECK(check(copy_to(x, first)) == first);
  model.to(second);
  CHECK(check(copy_to(x, second)) == second);
  {
    const DeviceScope scope(second);
    CHECK(check(Tensor::from({2.0F, 4.0F}, {1, 2})) == second);
  }
  model.to(first);
  CHECK(check(copy_to(x, first)) == first);
}

TEST_CASE("files of optional values have a tensor, a sequence or nothing") {
  const Folder folder;
  onnx::ValueInfo info;
  info.is_optional = true;
  const auto tensor = onnx::write_tensor(HostTensor::of(Type::i64, {2}, std::vector<std::int64_t>{3, 4}), "");
  const auto file = [&](int kind, int field, const std::string& message) {
    std::string bytes;
    protozero::pbf_writer writer(bytes);
    writer.add_int32(2, kind);
    if (field > 0) writer.add_message(static_cast<protozero::pbf_tag_type>(field), message);
    return onnx::load_value(folder.write("value.pb", bytes), info);
  };
  const auto some = file(1, 3, tensor);
  CHECK(some.type == "int64");
  CHECK(some.tensor.to_vector<int>() == std::vector<int>{3, 4});
  std::string sequence;
  protozero::pbf_writer(sequence).add_message(3, tensor);
  const auto all = file(3, 5, sequence);
  REQUIRE(all.is_sequence);
  CHECK(all.elements.size() == 1);
  CHECK_FALSE(file(1, 0, {}).tensor.defined());
  CHECK_THROWS_WITH(file(4, 6, {}), Catch::Contains("the optional value is neither a tensor nor a sequence of such"));
}

TEST_CASE("multiply-adds are counted where all extents are known") {
  Builder b;
  b.initializer("w", {4, 1, 3, 3}, std::vector<double>(36, 1)).initializer("v", {5, 36}, std::vector<double>(180, 1));
  b.initializer("flat", {2}, {0, 36}, Type::i64).input("x", Type::f32, {-1, 2, 5, 5}).output("y");
  b.node("Conv", {"x", "w"}, {"c"}, {attribute("group", std::int64_t{2})}).node("Relu", {"c"}, {"r"});
  b.node("Reshape", {"r", "flat"}, {"f"}).node("Gemm", {"f", "v"}, {"y"}, {attribute("transB", std::int64_t{1})});
  CHECK(loaded(b, 18).multiply_adds() == 4 * 9 * 9 + 5 * 36);
  Builder recurrent;  // 4 steps of a batch of 1, 2 features, 3 states
  recurrent.initializer("w", {1, 9, 2}, std::vector<double>(18, 1)).initializer("r", {1, 9, 3}, std::vector<double>(27, 1));
  recurrent.input("x", Type::f32, {4, 1, 2}).output("y");
  recurrent.node("GRU", {"x", "w", "r"}, {"y"}, {attribute("hidden_size", std::int64_t{3})});
  CHECK(loaded(recurrent, 18).multiply_adds() == 4 * (18 + 27));
  Builder open;
  open.input("x", Type::f32, {-1, -1}).output("y").node("MatMul", {"x", "x"}, {"y"});
  CHECK_FALSE(loaded(open, 18).multiply_adds());
  Builder depends;
  depends.input("x", Type::f32, {2, 2}).output("y").node("NonZero", {"x"}, {"y"});
  CHECK_FALSE(loaded(depends, 18).multiply_adds());
}

TEST_CASE("multiply-adds of sums of products, of moved windows and of attention by a state or by graphs are counted") {
  const auto einsum = [](const std::string& equation, const std::vector<std::vector<std::int64_t>>& shapes) {
    Builder b;
    std::vector<std::string> names;
    for (const auto& shape : shapes) {
      names.push_back("x" + std::to_string(names.size()));
      b.input(names.back(), Type::f32, shape);
    }
    b.node("Einsum", names, {"y"}, {attribute("equation", equation)}).output("y");
    return loaded(b, 18).multiply_adds();
  };
  CHECK(einsum("bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}) == 2 * 3 * 4 * 5);
  CHECK(einsum("ij, jk", {{3, 4}, {4, 5}}) == 3 * 4 * 5);
  CHECK(einsum("...ij,...jk->...ik", {{7, 2, 3, 4}, {2, 4, 5}}) == 7 * 2 * 3 * 4 * 5);
  CHECK(einsum("i,i", {{6}, {6}}) == 6);
  CHECK(einsum("ij->i", {{3, 4}}) == 0);
  // The sum over h comes first; then 3 x 4 x 5 and 3 x 5 x 6.
  CHECK(einsum("hij,jk,kl->il", {{2, 3, 4}, {4, 5}, {5, 6}}) == 3 * 4 * 5 + 3 * 5 * 6);

  Builder deformed;
  deformed.initializer("w", {4, 1, 3, 3}, std::vector<double>(36, 1));
  deformed.input("x", Type::f32, {1, 2, 5, 5}).input("offset", Type::f32, {1, 18, 3, 3}).output("y");
  deformed.node("DeformConv", {"x", "w", "offset"}, {"y"}, {attribute("group", std::int64_t{2})});
  CHECK(loaded(deformed, 19).multiply_adds() == 4 * 9 * 9);

  // 5 steps of 2 heads of keys with a state {3, 4}: changed, read before it, and by 4 heads of queries.
  for (const bool corrects : {false, true}) {
    Builder linear;
    linear.input("q", Type::f32, {1, 5, 12}).input("k", Type::f32, {1, 5, 6}).input("v", Type::f32, {1, 5, 8});
    linear.input("beta", Type::f32, {1, 5, 2}).output("y").output("state");
    std::vector<std::string> inputs{"q", "k", "v"};
    if (corrects) inputs.insert(inputs.end(), {"", "", "beta"});
    linear.node("LinearAttention", inputs, {"y", "state"},
                {attribute("q_num_heads", std::int64_t{4}), attribute("kv_num_heads", std::int64_t{2}),
                 attribute("update_rule", std::string(corrects ? "delta" : "linear"))});
    CHECK(loaded(linear, 27).multiply_adds() == 5 * 3 * 4 * (2 * (corrects ? 2 : 1) + 4));
  }
  Builder flexible;
  flexible.input("q", Type::f32, {1, 4, 5, 3})
      .input("k", Type::f32, {1, 2, 7, 3})
      .input("v", Type::f32, {1, 2, 7, 6})
      .output("y");
  flexible.node("FlexAttention", {"q", "k", "v"}, {"y"}, {}, "ai.onnx.preview");
  CHECK(loaded(flexible, 27).multiply_adds() == 4 * 5 * 7 * (3 + 6));
}
