// Random calls of reductions and matrix products.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

Dims some_dims(Generator& g, const Ref& x) {
  Dims dims;
  const int rank = g.shape_of(x).rank();
  if (g.choose().chance(0.25)) return dims;
  for (int d = 0; d < rank; ++d)
    if (g.choose().chance(0.5)) dims.push_back(g.choose().chance(0.2) ? d - rank : d);
  return dims;
}

std::int64_t count_of(Generator& g, const Ref& x, const Dims& dims) {
  if (dims.empty()) return g.shape_of(x).numel();
  std::int64_t count = 1;
  for (int d : dims) count *= g.shape_of(x)[d];
  return count;
}

using Reduce = Tensor (*)(const Tensor&, const Dims&, bool);

bool add_reduce(Generator& g, std::string_view name, Reduce reduce, const Ref& x, const Dims& dims, Range range) {
  const bool keepdim = g.choose().chance(0.5);
  g.add(
      std::string(name), fmt::format("{}($0, {{{}}}, {})", name, fmt::join(dims, ", "), keepdim), {x},
      [=](const Tensors& in) { return reduce(in[0], dims, keepdim); }, range);
  return true;
}

Ref numbers(Generator& g) { return g.choose().chance(0.12) ? g.integers() : g.floating(); }

bool add_sum(Generator& g) {
  const auto x = numbers(g);
  const auto dims = some_dims(g, x);
  const double most = g.range(x).size() * static_cast<double>(std::max<std::int64_t>(1, count_of(g, x, dims)));
  return add_reduce(g, "sum", sum, x, dims, {-most, most});
}

bool add_mean(Generator& g) {
  const auto x = g.floating();
  const auto dims = some_dims(g, x);
  return add_reduce(g, "mean", mean, x, dims, g.range(x));
}

bool add_prod(Generator& g) {
  const bool whole = g.choose().chance(0.1);
  const auto x = whole ? g.integers(10) : g.tame(g.floating(), 1.5);
  const auto dims = some_dims(g, x);
  const auto count = count_of(g, x, dims);
  if (count > (whole ? 6 : 40)) return false;
  const double most = std::pow(std::max(1.0, g.range(x).size()), static_cast<double>(count));
  return add_reduce(g, "prod", prod, x, dims, {-most, most});
}

bool add_extremum(Generator& g, std::string_view name, Reduce reduce) {
  const auto x = numbers(g);
  const auto dims = some_dims(g, x);
  if (count_of(g, x, dims) == 0) return false;
  return add_reduce(g, name, reduce, x, dims, g.range(x));
}

bool add_truth(Generator& g, std::string_view name, Reduce reduce) {
  const auto x = g.choose().chance(0.5) ? g.truth() : numbers(g);
  return add_reduce(g, name, reduce, x, some_dims(g, x), {0, 1});
}

bool add_arg(Generator& g, bool greatest) {
  const auto x = g.choose().chance(0.12) ? g.integers() : g.floating(8, 1);
  if (g.shape_of(x).rank() == 0) return false;
  const int dim = static_cast<int>(g.choose().below(g.shape_of(x).rank()));
  if (g.shape_of(x)[dim] == 0) return false;
  const bool keepdim = g.choose().chance(0.5);
  g.add(greatest ? "argmax" : "argmin", fmt::format("{}($0, {}, {})", greatest ? "argmax" : "argmin", dim, keepdim), {x},
        [=](const Tensors& in) { return greatest ? argmax(in[0], dim, keepdim) : argmin(in[0], dim, keepdim); },
        {0, static_cast<double>(g.shape_of(x)[dim])});
  return true;
}

bool add_var(Generator& g) {
  const auto x = g.floating();
  const auto dims = some_dims(g, x);
  const int correction = static_cast<int>(g.choose().integer(0, 1));
  if (count_of(g, x, dims) <= correction) return false;
  const bool keepdim = g.choose().chance(0.5);
  const double most = 2 * g.range(x).size() * g.range(x).size();
  g.add("var", fmt::format("var($0, {{{}}}, {}, {})", fmt::join(dims, ", "), correction, keepdim), {x},
        [=](const Tensors& in) { return var(in[0], dims, correction, keepdim); }, {0, most});
  return true;
}

bool add_stddev(Generator& g) {
  const auto x = g.floating();
  const auto dims = some_dims(g, x);
  const int correction = static_cast<int>(g.choose().integer(0, 1));
  if (count_of(g, x, dims) <= correction) return false;
  const bool keepdim = g.choose().chance(0.5);
  g.add("stddev", fmt::format("stddev($0, {{{}}}, {}, {})", fmt::join(dims, ", "), correction, keepdim), {x},
        [=](const Tensors& in) { return stddev(in[0], dims, correction, keepdim); }, {0, 2 * g.range(x).size()});
  return true;
}

