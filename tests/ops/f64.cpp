// Tensors of f64: numbers that f32 does not have, casts, fusion, errors.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>

#include "clnet/clnet.h"
#include "clnet/debug.h"
#include "lib/exec/choose/solver.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet;
using Catch::Matchers::Contains;

namespace {

bool has_doubles() {
  if (Device::current().info().fp64) return true;
  clnet::test::skip("the device has no doubles");
  return false;
}

const std::vector<double> uneven{0.1, -1.0 / 3, 1e300, 5e-300, 12345678.901234567};

}  // namespace

TEST_CASE("f64 is asked for, and keeps doubles exactly") {
  CHECK(Tensor::from({1.0, 2.0}).dtype() == Dtype::f32);
  CHECK(Tensor::from(uneven).dtype() == Dtype::f32);
  const Tensor x = Tensor::from(uneven, {5}, Dtype::f64);
  CHECK(x.spec() == Spec{{5}, Dtype::f64});
  CHECK(x.to_vector<double>() == uneven);
  CHECK(Tensor::from({0.1, 0.2}, {2}, Dtype::f64).to_vector<double>() == std::vector{0.1, 0.2});
  CHECK(Tensor::from({0.1, 0.2}, {2}, Dtype::f16).dtype() == Dtype::f16);
  CHECK_THROWS_AS(Tensor::from({0.1, 0.2}, {2}, Dtype::i32), DtypeError);
  CHECK(Tensor::scalar(0.1, Dtype::f64).item<double>() == 0.1);
  CHECK(to_string(Dtype::f64) == "f64");
  CHECK(size_of(Dtype::f64) == 8);
  CHECK(is_floating(dtype_of<double>));
  std::ostringstream text;
  text << x.spec().dtype;
  CHECK(text.str() == "f64");
}

TEST_CASE("arithmetic in f64 rounds to double, and numbers beside it are doubles") {
  if (!has_doubles()) return;
  const Tensor x = Tensor::from({0.1, 1.0 / 3, 7.7}, {3}, Dtype::f64);
  const auto add = (x + x * 0.1).to_vector<double>();
  const auto values = x.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(add[i] == values[i] + values[i] * 0.1);
  CHECK((x / 3.0).to_vector<double>()[2] == 7.7 / 3.0);
  CHECK(clamp(x, 0.2, 0.7).to_vector<double>() == std::vector{0.2, 1.0 / 3, 0.7});
  CHECK(less(x, 0.1).to_vector<bool>() == std::vector{false, false, false});
  CHECK(greater(x, std::nextafter(0.1, 0)).to_vector<bool>() == std::vector{true, true, true});
  CHECK(sum(Tensor::from({1.0, 0x1p-53, 0x1p-53}, {3}, Dtype::f64)).item<double>() == 1 + 0x1p-52);
  CHECK(quantile(arange(4, 0, 1, Dtype::f64), 0.1).item<double>() == Approx(0.3).epsilon(1e-15));
  CHECK(full({2}, 0.1, Dtype::f64).to_vector<double>() == std::vector{0.1, 0.1});
  CHECK(arange(3, 0.1, 0.1, Dtype::f64).to_vector<double>()[1] == 0.2);
  CHECK(global_norm({ones({2}), x * 0.0, full({2}, 2)}).item<double>() == Approx(std::sqrt(10.0)).epsilon(1e-15));
  CHECK(global_norm({ones({2}), x * 0.0}, 1).item<double>() == 2);
  CHECK(global_norm({x}).item<double>() == Approx(std::sqrt(0.01 + 1.0 / 9 + 7.7 * 7.7)).epsilon(1e-15));
}

TEST_CASE("nextafter and the Bessel functions in f64 are double's") {
  if (!has_doubles()) return;
  const std::vector<double> from{1, 1, -1, 0, 1e300}, to{2, 0, -2, 1, 0};
  std::vector<double> expected;
  for (std::size_t i = 0; i < from.size(); ++i) expected.push_back(std::nextafter(from[i], to[i]));
  CHECK(nextafter(Tensor::from(from, {5}, Dtype::f64), Tensor::from(to, {5}, Dtype::f64)).to_vector<double>() == expected);
  // From Abramowitz and Stegun's tables, with the digits of a computation in 50 digits.
  const Tensor x = Tensor::from({0.5, 5.0, 30.0}, {3}, Dtype::f64);
  const auto zeroth = i0(x).to_vector<double>(), first = i1(x).to_vector<double>();
  CHECK(zeroth[0] == Approx(1.0634833707413236).epsilon(1e-14));
  CHECK(zeroth[1] == Approx(27.239871823604442).epsilon(1e-14));
  CHECK(zeroth[2] == Approx(781672297823.97749).epsilon(1e-14));
  CHECK(first[0] == Approx(0.25789430539089632).epsilon(1e-14));
  CHECK(first[1] == Approx(24.335642142450530).epsilon(1e-14));
  CHECK(first[2] == Approx(768532038938.95700).epsilon(1e-14));
}

