#include "tests/cases/shape/permute.h"

#include <catch2/catch.hpp>
#include <vector>

#include "lib/exec/choose/solver.h"
#include "tests/ops/check.h"

namespace clnet::testing {

TEST_CASE("permute") { check(permute_cases(), {"strided_copy"}); }

TEST_CASE("transpose exchanges two dimensions of any dtype") {
  for (const auto dtype : {Dtype::i32, Dtype::i64, Dtype::u8}) {
    const auto x = reshape(arange(6, 0, 1, dtype), {2, 3});
    CHECK(transpose(x, 0, -1).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 3, 1, 4, 2, 5});
  }
  const auto odd = transpose(Tensor::from<bool>({true, false, false, true, true, true}, {2, 3}), 0, 1);
  CHECK(odd.to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 1, 0, 1, 0, 1});
}

TEST_CASE("every way to transpose takes every dtype") {
  constexpr std::int64_t batch = 2, rows = 37, columns = 66;
  std::vector<float> values;
  for (std::int64_t i = 0; i < batch * rows * columns; ++i) values.push_back(static_cast<float>(i % 3 == 0 ? 0 : i * 37 % 101));
  for (const auto& solver : exec::solver_names("strided_copy")) {
    if (!solver.starts_with("transpose")) continue;
    if (solver == "transpose_cpu" && !Device::current().info().prefers_vector_kernels) continue;
    const exec::ForceSolver force("strided_copy", solver);
    for (const auto dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i32, Dtype::i64, Dtype::i8, Dtype::u8, Dtype::boolean}) {
      INFO(solver << ", " << to_string(dtype));
      const auto x = cast(Tensor::from<float>(values, {batch, rows, columns}), dtype);
      const auto from = x.to_vector<float>();
      const auto to = transpose(x, 1, 2).to_vector<float>();
      std::size_t wrong = 0, at = 0;
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t j = 0; j < columns; ++j)
          for (std::int64_t i = 0; i < rows; ++i)
            if (to[at++] != from[static_cast<std::size_t>((b * rows + i) * columns + j)]) ++wrong;
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("permute refuses what is no permutation") {
  const auto x = ones({2, 3});
  CHECK_THROWS_WITH(permute(x, {0, 0}), "permute: [0, 0] does not name each dimension of [2, 3] once");
  CHECK_THROWS_AS(permute(x, {0}), ShapeError);
  CHECK_THROWS_AS(permute(x, {0, 2}), ShapeError);
  CHECK_THROWS_AS(transpose(x, 0, 2), ShapeError);
}

}  // namespace clnet::testing
