// What users type: operators, numbers in the place of tensors, parts, printing.
#include <array>
#include <catch2/catch.hpp>
#include <concepts>
#include <functional>
#include <sstream>
#include <type_traits>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "tests/ops/values.h"

using namespace clnet;
using testing::counting;
using testing::Floats;
using testing::values_of;

namespace {

template <class T>
std::string printed(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

template <class T>
concept AssignsToElement = requires(T x, const Tensor& y) {
  x[0] = y;
};
template <class T>
concept AssignsToPart = requires(T x, const Tensor& y) {
  x[{0, {1, 2}}] = y;
};
template <class T>
concept AddsToElement = requires(T x) {
  x[0] += 1.0;
};

}  // namespace

TEST_CASE("parts of tensors and of modules, which are handles that are gone at once, cannot be assigned to") {
  // std::vector shows that the concepts can be met.
  static_assert(AssignsToElement<std::vector<Tensor>> && AddsToElement<std::vector<double>>);
  static_assert(!AssignsToElement<Tensor> && !AssignsToPart<Tensor> && !AddsToElement<Tensor>);
  static_assert(std::is_assignable_v<Tensor&, const Tensor&> && std::is_assignable_v<Tensor&, Tensor>);
  static_assert(!std::is_assignable_v<Tensor, const Tensor&> && !std::is_assignable_v<Tensor, Tensor>);
  static_assert(std::is_assignable_v<nn::Parameter&, const nn::Parameter&>);
  static_assert(!std::is_assignable_v<nn::Parameter, const nn::Parameter&>, "model.parameter(a) = model.parameter(b)");
  static_assert(!std::is_assignable_v<nn::Module, const nn::Module&>, "model.child(a) = model.child(b)");
  static_assert(std::copyable<Tensor> && std::is_nothrow_move_constructible_v<Tensor> && std::is_nothrow_swappable_v<Tensor>);
  Tensor x = ones({2, 3});
  x = slice_update(x, 0, 0, zeros({1, 3}));
  CHECK(values_of(x) == Floats{0, 0, 0, 1, 1, 1});
}

TEST_CASE("tensors are made from what is at hand") {
  CHECK(Tensor::from({1.0, 2.5}).spec() == Spec{{2}, Dtype::f32});
  CHECK(values_of(Tensor::from({1.0, 2.5})) == Floats{1, 2.5F});
  CHECK(Tensor::from({1, 2}).dtype() == Dtype::i32);
  std::vector<float> four{1, 2, 3, 4};
  CHECK(Tensor::from(four).shape() == Shape{4});
  CHECK(values_of(Tensor::from(std::span(four).subspan(1, 2))) == Floats{2, 3});
  CHECK(values_of(Tensor::from(std::span<const float>(four), {2, 2})) == four);
  CHECK(values_of(Tensor::from(std::vector<double>{0.5, 1}, {1, 2})) == Floats{0.5F, 1});
  CHECK(Tensor::from({0.1}).to_vector<double>() == std::vector<double>{0.1F});
  CHECK(Tensor::scalar(2).item() == 2.0F);
}

TEST_CASE("tensors are made from the other numbers of C++, and read as these") {
  CHECK(Tensor::from(std::vector<long long>{1, 1LL << 40}).dtype() == Dtype::i64);
  CHECK(Tensor::from({1LL, 2LL}).to_vector<long long>() == std::vector<long long>{1, 2});
  CHECK(Tensor::from({1LL << 40}).item<long long>() == 1LL << 40);
  CHECK(Tensor::from({1LL << 40}).read_async<long long>().item() == 1LL << 40);
  CHECK(values_of(Tensor::from({1, 2.5})) == Floats{1, 2.5F});
  CHECK(Tensor::from({1, 2.5}, {2, 1}).spec() == Spec{{2, 1}, Dtype::f32});
  CHECK(values_of(Tensor::from(std::array<float, 2>{1, 2})) == Floats{1, 2});
  CHECK(Tensor::from(std::array<int, 2>{1, 2}, {1, 2}).spec() == Spec{{1, 2}, Dtype::i32});
  CHECK(Tensor::from(std::vector<bool>{true, false}).to_vector<bool>() == std::vector<bool>{true, false});
  static_assert(is_element_type<long long> && is_element_type<bool> && is_element_type<double>);
  static_assert(!is_element_type<unsigned> && !is_element_type<std::uint64_t> && !is_element_type<std::int16_t> &&
                !is_element_type<char>);
  CHECK_THROWS_WITH(Tensor().item(), "item: the tensor is undefined");
}

TEST_CASE("other parts of a known tensor need no other plan") {
  const auto all = counting(240);
  const Tensor x = Tensor::from(all, {10, 6, 4});
  const auto plans_of = [&](const std::function<Tensor(std::int64_t)>& part) {
    eval({part(0)});
    const auto plans = exec::statistics().plans_made;
    for (std::int64_t i = 1; i < 6; ++i) eval({part(i)});
    return exec::statistics().plans_made - plans;
  };
  CHECK(plans_of([&](std::int64_t i) { return x[i] * 2.0; }) == 0);
  CHECK(plans_of([&](std::int64_t i) { return x[{{i, i + 3}}] * 2.0; }) == 0);
  CHECK(plans_of([&](std::int64_t i) { return x[{{}, {i, i + 1}}] * 2.0; }) == 0);
  CHECK(plans_of([&](std::int64_t i) { return x[{i - 6, i}] * 2.0; }) == 0);

  const auto part = values_of(x[{{2, 4}, 5}]);
  CHECK(part == Floats{68, 69, 70, 71, 92, 93, 94, 95});
  CHECK(x[{{4, 2}}].shape() == Shape{0, 6, 4});
  CHECK(x[{{-3, 100}}].shape() == Shape{3, 6, 4});
  for (const auto dtype : {Dtype::f16, Dtype::bf16, Dtype::i32, Dtype::i64, Dtype::i8, Dtype::u8, Dtype::boolean}) {
    const Tensor y = cast(x, dtype).detach();
    CHECK(y[{3, {1, 3}}].dtype() == dtype);
    CHECK(values_of(y[{3, {1, 3}}]) == values_of(cast(x, dtype)[{3, {1, 3}}]));
  }
  const auto slope = values_of(gradients(sum(square(x[{{1, 3}, 2}])), {x})[0]);
  for (std::size_t i = 0; i < slope.size(); ++i)
    CHECK(slope[i] == ((i / 24 == 1 || i / 24 == 2) && i / 4 % 6 == 2 ? 2 * all[i] : 0));
  CHECK(check_gradients(
            [](const auto& in) {
              return square(in[0][{1, {0, 2}}]);
            },
            {Tensor::from(counting(12), {2, 3, 2})})
            .passed);
}

TEST_CASE("operators on tensors and numbers") {
  const Tensor x = Tensor::from({1.0, 2.0, 3.0}), other = Tensor::from({2.0, 2.0, 2.0});
  Tensor y = x;
  y += x;
  y -= 1.0;
  y *= other;
  y /= 2.0;
  CHECK(values_of(y) == Floats{1, 3, 5});
  CHECK(values_of(x) == Floats{1, 2, 3});
  CHECK((x < other).to_vector<bool>() == std::vector<bool>{true, false, false});
  CHECK((x <= 2.0).to_vector<bool>() == std::vector<bool>{true, true, false});
  CHECK((2.0 > x).to_vector<bool>() == std::vector<bool>{true, false, false});
  CHECK((x >= other).to_vector<bool>() == std::vector<bool>{false, true, true});
}

TEST_CASE("numbers in where and a dimension in sum") {
  const Tensor x = Tensor::from({1.0, -2.0, 3.0, -4.0}, {2, 2});
  CHECK(values_of(where(x > 0.0, x, 0.0)) == Floats{1, 0, 3, 0});
  CHECK(values_of(where(x > 0.0, -1.0, x)) == Floats{-1, -2, -1, -4});
  CHECK(values_of(where(x > 0.0, 1.0, 2.0)) == Floats{1, 2, 1, 2});
  CHECK(where(x > 0.0, cast(x, Dtype::f16), 0.0).dtype() == Dtype::f16);
  CHECK_THROWS_WITH(where(x > 0.0, cast(x, Dtype::i32), 0.5), "where: 0.5 does not fit in i32");
  CHECK(values_of(sum(x, 1)) == Floats{-1, -1});
  CHECK(values_of(sum(x, -2)) == Floats{4, -6});
  CHECK(values_of(max(x, {0, 1})) == Floats{3});
}

TEST_CASE("parts of a tensor, as Python has them") {
  const Tensor x = reshape(arange(24, 0, 1, Dtype::f32), {2, 3, 4});
  CHECK(x[1].shape() == Shape{3, 4});
  CHECK(values_of(x[-1][0]) == Floats{12, 13, 14, 15});
  CHECK(x[{1, 2, 3}].item() == 23);
  CHECK(values_of(x[{0, {}, 1}]) == Floats{1, 5, 9});
  CHECK(values_of(x[{1, {1, 3}, {0, 4, 2}}]) == Floats{16, 18, 20, 22});
  CHECK(x[{{0, -1}}].shape() == Shape{1, 3, 4});
  CHECK(values_of(gradients(sum(x[{0, 1}]), {x})[0][{0, {}, 0}]) == Floats{0, 1, 0});
  CHECK_THROWS_WITH(x[2], "x[...]: there is no element 2 in dimension 0 of f32[2, 3, 4]");
  CHECK_THROWS_WITH((x[{0, {}, -5}]), "x[...]: there is no element -5 in dimension 2 of f32[2, 3, 4]");
  CHECK_THROWS_WITH((x[{{}, {2, 0, -1}}]), "x[...]: the step must be at least 1, not -1, in dimension 1 of f32[2, 3, 4]");
  CHECK_THROWS_WITH((x[{{0, 2, 0}}]), Catch::StartsWith("x[...]: the step must be at least 1, not 0"));
  CHECK_THROWS_WITH((x[{0, 0, 0, 0}]), "x[...]: 4 parts for f32[2, 3, 4]");
  CHECK_THROWS_WITH(x[x > 0.0], Catch::StartsWith("x[...]: of a bool mask; masked_select(x, mask) gives its elements"));
}

TEST_CASE("shapes and dtypes are printed, too") {
  const Tensor x = zeros({2, 3}, Dtype::bf16);
  CHECK(printed(x.shape()) == "[2, 3]");
  CHECK(printed(Shape{}) == "[]");
  CHECK(printed(x.dtype()) == "bf16");
  CHECK(printed(x.spec()) == "bf16[2, 3]");
}

TEST_CASE("tensors are printed as in PyTorch, and shortened") {
  CHECK(printed(Tensor()) == "undefined");
  CHECK(printed(Tensor::scalar(1.5)) == "1.5000 f32[]");
  CHECK(printed(Tensor::from({1.0, -2.0})) == "[ 1., -2.] f32[2]");
  CHECK(printed(Tensor::from({1, 20, 300, 4}, {2, 2})) == "[[  1,  20],\n [300,   4]] i32[2, 2]");
  CHECK(printed(Tensor::from({0.5, 1e-6})) == "[5.0000e-01, 1.0000e-06] f32[2]");
  CHECK(printed(Tensor::from({1.0, 0.0}) / 0.0) == "[inf, nan] f32[2]");
  CHECK(printed(Tensor::from({1.0, -1.0}) > 0.0) == "[ true, false] bool[2]");
  CHECK(printed(zeros({0, 3})) == "[] f32[0, 3]");
  CHECK(printed(arange(2000)) == "[   0,    1,    2, ..., 1997, 1998, 1999] i64[2000]");
  CHECK(printed(zeros({500, 2, 2}, Dtype::f32)).find("...,\n\n") != std::string::npos);
  CHECK(printed(full({1}, 0.25, Dtype::bf16)) == "[0.2500] bf16[1]");
}
