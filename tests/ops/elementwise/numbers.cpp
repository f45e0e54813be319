// Numbers: C++ numbers beside tensors, counts inside gradients, and how values are read.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "clnet/clnet.h"
#include "lib/cl/quirks.h"
#include "lib/exec/statistics.h"
#include "lib/graph/node.h"
#include "lib/graph/op.h"
#include "tests/ops/check.h"
#include "tests/support/skip.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Tensor halves(std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  Array array({count}, std::move(values));
  return to_tensor(array, Dtype::f16);
}

}  // namespace

TEST_CASE("a number beside a floating tensor is f32, and the result has the tensor's dtype") {
  const Tensor x = halves({1000, 3, 60000, 1});
  // 0.1 in f16 is 0.09998: the product of 1000 would be 99.94 there.
  CHECK((x * 0.1).dtype() == Dtype::f16);
  CHECK(to_array(x * 0.1).values == to_array(halves({100, 3 * double{0.1F}, 60000 * double{0.1F}, 0.1})).values);
  // A number that f16 has not: infinite, or 0.
  CHECK(to_array(x / 90000.0)[2] == Approx(60000.0 / 90000).epsilon(1e-3));
  CHECK(to_array(x * 1e-8)[2] == Approx(6e-4).epsilon(1e-3));
  CHECK(to_array(100000.0 / x)[2] == Approx(100000.0 / 60000).epsilon(1e-3));
  CHECK(to_array(maximum(cast(x, Dtype::bf16), 257.0)).values == std::vector<double>{1000, 256, 59904, 256});
  CHECK(less(x, 1e6).to_vector<bool>() == std::vector<bool>(4, true));
  CHECK((1.0 - x).dtype() == Dtype::f16);
}

TEST_CASE("an integer tensor keeps its dtype beside an integral number and becomes f32 beside a fraction") {
  const Tensor i = Tensor::from<std::int32_t>({3, -3, 7});
  CHECK((i * 0.5).dtype() == Dtype::f32);
  CHECK((i * 0.5).to_vector<float>() == std::vector<float>{1.5F, -1.5F, 3.5F});
  CHECK((i * 2.0).dtype() == Dtype::i32);
  CHECK((7.0 - i).to_vector<std::int32_t>() == std::vector<std::int32_t>{4, 10, 0});
  CHECK((i / 2.0).to_vector<std::int32_t>() == std::vector<std::int32_t>{1, -1, 3});
  CHECK(minimum(i, 2.5).to_vector<float>() == std::vector<float>{2.5F, -3, 2.5F});
  CHECK((i * 1e30).to_vector<float>()[0] == 3 * 1e30F);
  CHECK(is_nan(i + not_a_number).to_vector<bool>() == std::vector<bool>(3, true));

  const std::int64_t large = (std::int64_t{1} << 53) + 2;
  const Tensor l = Tensor::from<std::int64_t>({large, -large, 1});
  CHECK((l + 1.0).to_vector<std::int64_t>() == std::vector<std::int64_t>{large + 1, -large + 1, 2});
  CHECK((l - 0x1p40).to_vector<std::int64_t>()[2] == 1 - (std::int64_t{1} << 40));

  const Tensor u = Tensor::from<std::uint8_t>({1, 200, 255});
  CHECK((u + 1.0).dtype() == Dtype::u8);
  CHECK((u - 1.0).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{0, 199, 254});
  CHECK((u * 1.5).to_vector<float>() == std::vector<float>{1.5F, 300, 382.5F});
  const Tensor b = Tensor::from<std::uint8_t>({1, 0, 1});
  CHECK((cast(b, Dtype::boolean) + 1.0).dtype() == Dtype::i64);
  CHECK((cast(b, Dtype::boolean) + 1.0).to_vector<std::int64_t>() == std::vector<std::int64_t>{2, 1, 2});
  CHECK((cast(b, Dtype::boolean) * 0.5).to_vector<float>() == std::vector<float>{0.5F, 0, 0.5F});
  CHECK_THROWS_WITH(pow(i, 2.0), Contains("pow") && Contains("i32"));
}

