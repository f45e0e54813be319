// Operators of ONNX files beside plain loops over their definitions.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/onnx.h"
#include "tests/onnx/builder.h"
#include "tests/onnx/one_node.h"

using namespace clnet;
using namespace clnet::test;

namespace {

using Doubles = std::vector<double>;
using List = std::vector<std::int64_t>;

/// Numbers from -1 to 1 that repeat late.
Tensor filled(const Shape& shape, int seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i) values.push_back(static_cast<float>((i * 37 + seed * 11) % 101) / 50 - 1);
  return Tensor::from(values, shape);
}

void check_close(const Tensor& got, const Shape& shape, const Doubles& expected) {
  REQUIRE(got.shape() == shape);
  const auto values = got.to_vector<double>();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(values[i] == Approx(expected[i]).margin(1e-4));
  }
}

double determinant_of(const Doubles& a, std::size_t n) {
  if (n == 1) return a[0];
  double sum = 0;
  for (std::size_t column = 0; column < n; ++column) {
    Doubles minor;
    for (std::size_t i = 1; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (j != column) minor.push_back(a[i * n + j]);
    sum += (column % 2 == 0 ? 1 : -1) * a[column] * determinant_of(minor, n - 1);
  }
  return sum;
}

}  // namespace

TEST_CASE("Det: the sum over minors, and its gradient") {
  const Tensor x = filled({3, 4, 4}, 1);
  auto model = one_node("Det", 1);
  const Tensor y = model.run({x})[0];
  const auto values = x.to_vector<double>();
  Doubles expected;
  for (std::size_t i = 0; i < 3; ++i)
    expected.push_back(determinant_of(
        Doubles(values.begin() + static_cast<std::ptrdiff_t>(16 * i), values.begin() + static_cast<std::ptrdiff_t>(16 * (i + 1))),
        4));
  check_close(y, {3}, expected);
  check_close(model.run({Tensor::from({0.0F, 2.0F, 3.0F, 1.0F}, {2, 2})})[0], {}, {-6});
  check_close(model.run({Tensor::from({1.0F, 2.0F, 2.0F, 4.0F}, {2, 2})})[0], {}, {0});
  // The cofactors.
  const Tensor a = Tensor::from({0.0F, 2.0F, 3.0F, 1.0F}, {2, 2});
  check_close(gradients(model.run({a})[0], {a})[0], {2, 2}, {1, -3, -2, 0});
}

TEST_CASE("Col2Im: columns are added where they come from") {
  // Windows {2, 3} with dilation 2 across and stride {1, 2} in a padded image {4, 6}.
  const List image{4, 6};
  auto model = one_node(
      "Col2Im", 3, {attribute("dilations", List{1, 2}), attribute("strides", List{1, 2}), attribute("pads", List{1, 0, 0, 1})});
  const Tensor columns = filled({2, 2 * 6, 4 * 2}, 3);
  const Tensor y = model.run({columns, Tensor::from(image), Tensor::from(List{2, 3})})[0];
  const auto c = columns.to_vector<double>();
  Doubles expected(2 * 2 * 4 * 6);
  for (int n = 0; n < 2; ++n)
    for (int channel = 0; channel < 2; ++channel)
      for (int i = 0; i < 6; ++i)
        for (int at = 0; at < 8; ++at) {
          const int row = at / 2 + i / 3 - 1, column = at % 2 * 2 + i % 3 * 2;
          if (row < 0 || row >= 4 || column >= 6) continue;
          expected[static_cast<std::size_t>(((n * 2 + channel) * 4 + row) * 6 + column)] +=
              c[static_cast<std::size_t>((n * 12 + channel * 6 + i) * 8 + at)];
        }
  check_close(y, {2, 2, 4, 6}, expected);
}

