// Products that matmul() and multiplication make up: of fixed ranks, with sums, over chosen dimensions, and Kronecker's.
#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet {

namespace {

using Extents = std::vector<std::int64_t>;

ShapeError no_product(std::string_view op, const Tensor& a, const Tensor& b, std::string_view wanted) {
  return ShapeError(fmt::format("{}: {} x {} are not {}", op, to_string(a.shape()), to_string(b.shape()), wanted));
}

/// Two floating tensors of one dtype.
void require_factors(std::string_view op, const Tensor& a, const Tensor& b) {
  require_defined(op, {{"a", a}, {"b", b}});
  ops::require_floating(op, a.spec());
  ops::require_same_dtype(op, a.spec(), b.spec());
}

void require_matrices(std::string_view op, const Tensor& a, const Tensor& b) {
  require_factors(op, a, b);
  if (a.rank() != 2 || b.rank() != 2 || a.size(1) != b.size(0)) throw no_product(op, a, b, "{M, K} x {K, N}");
}
void require_batches(std::string_view op, const Tensor& a, const Tensor& b) {
  require_factors(op, a, b);
  if (a.rank() != 3 || b.rank() != 3 || a.size(0) != b.size(0) || a.size(2) != b.size(1))
    throw no_product(op, a, b, "{B, M, K} x {B, K, N}");
}
void require_matrix_and_vector(std::string_view op, const Tensor& a, const Tensor& b) {
  require_factors(op, a, b);
  if (a.rank() != 2 || b.rank() != 1 || a.size(1) != b.size(0)) throw no_product(op, a, b, "{M, K} x {K}");
}

/// beta x + alpha product; with beta 0, x is ignored.
Tensor plus_product(std::string_view op, const Tensor& x, const Tensor& product, double beta, double alpha) {
  ops::require_same_dtype(op, x.spec(), product.spec());
  if (broadcast(x.shape(), product.shape(), op) != product.shape())
    throw ShapeError(
        fmt::format("{}: {} does not broadcast to the product {}", op, to_string(x.spec()), to_string(product.spec())));
  const Tensor scaled = alpha == 1 ? product : product * alpha;
  if (beta == 0) return scaled;
  return (beta == 1 ? x : x * beta) + scaled;
}

Extents joined_extents(const Tensor& a, const std::vector<int>& of_a, const Tensor& b, const std::vector<int>& of_b) {
  Extents extents;
  for (int dim : of_a) extents.push_back(a.size(dim));
  for (int dim : of_b) extents.push_back(b.size(dim));
  return extents;
}

std::int64_t count_of(const Tensor& x, const std::vector<int>& dims) {
  std::int64_t count = 1;
  for (int dim : dims) count *= x.size(dim);
  return count;
}

/// Dimensions 0 .. rank - 1 that are not among `dims`.
std::vector<int> others(int rank, const std::vector<int>& dims) {
  std::vector<int> result;
  for (int dim = 0; dim < rank; ++dim)
    if (std::find(dims.begin(), dims.end(), dim) == dims.end()) result.push_back(dim);
  return result;
}

/// x with ones in front, and each extent beside a 1: in front of it, or behind.
Tensor beside_ones(const Tensor& x, int rank, bool in_front) {
  Extents extents;
  for (int d = 0; d < rank; ++d) {
    const auto own = d < rank - x.rank() ? 1 : x.size(d - (rank - x.rank()));
    extents.push_back(in_front ? 1 : own);
    extents.push_back(in_front ? own : 1);
  }
  return reshape(x, Shape(extents));
}

/// The product of matrices in the order of the fewest multiplications (Cormen et al., "Introduction to Algorithms", 14.2).
Tensor cheapest_product(const std::vector<Tensor>& factors) {
  const auto count = factors.size();
  // Of factors i to j, both included: the cost, and the last factor of the first half.
  std::vector<double> cost(count * count);
  std::vector<std::size_t> middle(count * count);
  for (std::size_t length = 2; length <= count; ++length)
    for (std::size_t i = 0, j = length - 1; j < count; ++i, ++j)
      for (std::size_t k = i; k < j; ++k) {
        const double own = static_cast<double>(factors[i].size(0)) * static_cast<double>(factors[k].size(1)) *
                           static_cast<double>(factors[j].size(1));
        const double all = cost[i * count + k] + cost[(k + 1) * count + j] + own;
        if (k > i && all >= cost[i * count + j]) continue;
        cost[i * count + j] = all;
        middle[i * count + j] = k;
      }
  const auto product = [&](const auto& self, std::size_t i, std::size_t j) -> Tensor {
    if (i == j) return factors[i];
    const auto k = middle[i * count + j];
    return matmul(self(self, i, k), self(self, k + 1, j));
  };
  return product(product, 0, count - 1);
}

}  // namespace

Tensor mm(const Tensor& a, const Tensor& b) {
  require_matrices("mm", a, b);
  return matmul(a, b);
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  require_batches("bmm", a, b);
  return matmul(a, b);
}

Tensor mv(const Tensor& a, const Tensor& b) {
  require_matrix_and_vector("mv", a, b);
  return matmul(a, b);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  require_factors("dot", a, b);
  if (a.rank() != 1 || b.rank() != 1 || a.size(0) != b.size(0)) throw no_product("dot", a, b, "{K} x {K}");
  return matmul(a, b);
}

Tensor inner(const Tensor& a, const Tensor& b) {
  require_factors("inner", a, b);
  if (a.rank() == 0 || b.rank() == 0) return a * b;
  if (a.size(-1) != b.size(-1)) throw no_product("inner", a, b, "{..., K} x {..., K}");
  return tensordot(a, b, {-1}, {-1});
}

