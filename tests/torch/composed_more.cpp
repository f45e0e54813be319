// What PyTorch has as one function and clnet leaves to its user: running extremes, order statistics, products and rearrangements.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "tests/torch/composed.h"

namespace clnet::torch {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The values at these places of lines along `dim`, and where they are.
Results at_places(const Tensor& x, int dim, const Tensor& places, bool keepdim = true) {
  const auto shaped = [&](const Tensor& t) { return keepdim ? t : squeeze(t, dim); };
  const Tensor values = shaped(gather(x, dim, places));
  return {{{"y", values}, {"values", values}, {"indices", shaped(places)}}, {}};
}

/// x along `dim` from `by` before, and `value` where there is nothing.
Tensor moved(const Tensor& x, int dim, std::int64_t by, double value) {
  std::vector<std::int64_t> before(static_cast<std::size_t>(x.rank())), after = before;
  before[static_cast<std::size_t>(x.shape().normalize(dim))] = by;
  return pad(slice(x, dim, 0, x.size(dim) - by), before, after, value);
}

/// By doubling: each place knows the last largest (smallest) of the 1, 2, 4, ... elements up to it.
Operation running_extreme(bool greatest) {
  return [=](const Given& in) {
    const auto x = in[first];
    const int dim = in.dim(0);
    std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank()), 1);
    extents[static_cast<std::size_t>(x.shape().normalize(dim))] = x.size(dim);
    Tensor value = greatest ? x : -x, place = expand(reshape(arange(x.size(dim)), extents), x.shape());
    for (std::int64_t by = 1; by < x.size(dim); by *= 2) {
      const Tensor before = moved(value, dim, by, -infinity), better = greater(before, value);
      place = where(better, moved(place, dim, by, 0), place);
      value = where(better, before, value);
    }
    return at_places(x, dim, place);
  };
}