TEST_CASE("integers are compared with numbers exactly") {
  const Tensor i = Tensor::from<std::int32_t>({3, 4, 16777217, -4});
  using Bools = std::vector<bool>;
  CHECK(less(i, 3.5).to_vector<bool>() == Bools{true, false, false, true});
  CHECK(less_equal(i, 3.5).to_vector<bool>() == Bools{true, false, false, true});
  CHECK(greater(i, 3.5).to_vector<bool>() == Bools{false, true, true, false});
  CHECK(greater_equal(i, -3.5).to_vector<bool>() == Bools{true, true, true, false});
  CHECK(less(3.5, i).to_vector<bool>() == Bools{false, true, true, false});
  CHECK(greater_equal(3.5, i).to_vector<bool>() == Bools{true, false, false, true});
  CHECK(greater(i, 16777216.5).to_vector<bool>() == Bools{false, false, true, false});
  CHECK(eq(i, 16777216.5).to_vector<bool>() == Bools(4, false));
  CHECK(not_equal(i, 3.5).to_vector<bool>() == Bools(4, true));
  CHECK(less(i, 1e30).to_vector<bool>() == Bools(4, true));
  CHECK(less(i, infinity).to_vector<bool>() == Bools(4, true));
  CHECK(less(i, not_a_number).to_vector<bool>() == Bools(4, false));
  CHECK(less(i, 0x1p40).to_vector<bool>() == Bools(4, true));
  const Tensor u = Tensor::from<std::uint8_t>({0, 255});
  CHECK(less(u, 256.0).to_vector<bool>() == Bools(2, true));
  CHECK(greater(u, -1.0).to_vector<bool>() == Bools(2, true));
  CHECK(eq(u, 511.0).to_vector<bool>() == Bools(2, false));
}

TEST_CASE("integers are compared exactly with numbers at and beyond the ends of their dtypes") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  // Rounded to a float, the first two are 2^63, and the last two -2^63.
  const std::vector<std::int64_t> integers{most, most - 1000, 0, least + 1, least};
  const Tensor l = Tensor::from(integers, {5});
  for (const double number : {0x1p63, 0x1p63 + 2048, -0x1p63, -0x1p63 - 2048, 0x1p63 - 1024, -0x1p63 + 1024, 1e30, -1e30,
                              infinity, -infinity, not_a_number}) {
    INFO(number);
    std::vector<bool> under, over, same;
    for (const auto integer : integers) {
      // A long double has all bits of an i64.
      under.push_back(static_cast<long double>(integer) < static_cast<long double>(number));
      over.push_back(static_cast<long double>(integer) > static_cast<long double>(number));
      same.push_back(static_cast<long double>(integer) == static_cast<long double>(number));
    }
    const auto either = [](std::vector<bool> a, const std::vector<bool>& b) {
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = a[i] || b[i];
      return a;
    };
    auto other = same;
    other.flip();
    CHECK(less(l, number).to_vector<bool>() == under);
    CHECK(greater(number, l).to_vector<bool>() == under);
    CHECK(less_equal(l, number).to_vector<bool>() == either(under, same));
    CHECK(greater(l, number).to_vector<bool>() == over);
    CHECK(less(number, l).to_vector<bool>() == over);
    CHECK(greater_equal(l, number).to_vector<bool>() == either(over, same));
    CHECK(eq(l, number).to_vector<bool>() == same);
    CHECK(not_equal(number, l).to_vector<bool>() == other);
  }
  using Bools = std::vector<bool>;
  const Tensor i = Tensor::from<std::int32_t>({2147483647, -2147483647 - 1});
  CHECK(less(i, 0x1p31).to_vector<bool>() == Bools(2, true));
  CHECK(eq(i, 0x1p31).to_vector<bool>() == Bools(2, false));
  CHECK(greater_equal(i, -0x1p31).to_vector<bool>() == Bools(2, true));
  CHECK(less(i, 3e9).to_vector<bool>() == Bools(2, true));
  CHECK(greater(i, -3e9).to_vector<bool>() == Bools(2, true));
}