TEST_CASE("DeformConv: bilinear samples at moved places") {
  // Two groups of channels and of offsets, a mask, a bias, a stride and a pad.
  const Tensor x = filled({2, 4, 5, 6}, 1), weight = filled({4, 2, 2, 2}, 2), bias = filled({4}, 3);
  const Tensor offset = filled({2, 2 * 2 * 4, 3, 3}, 4) * 1.5, mask = filled({2, 2 * 4, 3, 3}, 5);
  auto model = one_node("DeformConv", 5,
                        {attribute("group", std::int64_t{2}), attribute("offset_group", std::int64_t{2}),
                         attribute("strides", List{2, 2}), attribute("pads", List{1, 0, 0, 0})});
  const Tensor y = model.run({x, weight, offset, bias, mask})[0];
  const auto xs = x.to_vector<double>(), w = weight.to_vector<double>(), o = offset.to_vector<double>(),
             m = mask.to_vector<double>(), b = bias.to_vector<double>();
  const auto index = [](std::initializer_list<std::pair<int, int>> list) {
    int at = 0;
    for (const auto& [i, extent] : list) at = at * extent + i;
    return static_cast<std::size_t>(at);
  };
  Doubles expected;
  for (int n = 0; n < 2; ++n)
    for (int out = 0; out < 4; ++out)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
          double sum = b[static_cast<std::size_t>(out)];
          for (int in = 0; in < 2; ++in)
            for (int k = 0; k < 4; ++k) {
              const int channel = out / 2 * 2 + in, set = channel / 2;
              const auto moved = [&](int d) { return o[index({{n, 2}, {set, 2}, {k, 4}, {d, 2}, {i, 3}, {j, 3}})]; };
              const double row = i * 2 - 1 + k / 2 + moved(0), column = j * 2 + k % 2 + moved(1);
              double value = 0;
              for (int r = static_cast<int>(std::floor(row)); r <= std::floor(row) + 1; ++r)
                for (int c = static_cast<int>(std::floor(column)); c <= std::floor(column) + 1; ++c)
                  if (r >= 0 && r < 5 && c >= 0 && c < 6)
                    value +=
                        (1 - std::abs(row - r)) * (1 - std::abs(column - c)) * xs[index({{n, 2}, {channel, 4}, {r, 5}, {c, 6}})];
              sum += value * m[index({{n, 2}, {set, 2}, {k, 4}, {i, 3}, {j, 3}})] * w[index({{out, 4}, {in, 2}, {k, 4}})];
            }
          expected.push_back(sum);
        }
  check_close(y, {2, 4, 3, 3}, expected);
}

TEST_CASE("CausalConvWithState: pieces of a sequence give what the whole gives") {
  const Tensor x = filled({2, 3, 9}, 1), weight = filled({3, 1, 4}, 2), bias = filled({3}, 3);
  Builder b;
  b.input("x").input("w").input("b").input("state").output("y").output("next");
  b.node("CausalConvWithState", {"x", "w", "b", "state"}, {"y", "next"}, {attribute("activation", std::string("silu"))});
  auto model = loaded(b, 27);
  const auto whole = model.run({x, weight, bias, zeros({2, 3, 3})});
  const auto first = model.run({slice(x, 2, 0, 2), weight, bias, zeros({2, 3, 3})});
  const auto second = model.run({slice(x, 2, 2, 9), weight, bias, first[1]});
  CHECK(all(is_close(concat({first[0], second[0]}, 2), whole[0])).item<bool>());
  CHECK(equal(second[1], slice(x, 2, 6, 9)));
  const auto xs = x.to_vector<double>(), w = weight.to_vector<double>(), c = bias.to_vector<double>();
  Doubles expected;
  for (int line = 0; line < 6; ++line)
    for (int t = 0; t < 9; ++t) {
      double sum = c[static_cast<std::size_t>(line % 3)];
      for (int k = 0; k < 4; ++k)
        if (t + k >= 3) sum += xs[static_cast<std::size_t>(line * 9 + t + k - 3)] * w[static_cast<std::size_t>(line % 3 * 4 + k)];
      expected.push_back(sum / (1 + std::exp(-sum)));
    }
  check_close(whole[0], {2, 3, 9}, expected);
}

