// Random calls of normalisation, dropout and losses.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

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

bool add_batch_norm_training(Generator& g) {
  const auto x = with_channels(g);
  const Shape channels{g.shape_of(x)[1]};
  const bool weighted = g.choose().chance(0.7), biased = g.choose().chance(0.7);
  const auto dtype = g.choose().chance(0.7) ? Dtype::f32 : g.dtype_of(x);
  std::vector<Ref> inputs{x};
  if (weighted) inputs.push_back(g.of_shape(channels, dtype));
  if (biased) inputs.push_back(g.of_shape(channels, dtype));
  g.add_all(
      "batch_norm_training",
      fmt::format("[](BatchNormResult r) {{ return std::vector{{r.y, r.mean, r.var}}; }}(batch_norm_training($0, {}, {}, 0.01))",
                  weighted ? "$1" : "{}", biased ? (weighted ? "$2" : "$1") : "{}"),
      inputs,
      [=](const Tensors& in) {
        const auto r = batch_norm_training(in[0], weighted ? in[1] : Tensor{}, biased ? in.back() : Tensor{}, 0.01);
        return Tensors{r.y, r.mean, r.var};
      },
      {-30, 30});
  return true;
}

bool add_batch_norm_inference(Generator& g) {
  const auto x = with_channels(g);
  const Shape channels{g.shape_of(x)[1]};
  const auto mean = g.of_shape(channels, Dtype::f32), var = g.leaf(channels, Dtype::f32, {0.25, 2}),
             weight = g.of_shape(channels, Dtype::f32), bias = g.of_shape(channels, Dtype::f32);
  g.add("batch_norm_inference", "batch_norm_inference($0, $1, $2, $3, $4)", {x, mean, var, weight, bias},
        [](const Tensors& in) { return batch_norm_inference(in[0], in[1], in[2], in[3], in[4]); }, {-200, 200});
  return true;
}

bool add_layer_norm(Generator& g) {
  const auto x = g.floating(8, 1);
  const auto& shape = g.shape_of(x);
  const int dims = static_cast<int>(g.choose().integer(1, std::min(2, shape.rank())));
  const Shape normalized(std::vector<std::int64_t>(shape.end() - dims, shape.end()));
  if (normalized.numel() == 0) return false;
  const bool weighted = g.choose().chance(0.6), biased = weighted && g.choose().chance(0.7);
  std::vector<Ref> inputs{x};
  if (weighted) inputs.push_back(g.of_shape(normalized, g.dtype_of(x)));
  if (biased) inputs.push_back(g.of_shape(normalized, g.dtype_of(x)));
  g.add("layer_norm", fmt::format("layer_norm($0, {}, {}, {}, 0.01)", dims, weighted ? "$1" : "{}", biased ? "$2" : "{}"), inputs,
        [=](const Tensors& in) { return layer_norm(in[0], dims, weighted ? in[1] : Tensor{}, biased ? in[2] : Tensor{}, 0.01); },
        {-30, 30});
  return true;
}

bool add_dropout(Generator& g) {
  const auto x = g.floating();
  const double p = g.choose().of({0.5, 0.25}), most = g.range(x).size() / (1 - p);
  g.add("dropout", fmt::format("dropout($0, {})", p), {x}, [p](const Tensors& in) { return dropout(in[0], p); }, {-most, most});
  return true;
}

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
  if (weighted) inputs.push_back(g.leaf({classes}, Dtype::f32, {0.5, 2}));
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
bool add_loss(Generator& g, std::string_view name, Loss loss) {
  const auto x = g.floating();
  const auto target = g.of_shape(g.shape_of(x), g.dtype_of(x));
  const auto reduction = some_reduction(g);
  const double most = 300 * static_cast<double>(reduction == Reduction::sum ? g.shape_of(x).numel() : 1);
  g.add(std::string(name), fmt::format("{}($0, $1, {})", name, name_of(reduction)), {x, target},
        [=](const Tensors& in) { return loss(in[0], in[1], reduction); }, {-most, most});
  return true;
}

bool add_bce(Generator& g) {
  if (g.choose().chance(0.6))
    return add_loss(g, "bce_with_logits", [](const Tensor& x, const Tensor& t, Reduction r) { return bce_with_logits(x, t, r); });
  const auto x = g.floating();
  const auto target = g.of_shape(g.shape_of(x), g.dtype_of(x));
  const auto weight = g.tame(g.partner(g.shape_of(x), g.dtype_of(x), true), 4);
  g.add("bce_with_logits", "bce_with_logits($0, $1, Reduction::none, $2)", {x, target, weight},
        [](const Tensors& in) { return bce_with_logits(in[0], in[1], Reduction::none, in[2]); }, {-300, 300});
  return true;
}

bool add_global_norm(Generator& g) {
  std::vector<Ref> inputs{g.floating()};
  if (g.choose().chance(0.7)) inputs.push_back(g.floating());
  g.add("global_norm", inputs.size() == 2 ? "global_norm({$0, $1})" : "global_norm({$0})", inputs,
        [](const Tensors& in) { return global_norm(in); }, {0, 1000});
  return true;
}

}  // namespace

std::vector<Entry> normalize_entries() {
  return {{"batch_norm_training", 2, add_batch_norm_training},
          {"batch_norm_inference", 1, add_batch_norm_inference},
          {"layer_norm", 3, add_layer_norm},
          {"dropout", 1.5, add_dropout},
          {"cross_entropy", 2, add_cross_entropy},
          {"mse_loss", 1, [](Generator& g) { return add_loss(g, "mse_loss", mse_loss); }},
          {"l1_loss", 1, [](Generator& g) { return add_loss(g, "l1_loss", l1_loss); }},
          {"bce_with_logits", 1, add_bce},
          {"global_norm", 1, add_global_norm}};
}

}  // namespace clnet::fuzz
