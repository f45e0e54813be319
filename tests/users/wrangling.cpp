// What I do with arrays before a training: filling, choosing, counting, ordering, binning and joining, as in NumPy and PyTorch.
// Each result is compared with a plain loop, or with the figures of PyTorch's documentation.
#include <clnet/clnet.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

using namespace clnet;

namespace {

using Values = std::vector<double>;

void check(const std::string& name, const Tensor& got, const Shape& shape, const Values& wanted, double tolerance = 1e-5) {
  const auto values = got.to_vector<double>();
  const bool right = got.shape() == shape && std::equal(values.begin(), values.end(), wanted.begin(), wanted.end(),
                                                        [&](double a, double b) { return std::abs(a - b) <= tolerance; });
  std::cout << name << ": " << got.spec() << (right ? " right" : " WRONG") << '\n';
  if (!right) std::cout << got << '\n';
}

}  // namespace

int main() {
  constexpr std::int64_t rows = 4, columns = 6;
  Values numbers;
  for (int i = 0; i < rows * columns; ++i) numbers.push_back((i * 7) % 11 - 4);
  const auto at = [&](std::int64_t i, std::int64_t j) { return numbers[static_cast<std::size_t>(i * columns + j)]; };
  const auto build = [](std::int64_t n, std::int64_t m, const auto& rule) {
    Values all;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < m; ++j) all.push_back(rule(i, j));
    return all;
  };
  const Tensor x = Tensor::from(numbers, {rows, columns});
  const Tensor places = Tensor::from(std::vector<std::int64_t>{2, 0, 2});

  // Filling and choosing.
  check("index_fill", x.index_fill(1, places, 9), {4, 6},
        build(4, 6, [&](auto i, auto j) { return j == 2 || j == 0 ? 9 : at(i, j); }));
  Values positive, where_positive;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      if (at(i, j) > 0) {
        positive.push_back(at(i, j));
        where_positive.insert(where_positive.end(), {static_cast<double>(i), static_cast<double>(j)});
      }
  const auto count = static_cast<std::int64_t>(positive.size());
  check("masked_select", x.masked_select(x > 0), {count}, positive);
  check("nonzero", (x > 0).nonzero(), {count, 2}, where_positive);
  check("x[tensor]", x[places], {3, 6}, build(3, 6, [&](auto i, auto j) { return at(i == 1 ? 0 : 2, j); }));
  const Tensor order = x.argsort(1);
  check("take_along_dim", x.take_along_dim(order, 1), {4, 6}, [&] {
    auto all = numbers;
    for (auto row = all.begin(); row != all.end(); row += columns) std::sort(row, row + columns);
    return all;
  }());
  check("take", x.take(Tensor::from({23, 0, 7})), {3}, {numbers[23], numbers[0], numbers[7]});

  // Counting.
  std::map<double, double> counted;
  for (double v : numbers) ++counted[v];
  Values different, times;
  for (const auto& [value, n] : counted) {
    different.push_back(value);
    times.push_back(n);
  }
  const auto unique = x.unique();
  const auto kinds = static_cast<std::int64_t>(different.size());
  check("unique", unique.values, {kinds}, different);
  check("unique counts", unique.counts, {kinds}, times);
  check("unique inverse", unique.values[unique.inverse], {4, 6}, numbers);
  const Tensor votes = Tensor::from({3, 1, 1, 4, 1, 3});
  check("bincount", bincount(votes), {5}, {0, 3, 0, 2, 1});
  check("bincount weights", bincount(votes, Tensor::from({0.5, 1.0, 2.0, 4.0, 8.0, 16.0}), 7), {7}, {0, 11, 0, 16.5, 4, 0, 0});
  check("histc", histc(Tensor::from({1.0, 2.0, 1.0}), 4, 0, 3), {4}, {0, 2, 1, 0});
  check("one_hot", one_hot(arange(5).remainder(3), 3), {5, 3}, build(5, 3, [](auto i, auto j) { return i % 3 == j ? 1 : 0; }));

  // Order.
  Values largest, place;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const bool better = j == 0 || at(i, j) >= largest.back();
      place.push_back(better ? static_cast<double>(j) : place.back());
      largest.push_back(better ? at(i, j) : largest.back());
    }
  const auto [maxima, indices] = x.cummax(1);
  check("cummax", maxima, {4, 6}, largest);
  check("cummax indices", indices, {4, 6}, place);
  const Tensor edges = Tensor::from({1.0, 3.0, 5.0, 7.0, 9.0}), looked = Tensor::from({3.0, 6.0, 9.0});
  check("searchsorted", searchsorted(edges, looked), {3}, {1, 3, 4});
  check("searchsorted right", searchsorted(edges, looked, true), {3}, {2, 3, 5});
  auto sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  const auto quantile_of = [&](double q) {
    const double position = q * static_cast<double>(sorted.size() - 1);
    const auto low = static_cast<std::size_t>(position);
    return sorted[low] + (position - static_cast<double>(low)) * (sorted[std::min(low + 1, sorted.size() - 1)] - sorted[low]);
  };
  check("quantile", quantile(x, 0.3), {}, {quantile_of(0.3)});
  check("quantiles", quantile(x, {0.0, 0.25, 0.9, 1.0}), {4},
        {quantile_of(0), quantile_of(0.25), quantile_of(0.9), quantile_of(1)});
  check("median", x.median(), {}, {sorted[11]});
  check("median of rows", x.median(1).values, {4}, [&] {
    Values all;
    for (std::int64_t i = 0; i < rows; ++i) {
      Values row(numbers.begin() + i * columns, numbers.begin() + (i + 1) * columns);
      std::sort(row.begin(), row.end());
      all.push_back(row[2]);
    }
    return all;
  }());
  check("mode", mode(votes).values, {}, {1});

  // Making and joining.
  check("linspace", linspace(-1, 1, 5), {5}, {-1, -0.5, 0, 0.5, 1});
  const auto grid = meshgrid({arange(3), arange(2)});
  check("meshgrid", grid[0] * 10 + grid[1], {3, 2}, build(3, 2, [](auto i, auto j) { return 10 * i + j; }));
  const auto image = meshgrid({arange(3), arange(2)}, Indexing::xy);
  check("meshgrid xy", image[0] * 10 + image[1], {2, 3}, build(2, 3, [](auto i, auto j) { return 10 * j + i; }));
  const Tensor a = arange(24, 0, 1, Dtype::f32).reshape({2, 3, 4}), b = arange(24, 1, 1, Dtype::f32).reshape({3, 4, 2});
  check("tensordot", tensordot(a, b), {2, 2}, build(2, 2, [](auto i, auto j) {
          double sum = 0;
          for (int k = 0; k < 12; ++k) sum += static_cast<double>(12 * i + k) * static_cast<double>(2 * k + j + 1);
          return sum;
        }));
  check("tensordot of dims", tensordot(a, b, {1}, {0}), {2, 4, 4, 2}, [] {
    Values all;
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j)
        for (int k = 0; k < 4; ++k)
          for (int l = 0; l < 2; ++l) {
            double sum = 0;
            for (int m = 0; m < 3; ++m) sum += (12 * i + 4 * m + j) * (8 * m + 2 * k + l + 1);
            all.push_back(sum);
          }
    return all;
  }());
  const auto parts = x.split({1, 3, 2}, 1);
  check("split", parts[1], {4, 3}, build(4, 3, [&](auto i, auto j) { return at(i, 1 + j); }));
  check("cat of splits", cat(parts, 1), {4, 6}, numbers);
  const auto chunks = x.chunk(4, 1);  // of two columns each: three
  std::cout << chunks.size() << " chunks\n";
  check("chunk", chunks.back(), {4, 2}, build(4, 2, [&](auto i, auto j) { return at(i, 4 + j); }));
}