Tensor addmv(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  require_defined("addmv", {{"x", x}});
  require_matrix_and_vector("addmv", a, b);
  return plus_product("addmv", x, matmul(a, b), beta, alpha);
}

Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  require_defined("baddbmm", {{"x", x}});
  require_batches("baddbmm", a, b);
  return plus_product("baddbmm", x, matmul(a, b), beta, alpha);
}

Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  require_defined("addbmm", {{"x", x}});
  require_batches("addbmm", a, b);
  return plus_product("addbmm", x, tensordot(a, b, {0, 2}, {0, 1}), beta, alpha);
}

Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  require_defined("addr", {{"x", x}});
  require_factors("addr", a, b);
  if (a.rank() != 1 || b.rank() != 1) throw no_product("addr", a, b, "two vectors");
  return plus_product("addr", x, outer(a, b), beta, alpha);
}

Tensor tensordot(const Tensor& a, const Tensor& b, int dims) {
  require_factors("tensordot", a, b);
  if (dims < 0 || dims > a.rank() || dims > b.rank())
    throw ShapeError(fmt::format("tensordot: {} and {} do not have {} dimensions to sum over", to_string(a.shape()),
                                 to_string(b.shape()), dims));
  std::vector<int> last, first;
  for (int i = 0; i < dims; ++i) {
    last.push_back(a.rank() - dims + i);
    first.push_back(i);
  }
  return tensordot(a, b, last, first);
}

Tensor tensordot(const Tensor& whole_a, const Tensor& whole_b, const std::vector<int>& dims_a, const std::vector<int>& dims_b) {
  require_factors("tensordot", whole_a, whole_b);
  Tensor a = whole_a, b = whole_b;
  if (dims_a.size() != dims_b.size())
    throw ShapeError(fmt::format("tensordot: {} dimensions of a and {} of b", dims_a.size(), dims_b.size()));
  std::vector<int> summed_a, summed_b;
  for (std::size_t i = 0; i < dims_a.size(); ++i) {
    summed_a.push_back(require_dim("tensordot", a, dims_a[i]));
    summed_b.push_back(require_dim("tensordot", b, dims_b[i]));
    const bool again = std::count(summed_a.begin(), summed_a.end(), summed_a.back()) > 1 ||
                       std::count(summed_b.begin(), summed_b.end(), summed_b.back()) > 1;
    if (again) throw ShapeError(fmt::format("tensordot: dimensions {} and {} come twice", dims_a[i], dims_b[i]));
    // One element times each of a sum's terms.
    const auto in_a = a.size(summed_a.back()), in_b = b.size(summed_b.back());
    if (in_a == 1 && in_b != 1)
      b = sum(b, Dims{summed_b.back()}, true);
    else if (in_b == 1 && in_a != 1)
      a = sum(a, Dims{summed_a.back()}, true);
    else if (in_a != in_b)
      throw ShapeError(fmt::format("tensordot: dimension {} of {} and {} of {} differ", dims_a[i], to_string(a.shape()),
                                   dims_b[i], to_string(b.shape())));
  }
  const auto kept_a = others(a.rank(), summed_a), kept_b = others(b.rank(), summed_b);
  auto order_a = kept_a, order_b = summed_b;
  order_a.insert(order_a.end(), summed_a.begin(), summed_a.end());
  order_b.insert(order_b.end(), kept_b.begin(), kept_b.end());
  const auto terms = count_of(a, summed_a);
  const auto matrix = [](const Tensor& x, const std::vector<int>& order, std::int64_t rows, std::int64_t columns) {
    return reshape(x.rank() < 2 ? x : permute(x, order), Shape{rows, columns});
  };
  const Tensor product = matmul(matrix(a, order_a, count_of(a, kept_a), terms), matrix(b, order_b, terms, count_of(b, kept_b)));
  return reshape(product, shape_of("tensordot", joined_extents(a, kept_a, b, kept_b)));
}

Tensor kron(const Tensor& a, const Tensor& b) {
  require_defined("kron", {{"a", a}, {"b", b}});
  ops::require_same_dtype("kron", a.spec(), b.spec());
  const int rank = std::max(a.rank(), b.rank());
  const Tensor product = beside_ones(a, rank, false) * beside_ones(b, rank, true);
  Extents extents;
  for (int d = 0; d < rank; ++d) extents.push_back(product.size(2 * d) * product.size(2 * d + 1));
  return reshape(product, shape_of("kron", extents));
}

Tensor multi_dot(const std::vector<Tensor>& tensors) {
  require_defined("multi_dot", "tensors", tensors);
  const auto count = tensors.size();
  if (count < 2) throw ShapeError(fmt::format("multi_dot: needs two tensors, got {}", count));
  for (const auto& tensor : tensors) ops::require_floating("multi_dot", tensor.spec());
  // A first vector is a row, a last one a column.
  std::vector<Tensor> factors = tensors;
  const bool from_vector = tensors.front().rank() == 1, to_vector = tensors.back().rank() == 1;
  if (from_vector) factors.front() = unsqueeze(factors.front(), 0);
  if (to_vector) factors.back() = unsqueeze(factors.back(), 1);
  for (std::size_t i = 0; i < count; ++i) {
    if (factors[i].rank() != 2) throw ShapeError(fmt::format("multi_dot: {} is no matrix", to_string(tensors[i].spec())));
    if (i > 0 && factors[i - 1].size(1) != factors[i].size(0))
      throw no_product("multi_dot", tensors[i - 1], tensors[i], "{M, K} x {K, N}");
  }
  const Tensor product = cheapest_product(factors);
  Extents extents;
  if (!from_vector) extents.push_back(product.size(0));
  if (!to_vector) extents.push_back(product.size(1));
  return reshape(product, Shape(extents));
}

}  // namespace clnet