TEST_CASE("f64 between casts is computed in double") {
  if (!has_doubles()) return;
  const Tensor x = cast(Tensor::from({100.0F}), Dtype::f64);
  CHECK(cast(log(exp(x)), Dtype::f32).item<float>() == 100.0F);
}

TEST_CASE("unique tells doubles that are one as floats") {
  if (!has_doubles()) return;
  CHECK(unique(Tensor::from({1.0, 1.0 + 1e-12, 1e300, 1e301}, {4}, Dtype::f64)).values.numel() == 4);
}

TEST_CASE("long lines of f64 are sorted, picked and added up in double by every solver") {
  if (!has_doubles()) return;
  // Neighbours that f32 does not tell apart, equal ones, NaN and both zeros.
  constexpr std::int64_t count = 20000, places = 300;
  std::vector<double> values(count);
  std::vector<std::int64_t> order(count), to(count);
  std::vector<double> sums(places);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto mixed = (i * 7919) % 10007;
    auto& value = values[static_cast<std::size_t>(i)];
    value = i % 997 == 0 ? NAN : mixed == 5 ? -0.0 : 1.0 + static_cast<double>(mixed - 5000) * 0x1p-40;
    order[static_cast<std::size_t>(i)] = i;
    to[static_cast<std::size_t>(i)] = (i * 31) % places;
    if (i % 997 != 0) sums[static_cast<std::size_t>(to[static_cast<std::size_t>(i)])] += value;
  }
  const auto value_of = [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return value_of(a) < value_of(b) || (std::isnan(value_of(b)) && !std::isnan(value_of(a)));
  });
  const Tensor x = Tensor::from(values, {count}, Dtype::f64), numbers = where(is_nan(x), 0.0, x);
  const auto sort_all = [&] { CHECK(argsort(x).to_vector<std::int64_t>() == order); };
  const auto add_all = [&] {
    const auto got = bincount(Tensor::from(to), numbers, 0, places);
    REQUIRE(got.dtype() == Dtype::f64);
    const auto found = got.to_vector<double>();
    double worst = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) worst = std::max(worst, std::abs(found[i] - sums[i]));
    CHECK(worst <= 1e-12);
  };
  sort_all();
  add_all();
  // Of those that count each element against each other only the reference solver is left out: it would take seconds.
  for (const std::string solver : {"merge_cpu", "ranks"}) {
    INFO(solver);
    const exec::ForceSolver force("argsort", solver);
    sort_all();
  }
  for (const std::string solver : {"sorted", "chunks_cpu", "blocks", "direct"}) {
    INFO(solver);
    const exec::ForceSolver force("index_add", solver);
    add_all();
  }
  const auto largest = topk(numbers, 3).values.to_vector<double>();
  CHECK(largest[0] > largest[2]);
  const auto slopes = gradients(sum(sort(numbers).values * arange(count, 0, 1, Dtype::f64)), {numbers})[0].to_vector<double>();
  CHECK(slopes[1] == std::floor(slopes[1]));
}

TEST_CASE("casts from and to f64") {
  if (!has_doubles()) return;
  const Tensor x = Tensor::from(uneven, {5}, Dtype::f64);
  const auto narrow = cast(x, Dtype::f32).to_vector<float>();
  for (std::size_t i = 0; i < uneven.size(); ++i) CHECK(narrow[i] == static_cast<float>(uneven[i]));
  CHECK(cast(Tensor::from<float>({0.1F}), Dtype::f64).item<double>() == double{0.1F});
  CHECK(cast(Tensor::from<std::int64_t>({(1LL << 52) + 1}), Dtype::f64).item<double>() == 0x1p52 + 1);
  const Tensor small = Tensor::from({1.0, -2.75, 0.1}, {3}, Dtype::f64);
  for (const auto dtype : {Dtype::f16, Dtype::bf16}) {
    const auto want = cast(cast(small, Dtype::f32), dtype).to_vector<double>();
    CHECK(cast(small, dtype).to_vector<double>() == want);
    CHECK(cast(cast(small, dtype), Dtype::f64).to_vector<double>() == want);
  }
  CHECK(cast(small, Dtype::i32).to_vector<int>() == std::vector{1, -2, 0});
  CHECK(cast(small, Dtype::i64).to_vector<int>() == std::vector{1, -2, 0});
  CHECK(cast(small, Dtype::boolean).to_vector<bool>() == std::vector{true, true, true});
  CHECK(cast(Tensor::from({true, false}), Dtype::f64).to_vector<double>() == std::vector{1.0, 0.0});
}

