// matmul() and linear().
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/matmul/matmul_slice.h"
#include "lib/ops/matmul/matmul_solvers.h"

namespace clnet {

namespace ops {

namespace {

/// A dimension of the batch, with each operand's stride in elements (0: broadcast).
struct BatchDim {
  std::int64_t extent, a, b, c;
};

Shape leading(const Shape& shape) { return Shape(std::vector<std::int64_t>(shape.begin(), shape.end() - 2)); }

Shape joined(const Shape& batch, std::int64_t m, std::int64_t n) {
  auto extents = batch.extents();
  extents.insert(extents.end(), {m, n});
  return Shape(std::move(extents));
}

/// The batch's dimensions, outermost first, merged where memory allows.
std::vector<BatchDim> batch_dims(const Shape& a, const Shape& b, const Shape& c) {
  const auto stride = [](const Shape& shape, int dim) {
    const int own = dim + shape.rank();
    if (own < 0 || shape[own] == 1) return std::int64_t{0};
    std::int64_t elements = 1;
    for (int d = own + 1; d < shape.rank(); ++d) elements *= shape[d];
    return elements;
  };
  std::vector<BatchDim> dims;
  for (int dim = -c.rank(); dim < -2; ++dim) {
    if (c[dim] == 1) continue;
    const BatchDim inner{c[dim], stride(a, dim), stride(b, dim), stride(c, dim)};
    if (!dims.empty() && dims.back().a == inner.a * inner.extent && dims.back().b == inner.b * inner.extent)
      dims.back() = {dims.back().extent * inner.extent, inner.a, inner.b, inner.c};
    else
      dims.push_back(inner);
  }
  return dims;
}

/// {..., M, K} x {..., K, N}, the last two dimensions of either stored transposed or not, and an optional bias {N}.
class Matmul : public Op {
 public:
  explicit Matmul(const MatmulOptions& options) : options_(options) {}
  std::string_view name() const override { return "matmul"; }
  Precision precision() const override { return Precision::low; }
  TuningHints tuning(const Specs&) const override { return {.packed = 1}; }
  Fields fields() const override { return {{"transpose_a", options_.transpose_a}, {"transpose_b", options_.transpose_b}}; }

  Specs infer(const Specs& inputs) const override {
    const auto &a = inputs[0], &b = inputs[1];
    for (const auto& input : inputs) {
      require_floating(name(), input);
      require_same_dtype(name(), a, input);
    }
    if (a.shape.rank() < 2 || b.shape.rank() < 2) fail(a.shape, b.shape, "the operands must be matrices");
    const auto m = a.shape[options_.transpose_a ? -1 : -2], inner_a = a.shape[options_.transpose_a ? -2 : -1];
    const auto n = b.shape[options_.transpose_b ? -2 : -1], inner_b = b.shape[options_.transpose_b ? -1 : -2];
    if (inner_a != inner_b) fail(a.shape, b.shape, fmt::format("the inner extents {} and {} differ", inner_a, inner_b));
    if (inputs.size() == 3 && inputs[2].shape != Shape{n})
      throw ShapeError(fmt::format("matmul: the bias must have shape [{}], got {}", n, to_string(inputs[2].shape)));
    try {
      return {{joined(broadcast(leading(a.shape), leading(b.shape), name()), m, n), a.dtype}};
    } catch (const ShapeError& error) {
      fail(a.shape, b.shape, error.what());
    }
  }

  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto &a = inputs[0], &b = inputs[1], &g = gradients[0];
    const bool ta = options_.transpose_a, tb = options_.transpose_b;
    const auto a_gradient = ta ? matmul(b, g, {tb, true}) : matmul(g, b, {false, !tb});
    const auto b_gradient = tb ? matmul(g, a, {true, ta}) : matmul(a, g, {!ta, false});
    Tensors result{sum_to(a_gradient, a.shape()), sum_to(b_gradient, b.shape())};
    if (inputs.size() == 3) result.push_back(sum_to(g, inputs[2].shape()));
    return result;
  }

  const exec::Rewrite* rewrite() const override { return &matmul_slice(); }
  const MatmulOptions& options() const { return options_; }