bool add_logsumexp(Generator& g) {
  const auto x = g.floating();
  const auto dims = some_dims(g, x);
  if (count_of(g, x, dims) == 0) return false;
  const bool keepdim = g.choose().chance(0.5);
  g.add("logsumexp", fmt::format("logsumexp($0, {{{}}}, {})", fmt::join(dims, ", "), keepdim), {x},
        [=](const Tensors& in) { return logsumexp(in[0], dims, keepdim); }, {g.range(x).low, g.range(x).high + 9});
  return true;
}

bool add_norm(Generator& g) {
  const auto x = g.floating();
  const auto dims = some_dims(g, x);
  if (count_of(g, x, dims) == 0) return false;
  const double p = g.choose().of({2.0, 1.0, 3.0, HUGE_VAL, 0.0});
  g.add("norm",
        fmt::format("norm($0, {}, {{{}}})", std::isinf(p) ? std::string("INFINITY") : fmt::to_string(p), fmt::join(dims, ", ")),
        {x}, [=](const Tensors& in) { return norm(in[0], p, dims); },
        {0, g.range(x).size() * static_cast<double>(count_of(g, x, dims)) + 1});
  return true;
}

bool add_outer(Generator& g) {
  const auto dtype = g.float_dtype();
  const auto a = g.of_shape(g.shape(1), dtype), b = g.of_shape(g.shape(1), dtype);
  if (!g.fits(g.shape_of(a).numel() * g.shape_of(b).numel())) return false;
  const double most = g.range(a).size() * g.range(b).size();
  g.add("outer", "outer($0, $1)", {a, b}, [](const Tensors& in) { return outer(in[0], in[1]); }, {-most, most});
  return true;
}

bool add_sum_to(Generator& g) {
  const auto x = g.floating();
  auto extents = g.shape_of(x).extents();
  const double most = g.range(x).size() * static_cast<double>(std::max<std::int64_t>(1, g.shape_of(x).numel()));
  extents.erase(extents.begin(), extents.begin() + g.choose().below(static_cast<std::int64_t>(extents.size()) + 1));
  for (auto& extent : extents)
    if (g.choose().chance(0.4)) extent = 1;
  g.add("sum_to", fmt::format("sum_to($0, Shape{{{}}})", fmt::join(extents, ", ")), {x},
        [extents](const Tensors& in) { return sum_to(in[0], Shape(extents)); }, {-most, most});
  return true;
}

bool add_softmax(Generator& g, bool logarithm) {
  const auto x = g.floating(8, 1);
  const int dim = static_cast<int>(g.choose().below(g.shape_of(x).rank()));
  g.add(
      logarithm ? "log_softmax" : "softmax", fmt::format("{}($0, {})", logarithm ? "log_softmax" : "softmax", dim), {x},
      [=](const Tensors& in) { return logarithm ? log_softmax(in[0], dim) : softmax(in[0], dim); },
      logarithm ? Range{-24, 0} : Range{0, 1});
  return true;
}

Range product_range(Generator& g, const Ref& a, const Ref& b, std::int64_t inner) {
  const double most = g.range(a).size() * g.range(b).size() * static_cast<double>(std::max<std::int64_t>(inner, 1));
  return {-most, most};
}

/// Leading dimensions of either operand: the same, some of them 1, or fewer.
std::vector<std::int64_t> some_leading(Generator& g, std::vector<std::int64_t> batch) {
  if (g.choose().chance(0.3))
    batch.erase(batch.begin(), batch.begin() + g.choose().below(static_cast<std::int64_t>(batch.size()) + 1));
  for (auto& extent : batch)
    if (g.choose().chance(0.3)) extent = 1;
  return batch;
}

/// Some columns, which are all that is made of the product where nothing else comes to read it.
bool add_columns(Generator& g) {
  const auto a = g.floating(4, 2);
  const auto& shape = g.shape_of(a);
  const auto inner = shape[-1], rows = shape.numel() / std::max<std::int64_t>(inner, 1);
  const auto columns = g.choose().of<std::int64_t>({32, 66, 96});
  if (!g.fits(rows * columns) || !g.fits(inner * columns) || rows * columns * inner > 200000) return false;
  const auto b = g.of_shape({columns, inner}, g.dtype_of(a));
  const auto start = g.choose().of<std::int64_t>({0, 5, columns / 2}),
             stop = start + g.choose().of<std::int64_t>({16, columns / 2});
  g.add(
      "matmul", fmt::format("slice(matmul($0, $1, {{false, true}}), -1, {}, {})", start, stop), {a, b},
      [start, stop](const Tensors& in) {
        return slice(matmul(in[0], in[1], {.transpose_a = false, .transpose_b = true}), -1, start, stop);
      },
      product_range(g, a, b, inner));
  return true;
}

