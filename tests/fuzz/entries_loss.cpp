// Random calls of losses.
#include <fmt/format.h>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

Ref with_channels(Generator& g) {
  const auto x = g.any(
      [&](const Ref& ref) {
        const auto& s = g.shape_of(ref);
        return is_floating(g.dtype_of(ref)) && s.rank() >= 2 && s[1] > 0 && s.numel() > s[1];
      },
      [&] {
        return g.leaf({g.sizes().integer(2, 5), g.sizes().integer(1, 5), g.sizes().integer(1, 9)}, g.float_dtype());
      });
  return g.tame(x, 8);
}

namespace {

constexpr std::string_view reduction_names[] = {"none", "mean", "sum"};
Reduction some_reduction(Generator& g) { return g.choose().of({Reduction::none, Reduction::mean, Reduction::sum}); }
std::string name_of(Reduction reduction) {
  return fmt::format("Reduction::{}", reduction_names[static_cast<std::size_t>(reduction)]);
}

bool add_cross_entropy(Generator& g) {
  const auto x = with_channels(g);
  const auto& shape = g.shape_of(x);
  const auto classes = shape[1];
  CrossEntropyOptions options;
  options.label_smoothing = g.choose().of({0.0, 0.0, 0.1});
  options.reduction = some_reduction(g);
  std::vector<Ref> inputs{x};
  const bool probabilities = g.choose().chance(0.2), weighted = g.choose().chance(0.3), ignoring = g.choose().chance(0.3);
  if (probabilities) {
    inputs.push_back(g.leaf(shape, g.dtype_of(x), {0, 1}));
  } else {
    auto extents = shape.extents();
    extents.erase(extents.begin() + 1);
    if (ignoring) options.ignore_index = 0;
    inputs.push_back(
        g.leaf(Shape(extents), g.choose().of({Dtype::i32, Dtype::i64}), {0, static_cast<double>(classes - 1)}, Fill::integers));
  }
  if (weighted) inputs.push_back(g.leaf({classes}, Generator::wide(g.dtype_of(x)), {0.5, 2}));
  g.add("cross_entropy",
        fmt::format("cross_entropy($0, $1, {{{}, {}, {}, {}}})", weighted ? "$2" : "{}", options.ignore_index,
                    options.label_smoothing, name_of(options.reduction)),
        inputs,
        [=](const Tensors& in) {
          auto with_weight = options;
          if (weighted) with_weight.weight = in[2];
          return cross_entropy(in[0], in[1], with_weight);
        },
        {-100, 1000});
  return true;
}

using Loss = Tensor (*)(const Tensor&, const Tensor&, Reduction);
bool add_loss(Generator& g, std::string_view name, Loss loss, bool broadcasts = true) {
  const auto x = g.floating();
  const Shape own = g.shape_of(x);
  const bool others = broadcasts && g.choose().chance(0.3);
  const auto target = others ? g.tame(g.partner(own, g.dtype_of(x)), 8) : g.of_shape(own, g.dtype_of(x));
  const auto reduction = some_reduction(g);
  const auto count = broadcast(g.shape_of(x), g.shape_of(target), name).numel();
  const double most = 300 * static_cast<double>(reduction == Reduction::sum ? count : 1);
  g.add(std::string(name), fmt::format("{}($0, $1, {})", name, name_of(reduction)), {x, target},
        [=](const Tensors& in) { return loss(in[0], in[1], reduction); }, {-most, most});
  return true;
}

bool add_bce(Generator& g) {
  if (g.choose().chance(0.6))
    return add_loss(
        g, "binary_cross_entropy_with_logits",
        [](const Tensor& x, const Tensor& t, Reduction r) { return binary_cross_entropy_with_logits(x, t, r); }, false);
  const auto x = g.floating();
  const auto target = g.of_shape(g.shape_of(x), g.dtype_of(x));
  const auto weight = g.tame(g.partner(g.shape_of(x), g.dtype_of(x), true), 4);
  g.add("binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits($0, $1, Reduction::none, $2)", {x, target, weight},
        [](const Tensors& in) { return binary_cross_entropy_with_logits(in[0], in[1], Reduction::none, in[2]); }, {-300, 300});
  return true;
}

/// A loss of floating values and a target of 1 and -1, all of one shape.
template <class Loss>
bool add_signed(Generator& g, std::string_view name, const Loss& loss) {
  const auto x = g.floating();
  const auto target = g.leaf(g.shape_of(x), g.dtype_of(x), {0, 1}, Fill::integers);
  const auto reduction = some_reduction(g);
  const double most = 300 * static_cast<double>(reduction == Reduction::sum ? g.shape_of(x).numel() : 1);
  g.add(std::string(name), fmt::format("{}($0, $1 * 2.0 - 1.0, 0.5, {})", name, name_of(reduction)), {x, target},
        [=](const Tensors& in) { return loss(in[0], in[1] * 2.0 - 1.0, 0.5, reduction); }, {-most, most});
  return true;
}

bool add_margin_ranking(Generator& g) {
  const auto x = g.floating();
  const auto other = g.of_shape(g.shape_of(x), g.dtype_of(x));
  const auto target = g.leaf(g.shape_of(x), g.dtype_of(x), {0, 1}, Fill::integers);
  g.add("margin_ranking_loss", "margin_ranking_loss($0, $1, $2 * 2.0 - 1.0, 0.5, Reduction::none)", {x, other, target},
        [](const Tensors& in) { return margin_ranking_loss(in[0], in[1], in[2] * 2.0 - 1.0, 0.5, Reduction::none); }, {0, 40});
  return true;
}

bool add_cosine_embedding(Generator& g) {
  const Shape rows = g.shape(1);
  const Shape shape{rows[0], g.sizes().integer(1, 9)};
  const auto dtype = g.float_dtype();
  const auto x = g.of_shape(shape, dtype), other = g.leaf(shape, dtype, {0.5, 2});
  // As it is: where it is compared with 1, the judge's errors would make another target of a computed one.
  const auto target = g.leaf(rows, dtype, {-1, 1}, Fill::integers);
  g.add("cosine_embedding_loss", "cosine_embedding_loss($0, $1, $2, 0.1, Reduction::none)", {x, other, target},
        [](const Tensors& in) { return cosine_embedding_loss(in[0], in[1], in[2], 0.1, Reduction::none); }, {0, 2});
  return true;
}

bool add_triplet_margin(Generator& g) {
  const auto anchor = g.floating(8, 1);
  const auto positive = g.of_shape(g.shape_of(anchor), g.dtype_of(anchor));
  const auto negative = g.of_shape(g.shape_of(anchor), g.dtype_of(anchor));
  const bool swap = g.choose().chance(0.5);
  const auto reduction = some_reduction(g);
  g.add("triplet_margin_loss",
        fmt::format("triplet_margin_loss($0, $1, $2, {{.swap = {}, .reduction = {}}})", swap, name_of(reduction)),
        {anchor, positive, negative},
        [=](const Tensors& in) { return triplet_margin_loss(in[0], in[1], in[2], {.swap = swap, .reduction = reduction}); },
        {0, 1000});
  return true;
}

bool add_nll(Generator& g) {
  const auto x = with_channels(g);
  auto extents = g.shape_of(x).extents();
  const auto classes = static_cast<double>(extents[1] - 1);
  extents.erase(extents.begin() + 1);
  const auto targets = g.leaf(Shape(extents), g.choose().of({Dtype::i32, Dtype::i64}), {0, classes}, Fill::integers);
  const auto reduction = some_reduction(g);
  g.add("nll_loss", fmt::format("nll_loss($0, $1, {{.reduction = {}}})", name_of(reduction)), {x, targets},
        [=](const Tensors& in) { return nll_loss(in[0], in[1], {.reduction = reduction}); }, {-1000, 1000});
  return true;
}

bool add_bce_of_probabilities(Generator& g) {
  const auto shape = g.shape(static_cast<int>(g.choose().integer(0, 3)));
  const auto dtype = g.float_dtype();
  const auto x = g.leaf(shape, dtype, {0.05, 0.95}), target = g.leaf(shape, dtype, {0, 1});
  const auto reduction = some_reduction(g);
  g.add("binary_cross_entropy", fmt::format("binary_cross_entropy($0, $1, {})", name_of(reduction)), {x, target},
        [=](const Tensors& in) { return binary_cross_entropy(in[0], in[1], reduction); }, {0, 1000});
  return true;
}

bool add_kl_div(Generator& g) {
  const auto x = g.floating();
  const bool log_target = g.choose().chance(0.3);
  const auto target = g.leaf(g.shape_of(x), g.dtype_of(x), log_target ? Range{-3, 0} : Range{0.01, 1});
  const auto reduction = some_reduction(g);
  g.add("kl_div", fmt::format("kl_div($0, $1, {{.reduction = {}, .log_target = {}}})", name_of(reduction), log_target),
        {x, target}, [=](const Tensors& in) { return kl_div(in[0], in[1], {.reduction = reduction, .log_target = log_target}); },
        {-1000, 1000});
  return true;
}

bool add_poisson_nll(Generator& g) {
  const auto x = g.floating(2.5);
  const bool full = g.choose().chance(0.5);
  const auto target = g.leaf(g.shape_of(x), g.dtype_of(x), {0, 5}, Fill::integers);
  const auto reduction = some_reduction(g);
  g.add("poisson_nll_loss", fmt::format("poisson_nll_loss($0, $1, {{.full = {}, .reduction = {}}})", full, name_of(reduction)),
        {x, target}, [=](const Tensors& in) { return poisson_nll_loss(in[0], in[1], {.full = full, .reduction = reduction}); },
        {-1000, 1000});
  return true;
}

bool add_gaussian_nll(Generator& g) {
  const auto x = g.floating();
  const auto target = g.of_shape(g.shape_of(x), g.dtype_of(x));
  const auto var = g.leaf(g.shape_of(x), g.dtype_of(x), {0.3, 2});
  const auto reduction = some_reduction(g);
  g.add("gaussian_nll_loss", fmt::format("gaussian_nll_loss($0, $1, $2, {{.reduction = {}}})", name_of(reduction)),
        {x, target, var}, [=](const Tensors& in) { return gaussian_nll_loss(in[0], in[1], in[2], {.reduction = reduction}); },
        {-1, 10000});
  return true;
}

}  // namespace