void add_order(Operations& operations) {
  operations["cummax"] = of_lines(running_extreme(true));
  operations["cummin"] = of_lines(running_extreme(false));
  operations["logcumsumexp"] = [](const Given& in) {
    const auto x = in[first];
    const int dim = in.dim(0);
    const Tensor most = max(stop_gradient(x), dim, true);
    return y(log(cumsum(exp(x - most), dim)) + most);
  };
  operations["kthvalue"] = of_lines([](const Given& in) {
    const int dim = in.dim(-1);
    const auto k = static_cast<std::int64_t>(in.parameter(0, "k", 1));
    return at_places(in[first], dim, narrow(argsort(in[first], dim), dim, k - 1, 1), in.flag("keepdim"));
  });
  operations["mode"] = of_lines([](const Given& in) {
    const auto x = in[first];
    const int dim = in.dim(-1);
    const Tensor ordered = sort(x, dim).values;
    std::vector<Tensor> counts;
    for (std::int64_t i = 0; i < x.size(dim); ++i) counts.push_back(sum(eq(ordered, slice(ordered, dim, i, i + 1)), dim, true));
    const Tensor often = gather(ordered, dim, argmax(concat(counts, dim), dim, true));
    // The last of those that are equal.
    const Tensor place = argmax(flip(cast(eq(x, often), Dtype::i32), dim), dim, true);
    return at_places(x, dim, static_cast<double>(x.size(dim) - 1) - place, in.flag("keepdim"));
  });
  operations["quantile"] = [](const Given& in) {
    const auto dims = in.dims();
    const auto x = dims ? in[first] : reshape(in[first], {in[first].numel()});
    const int dim = dims ? dims->at(0) : 0;
    const Tensor ordered = sort(x, dim).values;
    const auto form = in.text("interpolation", "linear");
    const auto one = [&](double q) {
      const double place = q * static_cast<double>(x.size(dim) - 1);
      const auto low = static_cast<std::int64_t>(std::floor(place)), high = static_cast<std::int64_t>(std::ceil(place));
      const auto at = [&](std::int64_t i) { return narrow(ordered, dim, i, 1); };
      Tensor result = form == "linear"     ? lerp(at(low), at(high), place - std::floor(place))
                      : form == "lower"    ? at(low)
                      : form == "higher"   ? at(high)
                      : form == "midpoint" ? lerp(at(low), at(high), low == high ? 0 : 0.5)
                                           : at(static_cast<std::int64_t>(std::nearbyint(place)));
      return in.flag("keepdim") ? result : squeeze(result, dim);
    };
    if (const auto q = in["q"]; q.defined()) {
      std::vector<Tensor> results;
      for (const float each : q.to_vector<float>()) results.push_back(one(each));
      return y(q.rank() == 0 ? results[0] : stack(results, 0));
    }
    const auto qs = in.numbers({"q", "numbers"}).value_or(std::vector<double>{0.5});
    const auto* given = in.find("q");
    if (given == nullptr || !given->is_array()) return y(one(qs.at(0)));
    std::vector<Tensor> results;
    for (const double q : qs) results.push_back(one(q));
    return y(stack(results, 0));
  };
  const auto place_among = [](const Tensor& sorted, const Tensor& values, bool right) {
    const Tensor row = unsqueeze(sorted, -2), each = unsqueeze(values, -1);
    return sum(right ? less_equal(row, each) : less(row, each), -1);
  };
  operations["searchsorted"] = [=](const Given& in) {
    return y(place_among(in[{"sorted_sequence", "sorted", "a", "x"}], in[{"values", "input", "b", "v"}],
                         in.flag("right") || in.text("side", "left") == "right"));
  };
  operations["bucketize"] = [=](const Given& in) {
    return y(place_among(in[{"boundaries", "b"}], in[{"x", "input", "a"}], in.flag("right")));
  };
  operations["bincount"] = [](const Given& in) {
    const auto x = in[{"x", "input", "idx"}], weights = in[{"weights", "weight"}];
    const auto least = in.integer("minlength", 0);
    const auto count = x.numel() == 0 ? least : std::max(least, max(x).item<std::int64_t>() + 1);
    return y(scatter_add(zeros({count}), 0, x, weights.defined() ? weights : ones(x.shape())));
  };
}

void add_sums(Operations& operations) {
  const auto dims_of = [](const Given& in) { return Dims(in.dims().value_or(std::vector<int>{})); };
  const auto numbers_of = [](const Tensor& x) { return masked_fill(x, is_nan(x), 0); };
  operations["nansum"] = [=](const Given& in) { return y(sum(numbers_of(in[first]), dims_of(in), in.flag("keepdim"))); };
  operations["nanmean"] = [=](const Given& in) {
    const bool keep = in.flag("keepdim");
    const Tensor count = sum(logical_not(is_nan(in[first])), dims_of(in), keep);
    return y(sum(numbers_of(in[first]), dims_of(in), keep) / cast(count, Dtype::f32));
  };
  operations["count_nonzero"] = [=](const Given& in) { return y(sum(not_equal(in[first], 0.0), dims_of(in))); };
  operations["aminmax"] = [=](const Given& in) {
    const auto low = min(in[first], dims_of(in), in.flag("keepdim")), high = max(in[first], dims_of(in), in.flag("keepdim"));
    return Results{{{"min", low}, {"max", high}, {"y0", low}, {"y1", high}}, {}};
  };
  operations["diff"] = [](const Given& in) {
    auto x = in[first];
    const int dim = in.dim(-1);
    for (auto times = in.integer({"n", "numbers"}, 1); times > 0; --times)
      x = slice(x, dim, 1) - slice(x, dim, 0, x.size(dim) - 1);
    return y(x);
  };
  operations["matrix_norm"] = [](const Given& in) {
    const auto order = in.text("ord", "fro");
    if (order != "fro") throw Failed("only Frobenius' norm is there");
    const auto dims = in.dims();
    return y(norm(in[first], 2, dims ? Dims(*dims) : Dims{-2, -1}, in.flag("keepdim")));
  };
  operations["dist"] = [](const Given& in) { return y(norm(in[first] - in[second], in.parameter(0, "p", 2))); };
  const auto covariance = [](const Tensor& rows, double correction) {
    const Tensor x = rows.rank() < 2 ? reshape(rows, {1, rows.numel()}) : rows, centred = x - mean(x, 1, true);
    const Tensor all = matmul(centred, centred, {.transpose_b = true}) / (static_cast<double>(x.size(1)) - correction);
    return rows.rank() < 2 ? reshape(all, Shape{}) : all;
  };
  operations["cov"] = [=](const Given& in) { return y(covariance(in[first], in.number("correction", 1))); };
  operations["corrcoef"] = [=](const Given& in) {
    const Tensor all = covariance(in[first], 1);
    if (all.rank() == 0) return y(all / all);
    const Tensor deviations = sqrt(diagonal(all));
    return y(all / outer(deviations, deviations));
  };
}