  FusionHints fusion(const Specs& inputs) const override {
    FusionHints hints{.epilogue = true};
    if (inputs.size() == 2 && inputs[0].shape.rank() == 2 && inputs[1].shape.rank() == 2)
      hints.summed_dims = {options_.transpose_a ? 0 : 1, options_.transpose_b ? 1 : 0};
    return hints;
  }
  void lower(exec::Recorder& recorder) const override {
    const auto &a = recorder.spec(recorder.input(0)), &b = recorder.spec(recorder.input(1)),
               &c = recorder.spec(recorder.output());
    if (c.shape.numel() == 0) return;
    MatmulProblem problem;
    problem.a = recorder.input(0);
    problem.b = recorder.input(1);
    problem.c = recorder.output();
    if (recorder.input_count() == 3) problem.bias = recorder.input(2);
    problem.dtype = a.dtype;
    problem.readers = recorder.equal_readers(1);
    problem.transpose_a = options_.transpose_a;
    problem.transpose_b = options_.transpose_b;
    problem.m = c.shape[-2];
    problem.n = c.shape[-1];
    problem.k = a.shape[options_.transpose_a ? -2 : -1];

    auto dims = batch_dims(a.shape, b.shape, c.shape);
    if (dims.size() == 1 && dims[0].b == 0 && dims[0].a == problem.m * problem.k && !problem.transpose_a) {
      problem.m *= dims[0].extent;  // rows of one tall matrix
      dims.clear();
    }
    // Solvers take the longest dimension; the others, which only unusual broadcasts have, are looped over here.
    if (!dims.empty()) {
      const auto longest =
          std::max_element(dims.begin(), dims.end(), [](const auto& x, const auto& y) { return x.extent < y.extent; });
      problem.batch = longest->extent;
      problem.stride_a = longest->a;
      problem.stride_b = longest->b;
      problem.stride_c = longest->c;
      dims.erase(longest);
    }
    lower(problem, dims, recorder);
    // Without a batch, the rows of `a` come from one tensor, and sequences have as many rows as their length. Products with a
    // batch belong to attention, which foresees them.
    if (problem.batch > 1 || !dims.empty()) return;
    const auto rows = options_.transpose_a ? &MatmulProblem::k : &MatmulProblem::m;
    recorder.foresee(problem.text(), problem.*rows, [&](std::int64_t extent) {
      auto other = problem;
      other.*rows = extent;
      lower(other, {}, recorder);
    });
  }

 private:
  static void lower(const MatmulProblem& problem, std::span<const BatchDim> dims, exec::Recorder& recorder) {
    if (dims.empty()) return matmul_solvers().lower(problem, recorder.device(), recorder);
    for (std::int64_t i = 0; i < dims[0].extent; ++i) {
      auto slice = problem;
      slice.a = problem.a.at(i * dims[0].a);
      slice.b = problem.b.at(i * dims[0].b);
      slice.c = problem.c.at(i * dims[0].c);
      lower(slice, dims.subspan(1), recorder);
    }
  }

  [[noreturn]] void fail(const Shape& a, const Shape& b, const std::string& why) const {
    throw ShapeError(fmt::format("matmul: {}{} x {}{}: {}", to_string(a), options_.transpose_a ? " transposed" : "", to_string(b),
                                 options_.transpose_b ? " transposed" : "", why));
  }

  MatmulOptions options_;
};

/// {..., M, K} as {all rows, K}: a product with one matrix becomes one product, and its gradient sums over all rows at once.
Tensor rows(const Tensor& x) {
  return reshape(x, Shape{x.size(-1) == 0 ? leading(x.shape()).numel() * x.size(-2) : x.numel() / x.size(-1), x.size(-1)});
}

}  // namespace

std::optional<MatmulOptions> matmul_options(const Node& node) {
  const auto* matmul = dynamic_cast<const Matmul*>(node.op.get());
  return matmul ? std::optional(matmul->options()) : std::nullopt;
}

}  // namespace ops

