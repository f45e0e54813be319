#include "tests/cases/matmul/matmul.h"

#include <array>
#include <catch2/catch.hpp>
#include <limits>
#include <tuple>

#include "lib/ops/matmul/clblast.h"
#include "lib/ops/matmul/matmul_solvers.h"
#include "tests/cases/elementwise/elementwise.h"
#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

TEST_CASE("matmul") { check(matmul_cases(), {"matmul"}); }

TEST_CASE("matmul broadcasts leading dimensions in any order") { check(broadcast_matmul_cases(), {"matmul"}); }

TEST_CASE("a part of a product that nothing else reads") {
  const auto dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto [m, n, k] = GENERATE(std::tuple{32, 256, 96}, std::tuple{5, 67, 33}, std::tuple{1, 40, 7});
  const Tensor a = cast(rand({m, k}) - 0.5, dtype).detach(), b = cast(rand({n, k}) - 0.5, dtype).detach();
  const std::int64_t start = n / 3, stop = start + n / 2;
  const Tensor part = slice(matmul(a, b, {.transpose_a = false, .transpose_b = true}), 1, start, stop);
  const auto values = (part * 2.0 + 1.0).to_vector<double>();
  const auto whole = matmul_reference(to_array(a), to_array(b), {.transpose_a = false, .transpose_b = true});
  REQUIRE(values.size() == static_cast<std::size_t>(m * (stop - start)));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = start; j < stop; ++j)
      CHECK(values[static_cast<std::size_t>(i * (stop - start) + j - start)] ==
            Approx(whole[i * n + j] * 2 + 1).margin(dtype == Dtype::f32 ? 1e-4 : 2e-2));
}

TEST_CASE("matmul names both shapes that do not fit") {
  CHECK_THROWS_AS(matmul(zeros({2, 3}), zeros({4, 5})), ShapeError);
  CHECK_THROWS_WITH(matmul(zeros({2, 3}), zeros({4, 5})), Contains("[2, 3] x [4, 5]") && Contains("3 and 4"));
  CHECK_THROWS_WITH(matmul(zeros({2, 3}), zeros({3, 5}), {.transpose_a = true}), Contains("[2, 3] transposed x [3, 5]"));
  CHECK_THROWS_WITH(matmul(zeros({7, 2, 3}), zeros({4, 5})), Contains("[7, 2, 3] x [4, 5]"));
  CHECK_THROWS_WITH(matmul(zeros({2, 2, 3}), zeros({4, 3, 5})), Contains("[2, 2, 3] x [4, 3, 5]"));
  CHECK_THROWS_WITH(matmul(zeros({3}), zeros({4, 5})), Contains("[3] x [4, 5]"));
  CHECK_THROWS_AS(matmul(zeros({}), zeros({4, 5})), ShapeError);
  CHECK_THROWS_AS(matmul(zeros({4}), zeros({4, 5}), {.transpose_a = true}), ShapeError);
}

TEST_CASE("matmul takes floating operands of one dtype") {
  CHECK_THROWS_AS(matmul(zeros({2, 3}), zeros({3, 2}, Dtype::f16)), DtypeError);
  CHECK_THROWS_AS(matmul(zeros({2, 3}, Dtype::i32), zeros({3, 2}, Dtype::i32)), DtypeError);
  CHECK_THROWS_AS(linear(zeros({2, 3}), zeros({4, 3}), zeros({4}, Dtype::bf16)), DtypeError);
}

TEST_CASE("linear names the shapes that do not fit") {
  CHECK_THROWS_WITH(linear(zeros({8, 3}), zeros({4, 5})), Contains("linear") && Contains("[8, 3]") && Contains("[4, 5]"));
  CHECK_THROWS_WITH(linear(zeros({8, 3}), zeros({4, 3, 1})), Contains("[4, 3, 1]"));
  CHECK_THROWS_WITH(linear(zeros({8, 3}), zeros({4, 3}), zeros({3})), Contains("[4]") && Contains("[3]"));
  CHECK_THROWS_AS(linear(zeros({}), zeros({4, 3})), ShapeError);
}