void add_elements(Operations& operations) {
  operations["positive"] = unary([](const Tensor& x) { return x * 1.0; });
  operations["isinf"] = unary([](const Tensor& x) { return eq(abs(x), infinity); });
  operations["isfinite"] = unary([](const Tensor& x) { return less(abs(x), infinity); });
  operations["deg2rad"] = unary([](const Tensor& x) { return x * (std::numbers::pi / 180); });
  operations["rad2deg"] = unary([](const Tensor& x) { return x * (180 / std::numbers::pi); });
  operations["asinh"] = operations["arcsinh"] = unary([](const Tensor& x) {
    const Tensor size = abs(x);
    return log1p(size + square(size) / (1.0 + hypot(size, 1.0))) * sign(x);
  });
  operations["acosh"] = operations["arccosh"] = unary([](const Tensor& x) { return log(x + sqrt(x - 1.0) * sqrt(x + 1.0)); });
  operations["atanh"] = operations["arctanh"] = unary([](const Tensor& x) { return (log1p(x) - log1p(-x)) / 2.0; });
  for (const char* name : {"sin", "cos", "tan"}) operations[std::string("arc") + name] = operations[std::string("a") + name];
  operations["expit"] = unary([](const Tensor& x) { return sigmoid(x); });
  operations["sinc"] = unary([](const Tensor& x) {
    const Tensor none = eq(x, 0.0), angle = where(none, 1.0, x) * std::numbers::pi;
    return where(none, 1.0, sin(angle) / angle);
  });
  operations["entr"] = unary([](const Tensor& x) { return -xlogy(x, x); });
  operations["xlog1py"] = binary([](const Tensor& a, const Tensor& b) { return a * log1p(b); });
  operations["logaddexp2"] = binary([](const Tensor& a, const Tensor& b) {
    return logaddexp(a * std::numbers::ln2, b * std::numbers::ln2) / std::numbers::ln2;
  });
  operations["heaviside"] = binary([](const Tensor& x, const Tensor& at_0) {
    return where(eq(x, 0.0), at_0 + zeros_like(x), cast(greater(x, 0.0), Dtype::f32));
  });
  operations["copysign"] =
      binary([](const Tensor& a, const Tensor& b) { return a * stop_gradient(where(less(a * b, 0.0), -1.0, ones_like(a * b))); });
  operations["floor_divide"] = binary([](const Tensor& a, const Tensor& b) { return floor(a / b); });
  operations["float_power"] = binary([](const Tensor& a, const Tensor& b) { return pow(a, b); });
  operations["ldexp"] = binary([](const Tensor& a, const Tensor& b) { return a * pow(2.0, cast(b, Dtype::f32)); });
  const auto numbers = [](bool greatest) {
    return binary([=](const Tensor& a, const Tensor& b) {
      const Tensor x = where(is_nan(a), b, a), z = where(is_nan(b), a, b);
      return greatest ? maximum(x, z) : minimum(x, z);
    });
  };
  operations["fmax"] = numbers(true);
  operations["fmin"] = numbers(false);
  operations["logical_xor"] = [](const Given& in) { return y(not_equal(in.mask(first), in.mask(second))); };
  operations["isclose"] = [](const Given& in) {
    const Tensor bound = abs(in[second]) * in.number("rtol", 1e-5) + in.number("atol", 1e-8);
    return y(less_equal(abs(in[first] - in[second]), bound));
  };
}

