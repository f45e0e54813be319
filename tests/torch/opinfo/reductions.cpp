// Reductions over dimensions, norms, and running sums.
#include <cmath>

#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

namespace {

using Reduce = Tensor (*)(const Tensor&, const Dims&, bool);
using Place = Tensor (*)(const Tensor&, int, bool);

Adapter reduced(Reduce reduce) {
  return one([reduce](const Args& in) {
    const auto x = in.tensor(0);
    return reduce(cast(x, in.dtype(3, "dtype", x.dtype())), in.dims(1), in.flag(2, "keepdim"));
  });
}

Tensor place_of(const Args& in, Place find) {
  const auto x = in.tensor(0);
  const bool keep = in.flag(2, "keepdim");
  if (in.find(1, "dim") != nullptr) return find(x, in.dim(1), keep);
  const auto place = find(as_line(x), 0, false);
  return keep ? reshape(place, std::vector<std::int64_t>(static_cast<std::size_t>(x.rank()), 1)) : place;
}

/// max() and min(): of a tensor, along a dimension with indices, or of two tensors.
Adapter extreme(Reduce reduce, Place find, Tensor (*of_two)(const Tensor&, const Tensor&)) {
  return [=](const Args& in) -> Outputs {
    const auto x = in.tensor(0);
    if (in.is_tensor(1, "other")) return {of_two(x, in.tensor(1, "other"))};
    if (in.find(1, "dim") == nullptr) return {reduce(x, {}, false)};
    // Of equal elements the first one alone gets the gradient, as of a gather.
    const int dim = in.dim(1);
    const bool keep = in.flag(2, "keepdim");
    const auto values = gather(x, dim, find(x, dim, true));
    return {keep || x.rank() == 0 ? values : squeeze(values, dim), find(x, dim, keep)};
  };
}

using Deviation = Tensor (*)(const Tensor&, const Dims&, int, bool);

struct Spread {
  Dims dims;
  int correction = 1;
  bool keep = false;

  explicit Spread(const Args& in) {
    // std(x, False): the flag stands where the dimensions would.
    const auto* first = in.find(1, "dim");
    const bool flag_first = first != nullptr && first->is_boolean();
    double given = (flag_first ? in.flag(1, "unbiased") : in.flag(2, "unbiased", true)) ? 1 : 0;
    if (!flag_first) dims = in.dims(1);
    given = in.number(4, "correction", given);
    if (given != std::floor(given)) throw LeftOut("a fractional correction");
    correction = static_cast<int>(given);
    keep = in.flag(3, "keepdim");
  }
};

Adapter spread(Deviation function, bool with_mean) {
  return [=](const Args& in) -> Outputs {
    const Spread how(in);
    const auto x = in.tensor(0);
    Outputs result{function(x, how.dims, how.correction, how.keep)};
    if (with_mean) result.push_back(mean(x, how.dims, how.keep));
    return result;
  };
}

Tensor matrix_norm(const Tensor& x, double order, const Dims& dims, bool keep) {
  if (std::abs(order) == 2) throw LeftOut("singular values");
  if (std::abs(order) != 1 && !std::isinf(order)) throw Failed("unknown order of a matrix's norm");
  const int first = positive_dim(x, dims[0]), second = positive_dim(x, dims[1]);
  const bool columns = std::abs(order) == 1;
  const auto sums = sum(abs(x), columns ? first : second, true);
  const auto largest = (order > 0 ? max : min)(sums, columns ? second : first, true);
  if (keep) return largest;
  return squeeze(squeeze(largest, std::max(first, second)), std::min(first, second));
}

/// linalg.norm, norm: of vectors, or of matrices where the order is named or `matrices` says so.
Tensor norm_case(const Args& in, bool matrices) {
  const auto x = cast(in.tensor(0), in.dtype(-1, "dtype", in.tensor(0).dtype()));
  const auto name = matrices ? "ord" : "p";
  auto dims = in.dims(2);
  const bool keep = in.flag(3, "keepdim");
  if (in.is_text(1, name) && in.text(1, name, "") == "nuc") throw LeftOut("singular values");
  if (in.is_text(1, name) && in.text(1, name, "") == "fro") return norm(x, 2, dims, keep);
  const auto order = in.maybe_number(1, name);
  if (!matrices || !order) return norm(x, order.value_or(2), dims, keep);
  if (dims.empty() && x.rank() == 2) dims = {0, 1};
  return dims.size() == 2 ? matrix_norm(x, *order, dims, keep) : norm(x, *order, dims, keep);
}

Tensor linalg_matrix_norm(const Args& in) {
  const auto x = cast(in.tensor(0), in.dtype(4, "dtype", in.tensor(0).dtype()));
  auto dims = in.dims(2);
  if (dims.empty()) dims = {-2, -1};
  const bool keep = in.flag(3, "keepdim");
  if (in.is_text(1, "ord") && in.text(1, "ord", "") == "nuc") throw LeftOut("singular values");
  if (in.find(1, "ord") == nullptr || (in.is_text(1, "ord") && in.text(1, "ord", "") == "fro")) return norm(x, 2, dims, keep);
  return matrix_norm(x, in.number(1, "ord"), dims, keep);
}

Tensor vector_norm(const Args& in) {
  const auto x = cast(in.tensor(0), in.dtype(4, "dtype", in.tensor(0).dtype()));
  return norm(x, in.number(1, "ord", 2), in.dims(2), in.flag(3, "keepdim"));
}

Tensor without_nan(const Tensor& x) { return where(is_nan(x), 0.0, x); }

Tensor running(const Args& in, Tensor (*function)(const Tensor&, int)) {
  return function(cast(in.tensor(0), in.dtype(2, "dtype", in.tensor(0).dtype())), in.dim(1));
}

}  // namespace