TEST_CASE("LinearAttention: a state that decays, is corrected and read") {
  // Two heads of q for one of k and v, keys of 3 and values of 2.
  const Tensor q = filled({1, 5, 6}, 1), k = filled({1, 5, 3}, 2), v = filled({1, 5, 2}, 3), decay = filled({1, 5, 3}, 4) - 1.0,
               beta = filled({1, 5, 1}, 5);
  Builder b;
  for (const auto* name : {"q", "k", "v", "decay", "beta"}) b.input(name);
  b.output("y").output("state").node("LinearAttention", {"q", "k", "v", "", "decay", "beta"}, {"y", "state"},
                                     {attribute("q_num_heads", std::int64_t{2}), attribute("kv_num_heads", std::int64_t{1})});
  const auto outputs = loaded(b, 27).run({q, k, v, decay, beta});
  const auto qs = q.to_vector<double>(), ks = k.to_vector<double>(), vs = v.to_vector<double>(), d = decay.to_vector<double>(),
             bs = beta.to_vector<double>();
  Doubles state(6), expected;
  for (std::size_t t = 0; t < 5; ++t) {
    for (std::size_t i = 0; i < 6; ++i) state[i] *= std::exp(d[t * 3 + i / 2]);
    double value[2];
    for (std::size_t j = 0; j < 2; ++j) {
      value[j] = vs[t * 2 + j];
      for (std::size_t i = 0; i < 3; ++i) value[j] -= state[i * 2 + j] * ks[t * 3 + i];
      value[j] *= bs[t];
    }
    for (std::size_t i = 0; i < 6; ++i) state[i] += ks[t * 3 + i / 2] * value[i % 2];
    for (std::size_t head = 0; head < 2; ++head)
      for (std::size_t j = 0; j < 2; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < 3; ++i) sum += qs[t * 6 + head * 3 + i] * state[i * 2 + j];
        expected.push_back(sum / std::sqrt(3.0));
      }
  }
  check_close(outputs[0], {1, 5, 4}, expected);
  check_close(outputs[1], {1, 1, 3, 2}, state);
}

TEST_CASE("FlexAttention: scores go through a graph of the file") {
  Builder graph, b;
  graph.input("s").output("t").initializer("more", {2}, {0.5, -1}).node("Add", {"s", "more"}, {"t"});
  b.input("q").input("k").input("v").output("y");
  b.node("FlexAttention", {"q", "k", "v"}, {"y"}, {graph_attribute("score_mod", graph.graph())}, "ai.onnx.preview");
  const Tensor q = filled({1, 2, 3, 4}, 1), k = filled({1, 1, 2, 4}, 2), v = filled({1, 1, 2, 5}, 3);
  const auto qs = q.to_vector<double>(), ks = k.to_vector<double>(), vs = v.to_vector<double>();
  Doubles expected;
  for (std::size_t line = 0; line < 6; ++line) {
    double weight[2] = {};
    for (std::size_t key = 0; key < 2; ++key) {
      for (std::size_t i = 0; i < 4; ++i) weight[key] += qs[line * 4 + i] * ks[key * 4 + i] / 2;
      weight[key] = std::exp(weight[key] + (key == 0 ? 0.5 : -1));
    }
    for (std::size_t j = 0; j < 5; ++j) expected.push_back((weight[0] * vs[j] + weight[1] * vs[5 + j]) / (weight[0] + weight[1]));
  }
  check_close(loaded(b, 26).run({q, k, v})[0], {1, 2, 3, 5}, expected);
}

TEST_CASE("Attention: scores are capped before they are masked, windows limit keys, and who sees none gives zeros") {
  const Tensor q = filled({1, 1, 3, 2}, 1) * 4.0, k = filled({1, 1, 3, 2}, 2) * 4.0, v = filled({1, 1, 3, 2}, 3);
  const auto qs = q.to_vector<double>(), ks = k.to_vector<double>(), vs = v.to_vector<double>();
  const Tensor mask = Tensor::from({0.0F, 2.0F, -1.0F, 1.0F, 0.0F, 3.0F, 0.0F, 0.0F, 0.0F}, {3, 3});
  const auto ms = mask.to_vector<double>();
  Doubles expected;
  for (std::size_t i = 0; i < 3; ++i) {
    double weight[3], sum = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      const double score = (qs[2 * i] * ks[2 * j] + qs[2 * i + 1] * ks[2 * j + 1]) / std::sqrt(2.0);
      // At most one key back, none ahead.
      weight[j] = j > i || j + 1 < i ? 0 : std::exp(std::tanh(score / 1.5) * 1.5 + ms[3 * i + j]);
      sum += weight[j];
    }
    for (std::size_t d = 0; d < 2; ++d)
      expected.push_back((weight[0] * vs[d] + weight[1] * vs[2 + d] + weight[2] * vs[4 + d]) / sum);
  }
  auto model = one_node(
      "Attention", 4,
      {attribute("softcap", 1.5F), attribute("is_causal", std::int64_t{1}), attribute("left_window_size", std::int64_t{1})});
  check_close(model.run({q, k, v, mask})[0], {1, 1, 3, 2}, expected);
  const Tensor nothing = zeros({3, 3}, Dtype::boolean);
  check_close(model.run({q, k, v, nothing})[0], {1, 1, 3, 2}, Doubles(6));
}