void add_matrices(Operations& operations) {
  operations["ger"] = operations["outer"];
  operations["inner"] = binary([](const Tensor& a, const Tensor& b) { return matmul(a, transpose(b, 0, -1)); });
  operations["vdot"] = operations["dot"];
  operations["addbmm"] = [](const Given& in) {
    const auto product = sum(matmul(in[{"batch1", "a"}], in[{"batch2", "b"}]), 0);
    return y(in[{"input", "c", "x"}] * in.number("beta", 1) + product * in.number("alpha", 1));
  };
  operations["addr"] = [](const Given& in) {
    return y(in[{"input", "c", "x"}] * in.number("beta", 1) +
             outer(in[{"vec1", "a"}], in[{"vec2", "b"}]) * in.number("alpha", 1));
  };
  operations["chain_matmul"] = operations["multi_dot"] = [](const Given& in) {
    const auto all = in.operands();
    return y(
        std::accumulate(all.begin() + 1, all.end(), all.at(0), [](const Tensor& a, const Tensor& b) { return matmul(a, b); }));
  };
  operations["matrix_power"] = [](const Given& in) {
    Tensor result = eye(in[first].size(-1));
    for (auto n = static_cast<std::int64_t>(in.parameter(0, "n", 1)); n > 0; --n) result = matmul(result, in[first]);
    return y(result);
  };
  operations["kron"] = binary([](const Tensor& a, const Tensor& b) {
    const Tensor all = reshape(a, {a.size(0), 1, a.size(1), 1}) * reshape(b, {1, b.size(0), 1, b.size(1)});
    return reshape(all, {a.size(0) * b.size(0), a.size(1) * b.size(1)});
  });
  operations["cross"] = [](const Given& in) {
    const auto a = in[first], b = in[second];
    // Without a dimension the first of extent 3, of torch.linalg's the last.
    const auto dims = in.dims();
    int dim = dims ? dims->at(0) : -1;
    for (int d = a.rank() - 1; !dims && d >= 0; --d)
      if (a.size(d) == 3 && !in.op.starts_with("linalg.")) dim = d;
    const auto turned = [&](const Tensor& x, std::int64_t by) { return roll(x, {by}, dim); };
    return y(turned(a, -1) * turned(b, -2) - turned(a, -2) * turned(b, -1));
  };
  operations["cdist"] = [](const Given& in) {
    in.restated("compute_mode");
    return y(norm(unsqueeze(in[first], -2) - unsqueeze(in[second], -3), in.parameter(0, "p", 2), -1));
  };
  operations["tensordot"] = [](const Given& in) {
    const auto a = in[first], b = in[second];
    std::vector<int> of_a, of_b;
    const auto* dims = in.find({"dims", "numbers"});
    if (dims != nullptr && dims->is_array() && dims->size() == 2 && dims->at(0).is_array()) {
      of_a = dims->at(0).get<std::vector<int>>();
      of_b = dims->at(1).get<std::vector<int>>();
    } else {
      const int count = dims == nullptr ? 2 : dims->is_array() ? dims->at(0).get<int>() : dims->get<int>();
      for (int i = 0; i < count; ++i) {
        of_a.push_back(a.rank() - count + i);
        of_b.push_back(i);
      }
    }
    std::string left, right, result;
    char next = 'a';
    for (int d = 0; d < a.rank(); ++d) left += next++;
    for (int d = 0; d < b.rank(); ++d) right += next++;
    for (std::size_t i = 0; i < of_a.size(); ++i)
      right[static_cast<std::size_t>(b.shape().normalize(of_b[i]))] =
          left[static_cast<std::size_t>(a.shape().normalize(of_a[i]))];
    for (const char letter : left + right)
      if ((left + right).find(letter) == (left + right).rfind(letter)) result += letter;
    return y(einsum(left + "," + right + "->" + result, {a, b}));
  };
  operations["bilinear"] = [](const Given& in) {
    in.restated({"in1_features", "in2_features", "out_features"});
    const auto bias = in["bias"];
    const auto product = einsum("...i,oij,...j->...o", {in[{"x1", "input1", "a", "x"}], in["weight"], in[{"x2", "input2", "b"}]});
    return y(bias.defined() ? product + bias : product);
  };
  operations["embedding_bag"] = [](const Given& in) {
    in.restated({"num_embeddings", "embedding_dim"});
    const auto rows = embedding(in[{"idx", "indices", "x", "input"}], in["weight"]);
    const auto mode = in.text("mode", "mean");
    return y(mode == "sum" ? sum(rows, 1) : mode == "max" ? max(rows, 1) : mean(rows, 1));
  };
}