TEST_CASE("a number that an integer dtype does not hold makes the result f32") {
  const Tensor i = Tensor::from<std::int32_t>({3, -3});
  CHECK((i + 3e9).dtype() == Dtype::f32);
  CHECK((i + 3e9).to_vector<float>() == std::vector<float>{3e9F, 3e9F});
  CHECK(maximum(i, 3e9).to_vector<float>() == std::vector<float>{3e9F, 3e9F});
  CHECK((i * 0x1p31).to_vector<float>() == std::vector<float>{0x1.8p32F, -0x1.8p32F});
  CHECK((i * -0x1p31).dtype() == Dtype::i32);
  const Tensor u = Tensor::from<std::uint8_t>({0, 200});
  CHECK(maximum(u, 300.0).to_vector<float>() == std::vector<float>{300, 300});
  CHECK((u + -1.0).to_vector<float>() == std::vector<float>{-1, 199});
  CHECK((u + 255.0).dtype() == Dtype::u8);
  const Tensor s = Tensor::from<std::int8_t>({-128, 127});
  CHECK((s + 128.0).to_vector<float>() == std::vector<float>{0, 255});
  CHECK((s / -128.0).to_vector<std::int8_t>() == std::vector<std::int8_t>{1, 0});
  const Tensor l = Tensor::from<std::int64_t>({1, -1});
  CHECK((l * 0x1p63).to_vector<float>() == std::vector<float>{0x1p63F, -0x1p63F});
  CHECK((l + -0x1p63).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min() + 1, std::numeric_limits<std::int64_t>::max()});
}

TEST_CASE("no gradient of a number is made") {
  const Tensor x = Tensor::from({1.0F, 2.0F}), g = ones({2});
  const auto made = [&](const Tensor& y) {
    const auto& node = node_of(y);
    const auto before = Node::next_sequence();
    const auto result = node->op->vjp(node->inputs, {y}, {g});
    CHECK(result[0].defined() != result[1].defined());
    return Node::next_sequence() - before;
  };
  CHECK(made(x + 2.0) == 0);
  CHECK(made(x - 2.0) == 0);
  CHECK(made(2.0 - x) == 1);
  CHECK(made(x * 2.0) == 1);
  CHECK(made(x / 2.0) == 1);
  const auto both = [&](const Tensor& y) {
    const auto before = Node::next_sequence();
    const auto result = node_of(y)->op->vjp(node_of(y)->inputs, {y}, {g});
    return Node::next_sequence() - before;
  };
  CHECK(made(pow(2.0, x)) < both(pow(x * 1.0, x)));
  CHECK(made(maximum(x, 2.0)) < both(maximum(x, x)));
}