std::vector<Entry> loss_entries() {
  return {{"cross_entropy", 2, add_cross_entropy},
          {"nll_loss", 1, add_nll},
          {"mse_loss", 1, [](Generator& g) { return add_loss(g, "mse_loss", mse_loss); }},
          {"l1_loss", 1, [](Generator& g) { return add_loss(g, "l1_loss", l1_loss); }},
          {"smooth_l1_loss", 0.5,
           [](Generator& g) {
             return add_loss(g, "smooth_l1_loss",
                             [](const Tensor& x, const Tensor& t, Reduction r) { return smooth_l1_loss(x, t, r); });
           }},
          {"huber_loss", 0.5,
           [](Generator& g) {
             return add_loss(g, "huber_loss", [](const Tensor& x, const Tensor& t, Reduction r) { return huber_loss(x, t, r); });
           }},
          {"binary_cross_entropy", 0.5, add_bce_of_probabilities},
          {"binary_cross_entropy_with_logits", 1, add_bce},
          {"sigmoid_focal_loss", 0.5,
           [](Generator& g) {
             return add_loss(
                 g, "sigmoid_focal_loss",
                 [](const Tensor& x, const Tensor& t, Reduction r) { return sigmoid_focal_loss(x, t, r); }, false);
           }},
          {"kl_div", 0.5, add_kl_div},
          {"poisson_nll_loss", 0.5, add_poisson_nll},
          {"gaussian_nll_loss", 0.5, add_gaussian_nll},
          {"hinge_embedding_loss", 0.5, [](Generator& g) { return add_signed(g, "hinge_embedding_loss", hinge_embedding_loss); }},
          {"margin_ranking_loss", 0.5, add_margin_ranking},
          {"cosine_embedding_loss", 0.5, add_cosine_embedding},
          {"triplet_margin_loss", 0.5, add_triplet_margin}};
}

}  // namespace clnet::fuzz