TEST_CASE("Unique: values, first places, inverse and counts") {
  const Tensor x = Tensor::from({2.0F, 1.0F, 1.0F, 3.0F, 4.0F, 3.0F});
  const auto sorted = one_node("Unique", 1, {}, 27, 4).run({x});
  CHECK(sorted[0].to_vector<int>() == std::vector<int>{1, 2, 3, 4});
  CHECK(sorted[1].to_vector<int>() == std::vector<int>{1, 0, 3, 4});
  CHECK(sorted[2].to_vector<int>() == std::vector<int>{1, 0, 0, 2, 3, 2});
  CHECK(sorted[3].to_vector<int>() == std::vector<int>{2, 1, 2, 1});
  const auto found = one_node("Unique", 1, {attribute("sorted", std::int64_t{0})}, 27, 4).run({x});
  CHECK(found[0].to_vector<int>() == std::vector<int>{2, 1, 3, 4});
  CHECK(found[1].to_vector<int>() == std::vector<int>{0, 1, 3, 4});
  CHECK(found[2].to_vector<int>() == std::vector<int>{0, 1, 1, 2, 3, 2});
  CHECK(found[3].to_vector<int>() == std::vector<int>{1, 2, 2, 1});
  const Tensor rows = Tensor::from({1.0F, 0.0F, 1.0F, 0.0F, 2.0F, 3.0F}, {3, 2});
  const auto lines = one_node("Unique", 1, {attribute("axis", std::int64_t{0})}, 27, 4).run({rows});
  CHECK(lines[0].to_vector<int>() == std::vector<int>{1, 0, 2, 3});
  CHECK(lines[1].to_vector<int>() == std::vector<int>{0, 2});
  CHECK(lines[2].to_vector<int>() == std::vector<int>{0, 0, 1});
}

TEST_CASE("TensorScatter: writes into a cache, over its end where it is circular") {
  const Tensor cache = zeros({2, 3, 1}), update = Tensor::from({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2, 1}),
               at = Tensor::from(List{0, 2});
  auto model = one_node("TensorScatter", 3, {attribute("mode", std::string("circular"))});
  CHECK(model.run({cache, update, at})[0].to_vector<int>() == std::vector<int>{1, 2, 0, 4, 0, 3});
}

TEST_CASE("TfIdfVectorizer: counts of sequences, with and without elements left out") {
  const std::vector<std::string> pool{
      attribute("mode", std::string("TF")),          attribute("min_gram_length", std::int64_t{1}),
      attribute("max_gram_length", std::int64_t{2}), attribute("ngram_counts", List{0, 2}),
      attribute("ngram_indexes", List{3, 1, 0, 2}),  attribute("pool_int64s", List{2, 3, 5, 6, 7, 8})};
  const Tensor x = Tensor::from(List{2, 5, 7, 6, 8, 2}, {1, 6});
  for (const std::int64_t skips : {0, 1}) {
    auto attributes = pool;
    attributes.push_back(attribute("max_skip_count", skips));
    // 2 is there twice, at place 3; 5 and 6, and 7 and 8, are pairs with one element between.
    const Tensor y = one_node("TfIdfVectorizer", 1, attributes).run({x})[0];
    CHECK(y.to_vector<int>() == std::vector<int>{skips == 1 ? 1 : 0, 0, skips == 1 ? 1 : 0, 2});
  }
}

TEST_CASE("BitCast: the same bits") {
  const auto cast_to = [](const Tensor& x, std::int64_t type) {
    return one_node("BitCast", 1, {attribute("to", type)}).run_values({x})[0];
  };
  const auto ints = cast_to(Tensor::from({1.0F, -2.0F}), static_cast<std::int64_t>(Type::i32));
  CHECK(ints.tensor.to_vector<std::int32_t>() == std::vector<std::int32_t>{0x3F800000, static_cast<std::int32_t>(0xC0000000)});
  CHECK(cast_to(ints.tensor, static_cast<std::int64_t>(Type::f32)).tensor.to_vector<float>() == std::vector<float>{1, -2});
  const auto bytes = cast_to(cast(Tensor::from({-1, 5}), Dtype::i8), static_cast<std::int64_t>(Type::u8));
  CHECK(bytes.tensor.to_vector<int>() == std::vector<int>{255, 5});
}

