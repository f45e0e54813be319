// Matrix products.
#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

namespace {

/// beta x + alpha product; with beta 0 x is not looked at.
Tensor plus_product(const Args& in, const Tensor& product) {
  const auto x = in.tensor(0);
  const double beta = in.number(3, "beta", 1), alpha = in.number(4, "alpha", 1);
  const auto result = alpha == 1 ? product : product * alpha;
  return beta == 0 ? result + zeros_like(x) : result + x * beta;
}

Tensor inner_product(const Args& in) {
  const auto a = in.tensor(0), b = in.tensor(1, "other");
  if (a.rank() == 0 || b.rank() == 0) return a * b;
  const auto rows = [](const Tensor& x) { return reshape(x, {x.size(-1) == 0 ? 0 : x.numel() / x.size(-1), x.size(-1)}); };
  std::vector<std::int64_t> shape(a.shape().begin(), a.shape().end() - 1);
  shape.insert(shape.end(), b.shape().begin(), b.shape().end() - 1);
  return reshape(matmul(rows(a), rows(b), {.transpose_b = true}), shape);
}

Tensor matrix_power(const Args& in) {
  const auto x = in.tensor(0);
  const auto n = in.integer(1, "n");
  if (n < 0) throw LeftOut("inverse matrices");
  if (n == 0) return expand(eye(x.size(-1), -1, x.dtype()), x.shape());
  auto result = x;
  for (std::int64_t i = 1; i < n; ++i) result = matmul(result, x);
  return result;
}

Adapter product(Tensor (*function)(const Tensor&, const Tensor&)) {
  return one([function](const Args& in) {
    require_one_dtype({in.tensor(0), in.tensor(1, "other")});
    return function(in.tensor(0), in.tensor(1, "other"));
  });
}
Tensor matrix_product(const Tensor& a, const Tensor& b) { return matmul(a, b); }

}  // namespace

void add_products(Adapters& adapters) {
  for (const char* name : {"matmul", "mm", "bmm", "mv", "dot", "vdot"}) adapters[name] = product(matrix_product);
  adapters["__rmatmul__"] = product([](const Tensor& a, const Tensor& b) { return matmul(b, a); });
  adapters["outer"] = product(outer);
  adapters["inner"] = one(inner_product);
  for (const char* name : {"addmm", "addmv", "baddbmm"})
    adapters[name] = one([](const Args& in) {
      return addmm(in.tensor(0), in.tensor(1, "mat1"), in.tensor(2, "mat2"), in.number(3, "beta", 1), in.number(4, "alpha", 1));
    });
  adapters["addbmm"] =
      one([](const Args& in) { return plus_product(in, sum(matmul(in.tensor(1, "batch1"), in.tensor(2, "batch2")), 0)); });
  adapters["addr"] = one([](const Args& in) { return plus_product(in, outer(in.tensor(1, "vec1"), in.tensor(2, "vec2"))); });
  // OpInfo has the operands first.
  adapters["einsum"] = one([](const Args& in) { return einsum(in.text(1, "equation", ""), in.tensors(0)); });
  adapters["linalg.multi_dot"] = one([](const Args& in) { return multi_dot(in.tensors(0)); });
  adapters["linalg.matrix_power"] = one(matrix_power);
  adapters["linalg.vecdot"] = one([](const Args& in) { return sum(in.tensor(0) * in.tensor(1, "y"), in.dim(2, "dim", -1)); });
  adapters["nn.functional.linear"] = one([](const Args& in) {
    // A weight that is a line gives one feature, and drops its dimension.
    if (in.tensor(1, "weight").rank() == 1) return matmul(in.tensor(0), in.tensor(1, "weight"));
    return linear(in.tensor(0), in.tensor(1, "weight"), in.maybe_tensor(2, "bias"));
  });
  adapters["nn.functional.bilinear"] = one([](const Args& in) {
    const auto result = einsum("...i,oij,...j->...o", {in.tensor(0), in.tensor(2, "weight"), in.tensor(1, "input2")});
    const auto bias = in.maybe_tensor(3, "bias");
    return bias.defined() ? result + bias : result;
  });
}

}  // namespace clnet::torch::opinfo