TEST_CASE("addmm") {
  std::vector<Case> cases;
  for (const auto& [x, a, b] : std::vector<std::array<Shape, 3>>{
           {{{5}, {4, 7}, {7, 5}}}, {{{4, 1}, {4, 7}, {7, 5}}}, {{{2, 4, 5}, {2, 4, 7}, {2, 7, 5}}}, {{{4}, {4, 7}, {7}}}})
    for (const auto& [beta, alpha] : {std::pair{1.0, 1.0}, {0.3, -1.5}})
      cases.push_back(
          {.name = fmt::format("addmm of {} and {} x {}, {} and {}", to_string(x), to_string(a), to_string(b), beta, alpha),
           .inputs = {{x}, {a}, {b}},
           .run = [beta = beta, alpha = alpha](const auto& in) -> std::vector<Tensor> {
             return {addmm(in[0], in[1], in[2], beta, alpha)};
           },
           .reference = [beta = beta, alpha = alpha](const Arrays& in) -> Arrays {
             Array y = matmul_case(in[1].shape, in[2].shape).reference({in[1], in[2]})[0];
             return {broadcast_reference({in[0], y}, [=](const auto& v) { return beta * v[0] + alpha * v[1]; })};
           }});
  check(cases);
  const Tensor nan = full({5}, std::numeric_limits<double>::quiet_NaN()), a = ones({4, 7}), b = ones({7, 5});
  CHECK(addmm(nan, a, b, 0, 2).to_vector<float>() == std::vector<float>(20, 14));
  CHECK_THROWS_WITH(addmm(zeros({2, 4, 5}), a, b), "addmm: f32[2, 4, 5] does not broadcast to the product f32[4, 5]");
  CHECK_THROWS_WITH(addmm(zeros({4}), a, b), Contains("addmm"));
  CHECK_THROWS_AS(addmm(zeros({5}, Dtype::f16), a, b), DtypeError);
}

TEST_CASE("outer") {
  check({Case{.name = "outer",
              .inputs = {{{7}}, {{5}}},
              .run = [](const auto& in) -> std::vector<Tensor> { return {outer(in[0], in[1])}; },
              .reference = [](const auto& in) -> Arrays {
                Array y({7, 5});
                for (std::int64_t i = 0; i < y.numel(); ++i) y[i] = in[0][i / 5] * in[1][i % 5];
                return {y};
              }}});
  CHECK_THROWS_WITH(outer(zeros({2, 2}), zeros({2})), "outer: f32[2, 2] and f32[2] are not two vectors");
}

TEST_CASE("GPUs get tiles in local memory, those without it CLBlast for large products of every dtype") {
  DeviceInfo gpu;
  gpu.type = DeviceType::gpu;
  const auto chosen = [&](Dtype dtype, std::int64_t n) {
    ops::MatmulProblem problem;
    problem.dtype = dtype;
    problem.m = problem.n = problem.k = n;
    return std::string(ops::matmul_solvers().choose(problem, gpu).solver->name);
  };
  gpu.max_work_group_size = 256;
  gpu.local_memory = 32 << 10;
  CHECK(chosen(Dtype::f32, 100) == "gpu");
  CHECK(chosen(Dtype::bf16, 20) == "gpu");
  gpu.local_memory = 1 << 10;
  if (ops::clblast_version().empty()) {
    CHECK(chosen(Dtype::f32, 100) == "direct");
    return;
  }
  CHECK(chosen(Dtype::f32, 100) == "clblast");
  CHECK(chosen(Dtype::f16, 100) == "clblast_f32");
  CHECK(chosen(Dtype::bf16, 100) == "clblast_f32");
  CHECK(chosen(Dtype::f16, 20) == "direct");
  gpu.runs_clblast = false;
  CHECK(chosen(Dtype::f16, 100) == "direct");
}