bool add_matmul(Generator& g) {
  if (g.choose().chance(0.12)) return add_columns(g);
  const auto a = g.floating(4, 1);
  const auto& shape = g.shape_of(a);
  MatmulOptions options{g.choose().chance(0.3) && shape.rank() > 1, g.choose().chance(0.3)};
  const auto inner = shape[options.transpose_a ? -2 : -1], rows = shape.rank() == 1 ? 1 : shape[options.transpose_a ? -1 : -2];
  const auto columns = g.extent();
  std::vector<std::int64_t> batch;
  if (shape.rank() > 2) batch.assign(shape.begin(), shape.end() - 2);
  if (batch.empty() && g.choose().chance(0.15)) batch.push_back(g.sizes().integer(1, 3));
  const auto full = Shape(batch).numel() * rows * columns;
  if (!g.fits(full) || full * inner > 200000) return false;
  auto extents = some_leading(g, batch);
  if (g.choose().chance(0.12)) {
    extents = {inner};
    options.transpose_b = false;
  } else {
    extents.push_back(options.transpose_b ? columns : inner);
    extents.push_back(options.transpose_b ? inner : columns);
  }
  if (!g.fits(Shape(extents).numel())) return false;
  const bool with_itself = shape.rank() > 1 && g.choose().chance(0.1);
  if (with_itself) {
    options.transpose_b = !options.transpose_a;
    if (const auto both = rows * rows * Shape(batch).numel(); !g.fits(both) || both * inner > 200000) return false;
  }
  const auto b = with_itself ? a : g.of_shape(Shape(extents), g.dtype_of(a));
  g.add(
      "matmul", fmt::format("matmul($0, $1, {{{}, {}}})", options.transpose_a, options.transpose_b), {a, b},
      [options](const Tensors& in) { return matmul(in[0], in[1], options); }, product_range(g, a, b, inner));
  return true;
}

bool add_linear(Generator& g) {
  const auto x = g.floating(4, 1);
  const auto inner = g.shape_of(x)[-1], outer = g.extent();
  if (inner == 0 || !g.fits(inner * outer) || !g.fits(g.shape_of(x).numel() / inner * outer)) return false;
  const auto weight = g.of_shape({outer, inner}, g.dtype_of(x));
  std::vector<Ref> inputs{x, weight};
  if (g.choose().chance(0.7)) inputs.push_back(g.of_shape({outer}, g.dtype_of(x)));
  const bool biased = inputs.size() == 3;
  g.add(
      "linear", biased ? "linear($0, $1, $2)" : "linear($0, $1)", inputs,
      [biased](const Tensors& in) { return linear(in[0], in[1], biased ? in[2] : Tensor{}); },
      product_range(g, x, weight, inner + 1));
  return true;
}

bool add_addmm(Generator& g) {
  const auto a = g.floating(4, 2);
  const auto& shape = g.shape_of(a);
  const auto columns = g.extent();
  auto extents = shape.extents();
  extents.back() = columns;
  if (!g.fits(Shape(extents).numel()) || Shape(extents).numel() * shape[-1] > 200000) return false;
  const auto b = g.of_shape({shape[-1], columns}, g.dtype_of(a));
  const auto x = g.tame(g.partner(Shape(extents), g.dtype_of(a), true), 8);
  const double beta = g.choose().of({1.0, 0.5}), alpha = g.choose().of({1.0, -2.0});
  const double most = 2 * product_range(g, a, b, shape[-1]).size() + 8;
  g.add("addmm", fmt::format("addmm($0, $1, $2, {}, {})", beta, alpha), {x, a, b},
        [=](const Tensors& in) { return addmm(in[0], in[1], in[2], beta, alpha); }, {-most, most});
  return true;
}

}  // namespace

std::vector<Entry> reduce_entries() {
  return {{"sum", 4, add_sum},
          {"mean", 3, add_mean},
          {"prod", 1, add_prod},
          {"max", 2, [](Generator& g) { return add_extremum(g, "max", max); }},
          {"min", 1, [](Generator& g) { return add_extremum(g, "min", min); }},
          {"any", 0.7, [](Generator& g) { return add_truth(g, "any", any); }},
          {"all", 0.7, [](Generator& g) { return add_truth(g, "all", all); }},
          {"argmax", 1, [](Generator& g) { return add_arg(g, true); }},
          {"argmin", 1, [](Generator& g) { return add_arg(g, false); }},
          {"var", 1, add_var},
          {"stddev", 0.7, add_stddev},
          {"logsumexp", 1, add_logsumexp},
          {"norm", 1, add_norm},
          {"outer", 0.5, add_outer},
          {"sum_to", 1, add_sum_to},
          {"softmax", 3, [](Generator& g) { return add_softmax(g, false); }},
          {"log_softmax", 2, [](Generator& g) { return add_softmax(g, true); }},
          {"matmul", 6, add_matmul},
          {"linear", 3, add_linear},
          {"addmm", 1, add_addmm}};
}

}  // namespace clnet::fuzz