using namespace ops;

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  require_defined("matmul", {{"a", a}, {"b", b}});
  const auto product = [&](const Tensor& x, const Tensor& y) { return clnet::apply(std::make_shared<Matmul>(options), {x, y}); };
  if (a.rank() >= 2 && b.rank() >= 2) {
    if (a.rank() == 2 || b.rank() > 2 || options.transpose_a) return product(a, b);
    auto extents = a.shape().extents();
    const auto inner = b.size(options.transpose_b ? 1 : 0);
    if (extents.back() != inner) return product(a, b);
    extents.back() = b.size(options.transpose_b ? 0 : 1);
    return reshape(product(rows(a), b), Shape(std::move(extents)));
  }

  const auto wrong = [&](std::string_view why) {
    return ShapeError(fmt::format("matmul: {} x {}: {}", to_string(a.shape()), to_string(b.shape()), why));
  };
  if (a.rank() == 0 || b.rank() == 0) throw wrong("a scalar is no matrix; multiply with *");
  if ((a.rank() == 1 && options.transpose_a) || (b.rank() == 1 && options.transpose_b)) throw wrong("a vector has no transpose");
  const auto inner_a = a.size(options.transpose_a ? -2 : -1);
  const auto inner_b = b.rank() == 1 ? b.size(0) : b.size(options.transpose_b ? -1 : -2);
  if (inner_a != inner_b) throw wrong(fmt::format("the inner extents {} and {} differ", inner_a, inner_b));
  const auto result = matmul(a.rank() == 1 ? unsqueeze(a, 0) : a, b.rank() == 1 ? unsqueeze(b, 1) : b, options);
  auto extents = result.shape().extents();
  if (b.rank() == 1) extents.pop_back();
  if (a.rank() == 1) extents.erase(extents.end() - (b.rank() == 1 ? 1 : 2));
  return reshape(result, Shape(std::move(extents)));
}

Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  require_defined("addmm", {{"x", x}, {"a", a}, {"b", b}});
  ops::require_floating("addmm", x.spec());
  ops::require_same_dtype("addmm", x.spec(), a.spec());
  ops::require_same_dtype("addmm", a.spec(), b.spec());
  Tensor result = matmul(a, b);
  if (broadcast(x.shape(), result.shape(), "addmm") != result.shape())
    throw ShapeError(
        fmt::format("addmm: {} does not broadcast to the product {}", to_string(x.spec()), to_string(result.spec())));
  if (alpha != 1) result = result * alpha;
  if (beta == 0) return result;
  return (beta == 1 ? x : x * beta) + result;
}

Tensor outer(const Tensor& a, const Tensor& b) {
  require_defined("outer", {{"a", a}, {"b", b}});
  if (a.rank() != 1 || b.rank() != 1)
    throw ShapeError(fmt::format("outer: {} and {} are not two vectors", to_string(a.spec()), to_string(b.spec())));
  return unsqueeze(a, 1) * unsqueeze(b, 0);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  require_defined("linear", {{"x", x}, {"weight", weight}});
  const auto wrong = [&](const std::string& why) {
    return ShapeError(fmt::format("linear: x {}, weight {}: {}", to_string(x.shape()), to_string(weight.shape()), why));
  };
  if (weight.rank() != 2) throw wrong("the weight must be {out, in}");
  if (x.rank() == 0) throw wrong("x must be {..., in}");
  if (x.size(-1) != weight.size(1))
    throw wrong(fmt::format("x has {} features, the weight takes {}", x.size(-1), weight.size(1)));
  if (bias.defined() && bias.shape() != Shape{weight.size(0)})
    throw wrong(fmt::format("the bias must have shape [{}], got {}", weight.size(0), to_string(bias.shape())));
  require_floating("linear", x.spec());
  for (const auto* operand : {&weight, &bias}) {
    if (operand->defined()) require_same_dtype("linear", x.spec(), operand->spec());
  }
  Tensors inputs{x.rank() == 1 ? unsqueeze(x, 0) : x.rank() == 2 ? x : rows(x), weight};
  if (bias.defined()) inputs.push_back(bias);
  const auto result = clnet::apply(std::make_shared<Matmul>(MatmulOptions{.transpose_b = true}), std::move(inputs));
  return x.rank() == 2 ? result : reshape(result, x.shape().with(-1, weight.size(0)));
}

}  // namespace clnet