TEST_CASE("fusing f64 with other dtypes changes no bit") {
  if (!has_doubles()) return;
  const Tensor x = Tensor::from(uneven, {5}, Dtype::f64), y = Tensor::from<float>({0.1F, 0.2F, 0.3F, 0.4F, 0.5F});
  // f32 between two casts rounds, and so does f32 arithmetic before one.
  const Tensor once = cast(cast(x, Dtype::f32) * 0.1, Dtype::f64) + x;
  const Tensor before = cast(y * y + 0.1, Dtype::f64) * x;
  const auto apart_once = (cast((cast(x, Dtype::f32).detach() * 0.1).detach(), Dtype::f64).detach() + x).to_vector<double>();
  const auto apart_before = (cast((y * y + 0.1).detach(), Dtype::f64).detach() * x).to_vector<double>();
  CHECK(once.to_vector<double>() == apart_once);
  CHECK(before.to_vector<double>() == apart_before);
  const auto product = (matmul(ones({2, 3}, Dtype::f64) * 0.1, ones({3, 2}, Dtype::f64)) * 0.7 + 0.1).to_vector<double>();
  CHECK(product[0] == Approx(0.3 * 0.7 + 0.1).epsilon(1e-15));
}

TEST_CASE("f64 and other dtypes are not mixed, and Autocast leaves f64 alone") {
  const Tensor x = ones({2}, Dtype::f64), y = ones({2});
  CHECK_THROWS_WITH(x + y, Contains("add") && Contains("f64") && Contains("f32"));
  CHECK_THROWS_AS(Autocast{Dtype::f64}, DtypeError);
  const Autocast half{Dtype::f16};
  CHECK(exp(x).dtype() == Dtype::f64);
  CHECK(softmax(x, 0).dtype() == Dtype::f64);
  CHECK(matmul(ones({2, 2}, Dtype::f64), ones({2, 2}, Dtype::f64)).dtype() == Dtype::f64);
}

TEST_CASE("check_gradients in f64 tells an error of 1e-4 from none") {
  if (!has_doubles()) return;
  const Tensor x = Tensor::from({0.3, -0.7, 1.9}, {3}, Dtype::f64);
  CHECK(check_gradients([](const std::vector<Tensor>& in) { return exp(in[0]) * sin(in[0]); }, {x}).largest_error < 1e-8);
  const auto wrong = [](const std::vector<Tensor>& in) { return square(in[0]) + stop_gradient(in[0]) * 1e-4; };
  CHECK_FALSE(check_gradients(wrong, {x}).passed);
  CHECK(check_gradients(wrong, {cast(x, Dtype::f32)}).passed);
}

TEST_CASE("optimizers refuse f64 by name") {
  struct Model : nn::Module {
    Model() { add_parameter("weight", ones({2}, Dtype::f64)); }
  } model;
  CHECK_THROWS_WITH(optim::Adam(model, 1e-3), Contains("weight") && Contains("f64"));
}

TEST_CASE("f64 is saved as F64, and a module of f32 rounds it, and widens f16 and bf16") {
  clnet::test::Folder folder;
  const Tensor x = Tensor::from(uneven, {5}, Dtype::f64);
  io::save_safetensors(folder / "x", {{"x", x}});
  const Tensor again = io::load_safetensors(folder / "x").tensors.at(0).second;
  CHECK(again.dtype() == Dtype::f64);
  CHECK(again.to_vector<double>() == uneven);
  nn::Linear layer{2, 1};
  layer.load_state_dict(
      {{"weight", Tensor::from({0.1, 0.2}, {1, 2}, Dtype::f64)}, {"bias", Tensor::from({0.3}, {1}, Dtype::f64)}});
  CHECK(layer.state_dict().at(0).second.dtype() == Dtype::f32);
  layer.load_state_dict(
      {{"weight", Tensor::from({0.5, -2.0}, {1, 2}, Dtype::f16)}, {"bias", Tensor::from({3.0}, {1}, Dtype::bf16)}});
  CHECK(layer.parameter("weight").value().to_vector<float>() == std::vector<float>{0.5F, -2});
  CHECK(layer.parameter("bias").value().to_vector<float>() == std::vector<float>{3});
}