TEST_CASE("integer products are exact, and wrap around") {
  const Tensor a = Tensor::from({16777217, 3, -5, 2147483647}, {2, 2}), b = Tensor::from({1, 3, 7, -2}, {2, 2});
  const auto product = [&](const Tensor& x, const Tensor& y) { return one_node("MatMul", 2).run({x, y})[0]; };
  CHECK(product(a, b).to_vector<std::int64_t>() == List{16777238, 50331645, 2147483636, -13});
  const Tensor wide = product(cast(a, Dtype::i64), cast(b, Dtype::i64));
  CHECK(wide.to_vector<std::int64_t>() == List{16777238, 50331645, 15032385524, -4294967309});
  const Tensor rest = one_node("Gemm", 3, {attribute("transB", std::int64_t{1})}).run({a, b, Tensor::from({1, 2})})[0];
  CHECK(rest.to_vector<std::int64_t>() == List{16777227, 117440515, 2147483641, -31});
}

TEST_CASE("extremes of no element are those of the type") {
  const Tensor axes = Tensor::from(List{1});
  CHECK(one_node("ReduceMax", 2).run({zeros({2, 0}), axes})[0].to_vector<float>() == std::vector<float>(2, -INFINITY));
  CHECK(one_node("ReduceMin", 2).run({zeros({2, 0}), axes})[0].to_vector<float>() == std::vector<float>(2, INFINITY));
}

TEST_CASE("SequenceMap and optional values") {
  Builder body, b;
  body.input("a").input("b").output("c").node("Add", {"a", "b"}, {"c"});
  b.input("x").input("y").output("sum", Type::f32).output("has", Type::boolean).output("none", Type::boolean);
  b.node("SequenceConstruct", {"x", "y"}, {"all"});
  b.node("SequenceMap", {"all", "x"}, {"sums"}, {graph_attribute("body", body.graph())});
  b.node("ConcatFromSequence", {"sums"}, {"sum"}, {attribute("axis", std::int64_t{0})});
  b.node("Optional", {"x"}, {"some"}).node("OptionalHasElement", {"some"}, {"has"});
  b.node("Optional", {}, {"nothing"}).node("OptionalHasElement", {"nothing"}, {"none"});
  const auto outputs = loaded(b, 18).run({Tensor::from({1.0F}), Tensor::from({5.0F})});
  CHECK(outputs[0].to_vector<float>() == std::vector<float>{2, 6});
  CHECK(outputs[1].item<bool>());
  CHECK_FALSE(outputs[2].item<bool>());
}

TEST_CASE("a scan of set 8 goes as far as each sequence's length") {
  Builder body, b;
  body.input("sum").input("next").output("total").output("told");
  body.node("Add", {"sum", "next"}, {"total"}).node("Identity", {"total"}, {"told"});
  b.input("lengths", Type::i64).input("start").input("x").output("y").output("all");
  b.node("Scan", {"lengths", "start", "x"}, {"y", "all"},
         {graph_attribute("body", body.graph()), attribute("num_scan_inputs", std::int64_t{1})});
  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F, 10.0F, 20.0F, 30.0F}, {2, 3, 1});
  const auto outputs = loaded(b, 8).run({Tensor::from(List{2, 3}), zeros({2, 1}), x});
  CHECK(outputs[0].to_vector<int>() == std::vector<int>{3, 60});
  CHECK(outputs[1].to_vector<int>() == std::vector<int>{1, 3, 0, 10, 30, 60});
}

TEST_CASE("a loop without a turn gives empty outputs of the declared type") {
  Builder body, b;
  body.input("i", Type::i64).input("go", Type::boolean).input("v");
  body.node("Identity", {"go"}, {"more"}).node("Identity", {"v"}, {"next"}).node("Identity", {"i"}, {"told"});
  body.output("more", Type::boolean).output("next").output("told", Type::i64);
  b.input("n", Type::i64).input("x").output("last").output("turns", Type::i64);
  b.node("Loop", {"n", "", "x"}, {"last", "turns"}, {graph_attribute("body", body.graph())});
  auto model = loaded(b, 18);
  const auto outputs = model.run_values({Tensor::scalar(0, Dtype::i64), ones({2})});
  CHECK(outputs[1].type == "int64");
  CHECK(outputs[1].tensor.numel() == 0);
  CHECK(model.run({Tensor::scalar(2, Dtype::i64), ones({2})})[1].to_vector<int>() == std::vector<int>{0, 1});
}