TEST_CASE("a scalar that its dtype cannot hold is an error") {
  CHECK_THROWS_WITH(Tensor::scalar(1e30, Dtype::i32), Contains("1e+30") && Contains("i32"));
  CHECK_THROWS_AS(Tensor::scalar(not_a_number, Dtype::i64), DtypeError);
  CHECK_THROWS_AS(Tensor::scalar(0x1p63, Dtype::i64), DtypeError);
  CHECK_THROWS_AS(full({2}, 256, Dtype::u8), DtypeError);
  CHECK_THROWS_AS(Tensor::scalar(-1, Dtype::u8), DtypeError);
  CHECK(Tensor::scalar(-0x1p63, Dtype::i64).item<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
  CHECK(Tensor::scalar(255.9, Dtype::u8).item<std::uint8_t>() == 255);
}

TEST_CASE("a new number makes no new plan") {
  const Tensor x = halves({1, 2});
  const auto before = exec::statistics();
  for (int n = 0; n < 5; ++n) CHECK(to_array(x * (n + 0.5))[0] == n + 0.5);
  CHECK(exec::statistics().plans_made - before.plans_made <= 1);
}

TEST_CASE("counts inside gradients of f16 and bf16 are f32") {
  constexpr std::int64_t n = 90000;
  for (auto dtype : {Dtype::f16, Dtype::bf16}) {
    INFO(to_string(dtype));
    const Tensor x = ones({n}, dtype);
    const auto of_mean = to_array(gradients(cast(mean(x), Dtype::f32) * 1000.0, {x})[0]);
    CHECK(of_mean[0] == Approx(1000.0 / n).epsilon(0.004));
    // Equal elements share the gradient: 90,000 of them, and 300, which bf16 cannot count to.
    CHECK(to_array(gradients(cast(max(x), Dtype::f32) * 1000.0, {x})[0])[n - 1] == Approx(1000.0 / n).epsilon(0.004));
    const Tensor some = ones({300}, dtype);
    CHECK(to_array(gradients(min(some), {some})[0])[7] == Approx(1.0 / 300).epsilon(0.004));
    CHECK(to_array(gradients(mse_loss(x * 300.0, x * 0.0), {x})[0])[3] == Approx(2 * 300.0 * 300 / n).epsilon(0.01));
  }
}

TEST_CASE("gradients of activations are 0 or 1 far out, and NaN only for NaN") {
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> functions{
      {"relu", relu},
      {"elu", [](const Tensor& x) { return elu(x); }},
      {"celu", [](const Tensor& x) { return celu(x); }},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"gelu tanh", [](const Tensor& x) { return gelu(x, Gelu::tanh); }},
      {"silu", silu},
      {"mish", mish},
      {"hardswish", hardswish},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
  };
  for (auto dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
    for (const auto& [name, function] : functions) {
      INFO(name << " in " << to_string(dtype));
      // More than a vector of each, so that loops of vectors run.
      Array values({5 * 64});
      const double points[] = {infinity, 30000, 1000, -1000, -infinity};
      for (std::int64_t i = 0; i < values.numel(); ++i) values[i] = points[i / 64];
      const Tensor x = to_tensor(values, dtype);
      const auto y = to_array(function(x)), dx = to_array(gradients(sum(function(x)), {x})[0]);
      for (std::int64_t i = 0; i < values.numel(); ++i) {
        INFO("at " << values[i] << ": " << y[i] << ", gradient " << dx[i]);
        REQUIRE(dx[i] == (i / 64 < 3 ? 1 : 0));
        if (i / 64 < 3)
          REQUIRE(y[i] == values[i]);
        else
          REQUIRE((y[i] == 0 || (y[i] == -1 && (name == "elu" || name == "celu"))));
      }
    }
}

TEST_CASE("values are read without a detour") {
  CHECK(Tensor::scalar(16777217, Dtype::i64).item<double>() == 16777217);
  CHECK(Tensor::from<std::int64_t>({(std::int64_t{1} << 53) - 1}).to_vector<double>()[0] == 0x1p53 - 1);
  CHECK(halves({0.5, -2}).to_vector<double>() == std::vector<double>{0.5, -2});
  const Tensor floats = Tensor::from({0.5F, 256.0F, 0.0F, -0.0F, static_cast<float>(not_a_number), 1e-45F});
  CHECK(floats.to_vector<bool>() == std::vector<bool>{true, true, false, false, true, true});
  CHECK(Tensor::scalar(0.5).item<bool>());
  CHECK(Tensor::scalar(256, Dtype::i32).item<bool>());
  CHECK(halves({0.5, 0}).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK(cast(Tensor::from({2.0F, 0.0F}), Dtype::boolean).to_vector<float>() == std::vector<float>{1, 0});
  const Tensor far = Tensor::from({1e30F, -1e30F, static_cast<float>(not_a_number), -1.9F, 255.5F});
  CHECK(far.to_vector<std::int32_t>() == std::vector<std::int32_t>{2147483647, -2147483647 - 1, 0, -1, 255});
  CHECK(far.to_vector<std::uint8_t>() == std::vector<std::uint8_t>{255, 0, 0, 0, 255});
}

TEST_CASE("i8 is stored in bytes and computed in int") {
  if (ocl::has_quirk(Device::current().info(), "llvmpipe-scalar")) {
    clnet::test::skip("llvmpipe's compiler crashes on signed bytes");
    return;
  }
  const Tensor x = Tensor::from<std::int8_t>({-128, -3, 0, 5, 127});
  CHECK(x.dtype() == Dtype::i8);
  CHECK((x + 1.0).to_vector<std::int8_t>() == std::vector<std::int8_t>{-127, -2, 1, 6, -128});
  CHECK((x * 0.5).to_vector<float>() == std::vector<float>{-64, -1.5F, 0, 2.5F, 63.5F});
  CHECK(less(x, -3.5).to_vector<bool>() == std::vector<bool>{true, false, false, false, false});
  CHECK(cast(x, Dtype::f32).to_vector<float>() == std::vector<float>{-128, -3, 0, 5, 127});
  CHECK(cast(cast(x, Dtype::f32), Dtype::i8).to_vector<std::int8_t>() == x.to_vector<std::int8_t>());
  CHECK(sum(x).item<std::int64_t>() == 1);
  CHECK(max(x).item<std::int8_t>() == 127);
  CHECK(argmin(x, 0).item<std::int64_t>() == 0);
  CHECK(relu(x).to_vector<std::int32_t>() == std::vector<std::int32_t>{0, 0, 0, 5, 127});
  CHECK(concat({x, slice(x, 0, 4, 0, -2)}, 0).to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{-128, -3, 0, 5, 127, 127, 0});
  CHECK(maximum(x, -x).to_vector<std::int32_t>() == std::vector<std::int32_t>{-128, 3, 0, 5, 127});
  CHECK_THROWS_AS(exp(x), DtypeError);
}

TEST_CASE("huge options are refused by name instead of running over") {
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  const Tensor x = zeros({1, 1, 8, 8}), w = zeros({1, 1, 3, 3});
  CHECK_THROWS_AS(conv2d(x, w, {}, {.padding = huge}), ShapeError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.padding = huge / 2}), ShapeError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.padding = {1 << 30, 0, 0, 0}}), ShapeError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.dilation = huge}), ShapeError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.groups = huge}), ShapeError);
  CHECK_THROWS_AS(conv_transpose2d(x, w, {}, {.stride = huge}), ShapeError);
  CHECK_THROWS_AS(conv_transpose2d(x, w, {}, {.stride = 1 << 30, .padding = 1 << 30}), ShapeError);
  CHECK(conv2d(x, w, {}, {.stride = 1 << 30}).shape() == Shape{1, 1, 1, 1});
  CHECK(conv2d(x, w, {}, {.stride = 1 << 30}).item<float>() == 0);
  CHECK_THROWS_AS(max_pool2d(x, huge), ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, 3, {.dilation = huge / 2}), ShapeError);
  CHECK_THROWS_AS(avg_pool2d(x, 3, {.stride = huge, .padding = huge}), ShapeError);
  CHECK(max_pool2d(x, 2, {.stride = 1 << 30}).item<float>() == 0);
  CHECK_THROWS_AS(pad(zeros({3}), {huge}, {1}), ShapeError);
  CHECK_THROWS_AS(pad(zeros({3}), {0}, {-huge - 1}), ShapeError);
  CHECK_THROWS_AS(full({3, huge}, 0), ShapeError);
  CHECK_THROWS_AS(arange(huge), ShapeError);
  CHECK(slice(zeros({3}), 0, -huge - 1, huge, huge).shape() == Shape{1});
}

TEST_CASE("integers divided by 0 are 0, and the least one divided by -1 is itself") {
  const auto least = std::numeric_limits<std::int32_t>::min();
  const Tensor a = Tensor::from(std::vector<std::int32_t>{7, -7, 0, least, least, 9, 9, -9}),
               b = Tensor::from(std::vector<std::int32_t>{0, 0, 0, -1, 1, -1, 2, 2});
  CHECK((a / b).to_vector<std::int32_t>() == std::vector<std::int32_t>{0, 0, 0, least, least, -9, 4, -4});
  CHECK((a / 0).to_vector<std::int32_t>() == std::vector<std::int32_t>(8, 0));
  for (const auto dtype : {Dtype::i64, Dtype::i8, Dtype::u8}) {
    INFO(to_string(dtype));
    const Tensor x = cast(Tensor::from({6, 7, 8}), dtype), y = cast(Tensor::from({0, 2, 3}), dtype);
    CHECK((x / y).to_vector<int>() == std::vector<int>{0, 3, 2});
  }
}