Results pieces_of(const Given& in, const Tensor& x, int dim) {
  const auto bounds = in.integers({"indices_or_sections", "indices", "sections", "split_size_or_sections"});
  const auto extent = x.size(dim);
  std::vector<std::int64_t> lengths;
  if (!bounds) throw Failed("there are no sections to split into");
  const auto* given = in.find({"indices_or_sections", "indices", "sections", "split_size_or_sections"});
  if (given->is_array()) {
    std::int64_t from = 0;
    for (const auto bound : *bounds) lengths.push_back(std::min(bound, extent) - from), from = std::min(bound, extent);
    lengths.push_back(extent - from);
  } else {
    // The first ones are longer by one where it does not come out even.
    const auto count = bounds->at(0);
    for (std::int64_t i = 0; i < count; ++i) lengths.push_back(extent / count + (i < extent % count ? 1 : 0));
  }
  return pieces(in, split(x, lengths, dim));
}

void add_arrangements(Operations& operations) {
  operations["tensor_split"] = [](const Given& in) { return pieces_of(in, in[first], in.dim(0)); };
  operations["hsplit"] = [](const Given& in) { return pieces_of(in, in[first], in[first].rank() == 1 ? 0 : 1); };
  operations["vsplit"] = [](const Given& in) { return pieces_of(in, in[first], 0); };
  operations["dsplit"] = [](const Given& in) { return pieces_of(in, in[first], 2); };
  operations["column_stack"] = [](const Given& in) {
    auto all = in.operands();
    for (auto& each : all)
      if (each.rank() < 2) each = reshape(each, {each.numel(), 1});
    return y(concat(all, 1));
  };
  operations["dstack"] = [](const Given& in) {
    auto all = in.operands();
    for (auto& each : all) {
      if (each.rank() < 2) each = reshape(each, {1, each.numel()});
      if (each.rank() == 2) each = unsqueeze(each, 2);
    }
    return y(concat(all, 2));
  };
  for (const char* name : {"ravel", "contiguous", "clone", "expand_as", "view_as", "reshape_as"})
    operations[name] = [](const Given& in) {
      const auto x = in[first];
      (void)in[second];
      const auto& to = in.outputs.at("y").shape();
      return y(x.numel() == to.numel() ? reshape(x, to) : expand(x, to));
    };
  operations["movedim"] = operations["moveaxis"] = [](const Given& in) {
    const auto x = in[first];
    const auto from = in.integers({"source", "src"}).value(), to = in.integers({"destination", "dst"}).value();
    std::vector<int> order(static_cast<std::size_t>(x.rank()), -1), rest;
    for (std::size_t i = 0; i < from.size(); ++i)
      order[static_cast<std::size_t>(x.shape().normalize(static_cast<int>(to[i])))] =
          x.shape().normalize(static_cast<int>(from[i]));
    for (int d = 0, next = 0; d < x.rank(); ++d) {
      if (std::find(order.begin(), order.end(), d) != order.end()) continue;
      while (order[static_cast<std::size_t>(next)] >= 0) ++next;
      order[static_cast<std::size_t>(next)] = d;
    }
    return y(permute(x, order));
  };
  operations["rot90"] = [](const Given& in) {
    const auto dims = in.dims().value_or(std::vector<int>{0, 1});
    auto x = in[first];
    for (auto times = (static_cast<std::int64_t>(in.parameter(0, "k", 1)) % 4 + 4) % 4; times > 0; --times)
      x = flip(transpose(x, dims.at(0), dims.at(1)), dims.at(0));
    return y(x);
  };
  operations["diag_embed"] = [](const Given& in) {
    const auto x = in[first];
    const auto offset = in.integer("offset", 0), size = x.size(-1) + std::abs(offset);
    in.restated({"dim1", "dim2"});
    const Tensor on = eq(unsqueeze(arange(size), 0), unsqueeze(arange(size), 1) + static_cast<double>(offset));
    const std::int64_t before = offset < 0 ? -offset : 0, after = offset > 0 ? offset : 0;
    std::vector<std::int64_t> ahead(static_cast<std::size_t>(x.rank())), behind = ahead;
    ahead.back() = before;
    behind.back() = after;
    return y(where(on, unsqueeze(pad(x, ahead, behind), -1), 0.0));
  };
  operations["diagflat"] = [](const Given& in) {
    return y(diag(reshape(in[first], {in[first].numel()}), in.integer("offset", 0)));
  };
  operations["meshgrid"] = [](const Given& in) {
    const auto all = in.operands();
    const bool xy = in.text("indexing", "ij") == "xy" && all.size() >= 2;
    std::vector<std::int64_t> extents;
    for (const auto& each : all) extents.push_back(each.numel());
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<std::int64_t> own(all.size(), 1);
      own[i] = all[i].numel();
      const Tensor one = expand(reshape(all[i], own), Shape(extents));
      results.push_back(xy ? transpose(one, 0, 1) : one);
    }
    return pieces(in, results);
  };
  operations["block_diag"] = [](const Given& in) {
    std::int64_t rows = 0, columns = 0;
    const auto all = in.operands();
    for (const auto& each : all) rows += each.size(0), columns += each.size(1);
    Tensor result = zeros({rows, columns});
    std::int64_t row = 0, column = 0;
    for (const auto& each : all) {
      result = result + pad(each, {row, column}, {rows - row - each.size(0), columns - column - each.size(1)});
      row += each.size(0);
      column += each.size(1);
    }
    return y(result);
  };
  const auto spread = [](const Given& in, const Tensor& x, int dim) {
    std::vector<std::int64_t> own(static_cast<std::size_t>(x.rank()), 1);
    const auto at = in[{"idx", "index", "indices"}];
    own[static_cast<std::size_t>(x.shape().normalize(dim))] = at.numel();
    return expand(reshape(at, own), x.shape().with(dim, at.numel()));
  };
  operations["index_copy"] = [=](const Given& in) {
    return y(scatter(in[first], in.dim(0), spread(in, in[first], in.dim(0)), in[{"src", "source", "b"}]));
  };
  operations["index_fill"] = [=](const Given& in) {
    return y(scatter(in[first], in.dim(0), spread(in, in[first], in.dim(0)), in.number("value", 0)));
  };
}

}  // namespace

void add_more_composed(Operations& operations) {
  add_order(operations);
  add_sums(operations);
  add_elements(operations);
  add_matrices(operations);
  add_arrangements(operations);
}

}  // namespace clnet::torch