TEST_CASE("RoiAlign: the largest weighted pixel of a bin") {
  // A box of one bin with one sample in the middle of four pixels.
  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F, 8.0F}, {1, 1, 2, 2}), box = Tensor::from({0.0F, 0.0F, 1.0F, 1.0F}, {1, 4});
  auto model = one_node("RoiAlign", 3,
                        {attribute("mode", std::string("max")), attribute("sampling_ratio", std::int64_t{1}),
                         attribute("coordinate_transformation_mode", std::string("output_half_pixel"))},
                        16);
  check_close(model.run({x, box, Tensor::from(List{0})})[0], {1, 1, 1, 1}, {2});
}

TEST_CASE("MaxRoiPool: the largest pixel of each bin") {
  const Tensor x = filled({2, 2, 6, 7}, 3),
               boxes = Tensor::from({1.0F, 2.0F, 0.0F, 9.0F, 7.0F, 0.0F, 4.0F, 2.0F, 4.0F, 2.0F}, {2, 5});
  auto model = one_node("MaxRoiPool", 2, {attribute("pooled_shape", List{2, 3}), attribute("spatial_scale", 0.5F)}, 18);
  // Halved and rounded: columns 1 to 5 and rows 0 to 4 of image 1, pixel (1, 2) of image 0.
  const auto xs = x.to_vector<double>();
  const int first[2][3] = {{1, 2, 4}, {0, 2, 0}}, last[2][3] = {{2, 4, 5}, {2, 4, 0}};
  Doubles expected;
  for (int channel = 0; channel < 2; ++channel)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j) {
        double largest = -10;
        for (int row = first[1][i]; row <= last[1][i]; ++row)
          for (int column = first[0][j]; column <= last[0][j]; ++column)
            largest = std::max(largest, xs[static_cast<std::size_t>(((2 + channel) * 6 + row) * 7 + column)]);
        expected.push_back(largest);
      }
  for (int channel = 0; channel < 2; ++channel)
    for (int i = 0; i < 6; ++i) expected.push_back(xs[static_cast<std::size_t>((channel * 6 + 1) * 7 + 2)]);
  check_close(model.run({x, boxes})[0], {2, 2, 2, 3}, expected);
}

TEST_CASE("Dropout with a seed keeps what NumPy's generator says") {
  // numpy.random.seed(0); numpy.random.uniform(size=6) >= 0.55 is [0, 1, 1, 0, 0, 1].
  Builder b;
  b.input("x").initializer("ratio", {}, {0.55}).initializer("trains", {}, {1}, Type::boolean).output("y");
  b.node("Dropout", {"x", "ratio", "trains"}, {"y"}, {attribute("seed", std::int64_t{0})});
  const auto y = loaded(b, 13).run({ones({6})})[0].to_vector<double>();
  const double kept = 1 / 0.45;
  check_close(Tensor::from(y), {6}, {0, kept, kept, 0, 0, kept});
}

TEST_CASE("integers of 64 bits without a sign, in the upper half") {
  constexpr std::uint64_t top = std::uint64_t{1} << 63;
  const std::vector<std::uint64_t> a{top + 10, 7, top * 2 - 1, 100}, b{3, top + 1, top, 7};
  const auto value = [](const std::vector<std::uint64_t>& numbers) {
    List bits(numbers.size());
    std::memcpy(bits.data(), numbers.data(), numbers.size() * sizeof(std::int64_t));
    onnx::Value out(Tensor::from(bits));
    out.type = "uint64";
    return out;
  };
  const auto run = [&](const std::string& op, const std::vector<std::string>& attributes = {}) {
    return one_node(op, 2, attributes).run_values({value(a), value(b)})[0].tensor.to_vector<std::int64_t>();
  };
  const auto expected = [&](auto f) {
    List out;
    for (std::size_t i = 0; i < a.size(); ++i) out.push_back(static_cast<std::int64_t>(f(a[i], b[i])));
    return out;
  };
  using u64 = std::uint64_t;
  CHECK(run("Div") == expected([](u64 x, u64 y) { return x / y; }));
  CHECK(run("Mod") == expected([](u64 x, u64 y) { return x % y; }));
  CHECK(run("Max") == expected([](u64 x, u64 y) { return std::max(x, y); }));
  CHECK(run("Min") == expected([](u64 x, u64 y) { return std::min(x, y); }));
  CHECK(run("Less") == expected([](u64 x, u64 y) { return x < y; }));
  CHECK(run("GreaterOrEqual") == expected([](u64 x, u64 y) { return x >= y; }));
  const auto shifted = one_node("BitShift", 2, {attribute("direction", std::string("RIGHT"))})
                           .run_values({value(a), value({0, 1, 63, 2})})[0]
                           .tensor.to_vector<std::int64_t>();
  CHECK(shifted == List{static_cast<std::int64_t>(top + 10), 3, 1, 25});
  const auto to = [](Type type) { return std::vector<std::string>{attribute("to", static_cast<std::int64_t>(type))}; };
  const Tensor floats = one_node("Cast", 1, to(Type::f32)).run_values({value(a)})[0].tensor;
  CHECK(floats.to_vector<float>() == std::vector<float>{0x1p63F, 7, 0x1p64F, 100});
  const auto back = one_node("Cast", 1, to(Type::u64)).run({slice(floats, 0, 0, 2)})[0].to_vector<std::int64_t>();
  CHECK(back == List{static_cast<std::int64_t>(top), 7});
}