Tensor as_line(const Tensor& x) { return reshape(x, {x.numel()}); }

void add_reductions(Adapters& adapters) {
  const std::map<std::string, Reduce> reductions{{"sum", sum},  {"mean", mean}, {"prod", prod}, {"amax", max},
                                                 {"amin", min}, {"any", any},   {"all", all},   {"logsumexp", logsumexp}};
  for (const auto& [name, reduce] : reductions) adapters[name] = reduced(reduce);
  adapters["max"] = extreme(max, argmax, maximum);
  adapters["min"] = extreme(min, argmin, minimum);
  adapters["aminmax"] = [](const Args& in) -> Outputs {
    const auto x = in.tensor(0);
    const auto dims = in.dims(1);
    const bool keep = in.flag(2, "keepdim");
    return {min(x, dims, keep), max(x, dims, keep)};
  };
  adapters["argmax"] = one([](const Args& in) { return place_of(in, argmax); });
  adapters["argmin"] = one([](const Args& in) { return place_of(in, argmin); });
  adapters["var"] = spread(var, false);
  adapters["std"] = spread(stddev, false);
  adapters["var_mean"] = spread(var, true);
  adapters["std_mean"] = spread(stddev, true);
  adapters["norm"] = one([](const Args& in) { return norm_case(in, false); });
  adapters["linalg.norm"] = one([](const Args& in) { return norm_case(in, true); });
  adapters["linalg.vector_norm"] = one(vector_norm);
  adapters["linalg.matrix_norm"] = one(linalg_matrix_norm);
  adapters["dist"] = one([](const Args& in) { return norm(in.tensor(0) - in.tensor(1, "other"), in.number(2, "p", 2)); });
  adapters["cumsum"] = one([](const Args& in) { return running(in, cumsum); });
  adapters["cumprod"] = one([](const Args& in) { return running(in, cumprod); });
  adapters["trace"] = one([](const Args& in) { return trace(in.tensor(0)); });
  adapters["sum_to_size"] = one([](const Args& in) { return sum_to(in.tensor(0), Shape(in.sizes(1))); });
  adapters["count_nonzero"] = one([](const Args& in) { return sum(not_equal(in.tensor(0), 0.0), in.dims(1)); });
  adapters["nansum"] = one([](const Args& in) { return sum(without_nan(in.tensor(0)), in.dims(1), in.flag(2, "keepdim")); });
  adapters["nanmean"] = one([](const Args& in) {
    const auto x = in.tensor(0);
    const auto dims = in.dims(1);
    const bool keep = in.flag(2, "keepdim");
    return sum(without_nan(x), dims, keep) / cast(sum(!is_nan(x), dims, keep), x.dtype());
  });
}

}  // namespace clnet::torch::opinfo
