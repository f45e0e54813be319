// Does what I do with NumPy arrays: takes parts, puts other parts in their place, broadcasts, reduces, chooses and joins.
// Every result is compared with a loop over a std::vector.
#include <clnet/clnet.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

using namespace clnet;

/// What NumPy would give, element by element, for a matrix of these extents.
using Rule = std::function<double(int i, int j)>;

static void check(const std::string& name, const Tensor& got, int rows, int columns, const Rule& rule) {
  const auto values = got.to_vector<double>();
  bool right = static_cast<int>(values.size()) == rows * columns;
  for (int i = 0; right && i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      right = right && std::abs(values[static_cast<std::size_t>(i * columns + j)] - rule(i, j)) < 1e-5;
  std::cout << name << ": " << got.spec() << (right ? " right" : " WRONG") << '\n';
}

int main() {
  std::vector<float> numbers;  // 4 rows of 6, row i beginning with 10 i; signs alternate along a row
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 6; ++j) numbers.push_back(static_cast<float>((10 * i + j) * (j % 2 ? -1 : 1)));
  const auto at = [&](int i, int j) { return static_cast<double>(numbers[static_cast<std::size_t>(6 * i + j)]); };
  const Tensor x = Tensor::from(numbers, {4, 6});

  check("x[1]", x[1], 1, 6, [&](int, int j) { return at(1, j); });
  check("x[-1]", x[-1], 1, 6, [&](int, int j) { return at(3, j); });
  check("x[2, 3]", x[{2, 3}], 1, 1, [&](int, int) { return at(2, 3); });
  check("x[:, 1]", x[{{}, 1}], 4, 1, [&](int i, int) { return at(i, 1); });
  check("x[1:3]", x[{{1, 3}}], 2, 6, [&](int i, int j) { return at(1 + i, j); });
  check("x[1:3, 2:5]", x[{{1, 3}, {2, 5}}], 2, 3, [&](int i, int j) { return at(1 + i, 2 + j); });
  check("x[::2, -2:]", x[{{0, Index::end, 2}, {-2, Index::end}}], 2, 2, [&](int i, int j) { return at(2 * i, 4 + j); });
  check("x[:, ::-1]", flip(x, 1), 4, 6, [&](int i, int j) { return at(i, 5 - j); });

  Tensor y = slice_update(x, 0, 1, full({1, 6}, 7));
  check("y[1] = 7", y, 4, 6, [&](int i, int j) { return i == 1 ? 7 : at(i, j); });
  y = slice_update(x, 1, 2, x[{{}, {0, 2}}]);
  check("y[:, 2:4] = x[:, 0:2]", y, 4, 6, [&](int i, int j) { return j == 2 || j == 3 ? at(i, j - 2) : at(i, j); });
  y = slice_update(x, 0, 1, slice_update(x[{{1, 3}}], 1, 2, zeros({2, 3})));
  check("y[1:3, 2:5] = 0", y, 4, 6, [&](int i, int j) { return i > 0 && i < 3 && j > 1 && j < 5 ? 0 : at(i, j); });
  y = masked_fill(x, x < 0, 0);
  check("y[y < 0] = 0", y, 4, 6, [&](int i, int j) { return at(i, j) < 0 ? 0 : at(i, j); });
  const Tensor column = Tensor::from(std::vector<std::int64_t>{5, 0, 3, 1}, {4, 1});
  const auto place = [](int i) { return std::vector{5, 0, 3, 1}[static_cast<std::size_t>(i)]; };
  y = scatter(x, 1, column, 99);
  check("y[range, column] = 99", y, 4, 6, [&](int i, int j) { return j == place(i) ? 99 : at(i, j); });
  check("x is as it was", x, 4, 6, at);

  const auto row_sum = [&](int i) { return at(i, 0) + at(i, 1) + at(i, 2) + at(i, 3) + at(i, 4) + at(i, 5); };
  const auto column_sum = [&](int j) { return at(0, j) + at(1, j) + at(2, j) + at(3, j); };
  check("x.sum()", sum(x), 1, 1, [&](int, int) { return row_sum(0) + row_sum(1) + row_sum(2) + row_sum(3); });
  check("x.mean(0)", mean(x, 0), 1, 6, [&](int, int j) { return column_sum(j) / 4; });
  check("x - x.mean(0)", x - mean(x, 0), 4, 6, [&](int i, int j) { return at(i, j) - column_sum(j) / 4; });
  check("x - x.sum(1)", x - sum(x, 1, true), 4, 6, [&](int i, int j) { return at(i, j) - row_sum(i); });
  check("x.max(1)", max(x, -1), 4, 1, [&](int i, int) { return 10 * i + 4; });
  check("x.argmax(1)", argmax(x, 1), 4, 1, [&](int, int) { return 4; });
  check("(x > 0).sum(1)", sum(x > 0, 1), 4, 1, [&](int i, int) { return i == 0 ? 2 : 3; });
  check("x[:, :1] * x[:1]", x[{{}, {0, 1}}] * x[{{0, 1}}], 4, 6, [&](int i, int j) { return at(i, 0) * at(0, j); });
  check("where(x > 5, x, -x)", where(x > 5, x, -x), 4, 6, [&](int i, int j) { return at(i, j) > 5 ? at(i, j) : -at(i, j); });

  const Tensor both = concat({x, -x[{{0, 2}}]}, 0);
  check("concat", both, 6, 6, [&](int i, int j) { return i < 4 ? at(i, j) : -at(i - 4, j); });
  check("x.T", transpose(x, 0, 1), 6, 4, [&](int i, int j) { return at(j, i); });
  check("gather", gather(x, 1, column), 4, 1, [&](int i, int) { return at(i, place(i)); });
  check("x[[3, 0, 3]]", index_select(x, 0, Tensor::from({3, 0, 3})), 3, 6, [&](int i, int j) { return at(i == 1 ? 0 : 3, j); });
  std::cout << "equal everywhere: " << all(eq(x, both[{{0, 4}}])).item<bool>() << '\n';
}