TEST_CASE("Pow of integers by exponents of data") {
  const Tensor base = Tensor::from({2, -3, 46341, -1, 1, 5, 7}), exponent = Tensor::from({30, 5, 2, -3, -4, -1, 0});
  const auto y = one_node("Pow", 2).run({base, exponent})[0];
  // 46341^2 wraps around in 32 bits.
  CHECK(y.to_vector<std::int64_t>() == List{1073741824, -243, -2147479015, -1, 1, 0, 1});
}

TEST_CASE("pools with long pads in ceil_mode, and windows that do not fit") {
  const Tensor x = Tensor::from({1.0F, -2.0F, 3.0F, 5.0F, 4.0F}, {1, 1, 5});
  // Windows of 3 from -2, 0 and 2; that from 4 begins in the input, and 5 does not.
  const std::vector<std::string> attributes{attribute("kernel_shape", List{3}), attribute("strides", List{2}),
                                            attribute("pads", List{2, 2}), attribute("ceil_mode", std::int64_t{1})};
  CHECK(one_node("MaxPool", 1, attributes, 18).run({x})[0].to_vector<int>() == std::vector<int>{1, 3, 5, 4});
  check_close(one_node("AveragePool", 1, attributes, 18).run({x})[0], {1, 1, 4}, {1, 2.0 / 3, 4, 4});
  auto counting = attributes;
  counting.push_back(attribute("count_include_pad", std::int64_t{1}));
  check_close(one_node("AveragePool", 1, counting, 18).run({x})[0], {1, 1, 4}, {1.0 / 3, 2.0 / 3, 4, 4.0 / 3});
  auto model = one_node("LpPool", 1, {attribute("kernel_shape", List{7})}, 18);
  CHECK_THROWS_WITH(model.run({x}), Catch::Contains("LpPool: a window of 7 is larger than the padded input of 5"));
}

TEST_CASE("a quantized convolution of more products than one exact sum has") {
  const std::int64_t channels = 600;
  std::vector<std::int32_t> x, w;
  for (std::int64_t i = 0; i < 2 * channels * 4; ++i) x.push_back(static_cast<std::int32_t>(255 - i % 3));
  for (std::int64_t i = 0; i < 2 * channels * 4; ++i) w.push_back(static_cast<std::int32_t>(127 - i % 5));
  const Tensor bytes = cast(Tensor::from(x, {1, 2 * channels, 4}), Dtype::u8);
  const Tensor weight = cast(Tensor::from(w, {2, channels, 4}), Dtype::i8);
  const auto y = one_node("ConvInteger", 2, {attribute("group", std::int64_t{2})}, 18).run({bytes, weight})[0];
  List expected(2);
  for (std::size_t i = 0; i < x.size(); ++i) expected[i / (static_cast<std::size_t>(channels) * 4)] += std::int64_t{x[i]} * w[i];
  CHECK(y.to_vector<std::int64_t>() == expected);
}

TEST_CASE("SAME begins at the first element where strides leave some out") {
  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {1, 1, 6});
  for (const char* op : {"AveragePool", "MaxPool"})
    for (const char* same : {"SAME_UPPER", "SAME_LOWER"}) {
      CAPTURE(op, same);
      const auto y =
          one_node(op, 1,
                   {attribute("kernel_shape", List{1}), attribute("strides", List{3}), attribute("auto_pad", std::string(same))},
                   19)
              .run({x})[0];
      check_close(y, {1, 1, 2}, {1, 4});
    }
}

TEST_CASE("what operator set 28 adds") {
  const Tensor a = Tensor::from({1.0F, -2.0F, 0.5F}), b = Tensor::from({3.0F, 4.0F, -8.0F});
  const auto gated = [&](double alpha) {
    std::vector<double> y;
    const std::vector<double> gates{1, -2, 0.5}, values{3, 4, -8};
    for (std::size_t i = 0; i < gates.size(); ++i) y.push_back(gates[i] / (1 + std::exp(-alpha * gates[i])) * values[i]);
    return y;
  };
  check_close(one_node("SwiGLU", 2, {}, 28).run({a, b})[0], {3}, gated(1));
  check_close(one_node("SwiGLU", 2, {attribute("alpha", 1.702F)}, 28).run({a, b})[0], {3}, gated(1.702F));
  CHECK_THROWS_WITH(one_node("SwiGLU", 2, {}, 28).run({a, Tensor::from({3.0F})}),
                    Catch::Contains("SwiGLU: a gate [3] of values [1]"));
  const auto missing = one_node("SwiGLU", 2, {}, 27).missing_operators();
  REQUIRE(missing.size() == 1);
  CHECK(missing[0] == onnx::MissingOperator{"SwiGLU", 27, "the_SwiGLU"});

  // Channels of two 2x2 blocks: 0..15 and 16..31 in rows of four.
  const Tensor x = reshape(cast(arange(32), Dtype::f32), {1, 2, 4, 4});
  const auto first_of_blocks = [&](const std::string& mode) {
    const auto y =
        one_node("SpaceToDepth", 1, {attribute("blocksize", std::int64_t{2}), attribute("mode", mode)}, 28).run({x})[0];
    REQUIRE(y.shape() == Shape{1, 8, 2, 2});
    return slice(slice(y, 2, 0, 1), 3, 0, 1).to_vector<int>();
  };
  CHECK(first_of_blocks("DCR") == std::vector<int>{0, 16, 1, 17, 4, 20, 5, 21});
  CHECK(first_of_blocks("CRD") == std::vector<int>{0, 1, 4, 5, 16, 17, 20, 21});
  CHECK_THROWS_WITH(first_of_blocks("RCD"), Catch::Contains("SpaceToDepth: the mode is \"RCD\""));

  // The quotient rounded down, also of floats: the result has the divisor's sign, a 0 too.
  const float inf = std::numeric_limits<float>::infinity();
  const auto rest = one_node("Mod", 2, {}, 28)
                        .run({Tensor::from({-7.5F, 7.5F, -4.0F, 4.0F, 0.0F, -1.0F, 1.0F, 1.0F, inf}),
                              Tensor::from({2.0F, -2.0F, 2.0F, -2.0F, -3.0F, inf, inf, 0.0F, 2.0F})})[0]
                        .to_vector<float>();
  const std::vector<float> wanted{0.5F, -0.5F, 0.0F, -0.0F, -0.0F, inf, 1.0F};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(rest[i] == wanted[i]);
    CHECK(std::signbit(rest[i]) == std::signbit(wanted[i]));
  }
  CHECK(std::isnan(rest[7]));
  CHECK(std::isnan(rest[8]));

  // Shifts of numbers with a sign, and by more than they have bits.
  const auto shifted = [](const std::string& direction, Dtype dtype, const std::vector<std::int32_t>& numbers,
                          const std::vector<std::int32_t>& by) {
    return one_node("BitShift", 2, {attribute("direction", direction)}, 28)
        .run({cast(Tensor::from(numbers), dtype), cast(Tensor::from(by), dtype)})[0]
        .to_vector<std::int64_t>();
  };
  for (const auto dtype : {Dtype::i8, Dtype::i32, Dtype::i64}) {
    CAPTURE(to_string(dtype));
    CHECK(shifted("RIGHT", dtype, {-8, -1, 8, -8, 8, -8, 8}, {1, 3, 2, 100, 100, -1, -1}) == List{-4, -1, 2, -1, 0, -1, 0});
    CHECK(shifted("LEFT", dtype, {-8, 3, 8, 8}, {1, 2, 100, -1}) == List{-16, 12, 0, 0});
  }
  CHECK(shifted("LEFT", Dtype::i8, {64, 127}, {1, 1}) == List{-128, -2});
}
