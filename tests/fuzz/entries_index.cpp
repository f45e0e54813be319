// Random calls of the operations that choose, order, draw and resize.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

bool add_einsum(Generator& g) {
  const auto a = g.floating(4, 2);
  if (g.shape_of(a).rank() != 2) return false;
  const auto rows = g.shape_of(a)[0], inner = g.shape_of(a)[1], columns = g.sizes().integer(1, 5);
  if (!g.fits(rows * columns) || !g.fits(inner * columns)) return false;
  const double most = g.range(a).size() * 2 * static_cast<double>(std::max<std::int64_t>(1, std::max(rows, inner)));
  const auto b = g.leaf({inner, columns}, g.dtype_of(a));
  const std::string equation = g.choose().of<std::string>({"ij,jk->ik", "ij,jk->ki", "...j,jk->...k", "ij,jk->j", "ij,jk,jk->i"});
  const bool three = equation == "ij,jk,jk->i";
  const double scale = static_cast<double>(std::max<std::int64_t>(columns, rows)) * (three ? 2 : 1);
  g.add("einsum", fmt::format("einsum(\"{}\", {{$0, $1{}}})", equation, three ? ", $1" : ""), {a, b},
        [=](const Tensors& in) {
          return einsum(equation, three ? Tensors{in[0], in[1], in[1]} : Tensors{in[0], in[1]});
        },
        {-most * scale, most * scale});
  return true;
}

bool add_interpolate(Generator& g) {
  using enum Interpolation;
  const auto x = g.image(1);
  const auto& shape = g.shape_of(x);
  if (shape.numel() == 0) return false;
  InterpolateOptions options;
  options.mode = g.choose().of({nearest, nearest_exact, bilinear, bicubic, area});
  const bool factor = g.choose().chance(0.5);
  const auto h = factor ? shape[2] * 2 : g.sizes().integer(1, 9), w = factor ? shape[3] * 2 : g.sizes().integer(1, 9);
  if (factor)
    options.scale_factor = {2};
  else
    options.size = {h, w};
  options.align_corners = (options.mode == bilinear || options.mode == bicubic) && g.choose().chance(0.3);
  options.antialias = (options.mode == bilinear || options.mode == bicubic) && g.choose().chance(0.3);
  if (!g.fits(shape[0] * shape[1] * h * w)) return false;
  constexpr std::string_view names[] = {"nearest", "nearest_exact", "linear", "bilinear", "bicubic", "trilinear", "area"};
  const auto sizes = factor ? std::string(".scale_factor = {2}") : fmt::format(".size = {{{}, {}}}", h, w);
  const double most = 2 * g.range(x).size();
  g.add("interpolate",
        fmt::format("interpolate($0, {{{}, .mode = Interpolation::{}, .align_corners = {}, .antialias = {}}})", sizes,
                    names[static_cast<std::size_t>(options.mode)], options.align_corners, options.antialias),
        {x}, [=](const Tensors& in) { return interpolate(in[0], options); }, {-most, most});
  return true;
}

bool add_cumsum(Generator& g) {
  const auto x = g.choose().chance(0.2) ? g.leaf(g.shape(2), g.choose().of({Dtype::i32, Dtype::u8}), {0, 9}, Fill::integers)
                                        : g.floating(8, 1);
  const int dim = some_dim(g, x);
  const double most = g.range(x).size() * static_cast<double>(std::max<std::int64_t>(1, g.shape_of(x)[dim]));
  g.add("cumsum", fmt::format("cumsum($0, {})", dim), {x}, [dim](const Tensors& in) { return cumsum(in[0], dim); },
        {-most, most});
  return true;
}

bool add_unfold(Generator& g, bool back) {
  const Pair kernel{g.sizes().integer(1, 3), g.sizes().integer(1, 3)};
  const UnfoldOptions options{g.choose().chance(0.3) ? 2 : 1, g.sizes().integer(0, 1), g.choose().chance(0.3) ? 2 : 1};
  const auto x = g.image(5);
  const auto& s = g.shape_of(x);
  const auto count = [](std::int64_t extent, std::int64_t size, std::int64_t apart, std::int64_t step, std::int64_t padding) {
    return (extent + 2 * padding - apart * (size - 1) - 1) / step + 1;
  };
  const auto windows = count(s[2], kernel.height, options.dilation.height, options.stride.height, options.padding.height) *
                       count(s[3], kernel.width, options.dilation.width, options.stride.width, options.padding.width);
  const Shape columns{s[0], s[1] * kernel.height * kernel.width, windows};
  if (!g.fits(columns.numel())) return false;
  const auto written = fmt::format("{{{}, {}}}, {{{}, {}, {}}}", kernel.height, kernel.width, options.dilation.height,
                                   options.padding.height, options.stride.height);
  if (!back) {
    g.add(
        "unfold", fmt::format("unfold($0, {})", written), {x}, [=](const Tensors& in) { return unfold(in[0], kernel, options); },
        g.range(x));
    return true;
  }
  const auto from = g.of_shape(columns, g.dtype_of(x));
  const double most = g.range(from).size() * static_cast<double>(kernel.height * kernel.width);
  g.add("fold", fmt::format("fold($0, {{{}, {}}}, {})", s[2], s[3], written), {from},
        [=, image = Pair{s[2], s[3]}](const Tensors& in) { return fold(in[0], image, kernel, options); }, {-most, most});
  return true;
}

bool add_sort(Generator& g, bool only_order) {
  const auto x = with_rank(g, 1);
  const int dim = some_dim(g, x);
  const bool descending = g.choose().chance(0.5);
  const auto call = fmt::format("({}, {}, {})", "$0", dim, descending);
  if (only_order)
    g.add("argsort", "argsort" + call, {x}, [=](const Tensors& in) { return argsort(in[0], dim, descending); },
          {0, static_cast<double>(g.shape_of(x)[dim])});
  else
    g.add(
        "sort", "sort" + call + ".values", {x}, [=](const Tensors& in) { return sort(in[0], dim, descending).values; },
        g.range(x));
  return true;
}

bool add_topk(Generator& g) {
  const auto x = with_rank(g, 1);
  const int dim = some_dim(g, x);
  const auto k = g.sizes().integer(0, g.shape_of(x)[dim]);
  const bool largest = g.choose().chance(0.5);
  g.add(
      "topk", fmt::format("topk($0, {}, {}, {}).values", k, dim, largest), {x},
      [=](const Tensors& in) { return topk(in[0], k, dim, largest).values; }, g.range(x));
  return true;
}

bool add_scatter(Generator& g, bool add) {
  const auto x = add ? g.floating(8, 1) : with_rank(g, 1);
  const int dim = some_dim(g, x);
  const auto& shape = g.shape_of(x);
  if (shape.numel() == 0) return false;
  auto picks = shape.with(dim, g.sizes().integer(1, 6)).extents();
  for (auto& extent : picks)
    if (extent > 1 && g.choose().chance(0.2)) extent = g.sizes().integer(1, extent);
  if (!g.fits(Shape(picks).numel())) return false;
  const auto at = indices(g, shape[dim], Shape(picks));
  const auto source = is_floating(g.dtype_of(x)) ? g.of_shape(Shape(picks), g.dtype_of(x))
                                                 : g.leaf(Shape(picks), g.dtype_of(x), {0, 1}, Fill::integers);
  const double most = g.range(x).size() + 7 * g.range(source).size();
  const auto name = add ? "scatter_add" : "scatter";
  g.add(name, fmt::format("{}($0, {}, $1, $2)", name, dim), {x, at, source},
        [=](const Tensors& in) { return add ? scatter_add(in[0], dim, in[1], in[2]) : scatter(in[0], dim, in[1], in[2]); },
        {-most, most});
  return true;
}

bool add_scatter_reduce(Generator& g) {
  const auto x = g.tame(g.floating(2, 1), 2);
  const int dim = some_dim(g, x);
  const auto& shape = g.shape_of(x);
  const auto picks = shape.with(dim, g.sizes().integer(1, 4));
  if (shape.numel() == 0 || !g.fits(picks.numel())) return false;
  const auto at = indices(g, shape[dim], picks);
  const auto source = g.leaf(picks, g.dtype_of(x), {-2, 2});
  using enum ScatterReduction;
  const auto reduction = g.choose().of({sum, prod, mean, amax, amin});
  constexpr std::string_view names[] = {"sum", "prod", "mean", "amax", "amin"};
  const bool own = g.choose().chance(0.5);
  g.add("scatter_reduce",
        fmt::format("scatter_reduce($0, {}, $1, $2, ScatterReduction::{}, {})", dim, names[static_cast<std::size_t>(reduction)],
                    own),
        {x, at, source}, [=](const Tensors& in) { return scatter_reduce(in[0], dim, in[1], in[2], reduction, own); }, {-40, 40});
  return true;
}

bool add_index_add(Generator& g) {
  const auto x = g.floating(8, 1);
  const int dim = some_dim(g, x);
  const auto& shape = g.shape_of(x);
  const auto picks = g.sizes().integer(1, 6);
  if (shape.numel() == 0 || !g.fits(shape.with(dim, picks).numel())) return false;
  const auto at = indices(g, shape[dim], {picks});
  const auto source = g.of_shape(shape.with(dim, picks), g.dtype_of(x));
  const double most = g.range(x).size() + 7 * g.range(source).size();
  const double alpha = g.choose().of({1.0, 1.0, -0.5});
  g.add("index_add", fmt::format("index_add($0, {}, $1, $2, {})", dim, alpha), {x, at, source},
        [=](const Tensors& in) { return index_add(in[0], dim, in[1], in[2], alpha); }, {-most, most});
  return true;
}

bool add_repeat(Generator& g, bool in_place) {
  const auto x = with_rank(g, 1);
  const int dim = some_dim(g, x);
  const auto times = g.choose().integer(1, 3);
  if (!g.fits(times * g.shape_of(x).numel())) return false;
  if (in_place) {
    g.add(
        "repeat_interleave", fmt::format("repeat_interleave($0, {}, {})", times, dim), {x},
        [=](const Tensors& in) { return repeat_interleave(in[0], times, dim); }, g.range(x));
    return true;
  }
  std::vector<std::int64_t> repeats(static_cast<std::size_t>(g.shape_of(x).rank()), 1);
  repeats[static_cast<std::size_t>(dim)] = times;
  g.add(
      "repeat", fmt::format("repeat($0, {{{}}})", fmt::join(repeats, ", ")), {x},
      [=](const Tensors& in) { return repeat(in[0], repeats); }, g.range(x));
  return true;
}

bool add_diagonal(Generator& g) {
  const auto x = with_rank(g, 2);
  const int first = some_dim(g, x), second = (first + 1) % g.shape_of(x).rank();
  const auto offset = g.choose().integer(-2, 2);
  g.add(
      "diagonal", fmt::format("diagonal($0, {}, {}, {})", offset, first, second), {x},
      [=](const Tensors& in) { return diagonal(in[0], offset, first, second); }, g.range(x));
  return true;
}

bool add_diag(Generator& g) {
  const auto x = g.any([&](const Ref& ref) { return g.shape_of(ref).rank() == 1 && g.shape_of(ref)[0] < 40; },
                       [&] { return g.leaf({g.sizes().integer(1, 9)}, g.float_dtype()); });
  const auto offset = g.choose().integer(-2, 2);
  const auto range = g.range(x);
  g.add("diag", fmt::format("diag($0, {})", offset), {x}, [=](const Tensors& in) { return diag(in[0], offset); },
        {std::min(0.0, range.low), std::max(0.0, range.high)});
  return true;
}

bool add_trace(Generator& g) {
  const auto x = g.any([&](const Ref& ref) { return g.shape_of(ref).rank() == 2; },
                       [&] {
                         return g.leaf({g.sizes().integer(1, 9), g.sizes().integer(1, 9)}, g.float_dtype());
                       });
  const double most = g.range(x).size() * static_cast<double>(g.shape_of(x)[0] + 1);
  g.add("trace", "trace($0)", {x}, [](const Tensors& in) { return trace(in[0]); }, {-most, most});
  return true;
}

bool add_linspace(Generator& g) {
  const auto dtype = g.float_dtype();
  const auto count = g.extent();
  g.add("linspace", fmt::format("linspace(-1, 2, {}, Dtype::{})", count, to_string(dtype)), {},
        [=](const Tensors&) { return linspace(-1, 2, count, dtype); }, {-1, 2});
  return true;
}

bool add_eye(Generator& g) {
  const auto dtype = g.choose().of({g.float_dtype(), Dtype::i32});
  const auto rows = g.extent(), columns = g.extent();
  if (!g.fits(rows * columns)) return false;
  g.add("eye", fmt::format("eye({}, {}, Dtype::{})", rows, columns, to_string(dtype)), {},
        [=](const Tensors&) { return eye(rows, columns, dtype); }, {0, 1});
  return true;
}

bool add_randint(Generator& g) {
  const auto shape = g.shape(static_cast<int>(g.choose().integer(0, 3)));
  const auto dtype = g.choose().of({Dtype::i64, Dtype::i32, Dtype::i8});
  g.add("randint", fmt::format("randint(-3, 9, {}, Dtype::{})", to_code(shape), to_string(dtype)), {},
        [=](const Tensors&) { return randint(-3, 9, shape, dtype); }, {-3, 8});
  return true;
}

bool add_randperm(Generator& g) {
  const auto count = g.extent();
  g.add("randperm", fmt::format("randperm({})", count), {}, [=](const Tensors&) { return randperm(count); },
        {0, static_cast<double>(count)});
  return true;
}

bool add_bernoulli(Generator& g) {
  const auto p = g.leaf(g.shape(static_cast<int>(g.choose().integer(0, 3))), g.float_dtype(), {0, 1});
  g.add("bernoulli", "bernoulli($0)", {p}, [](const Tensors& in) { return bernoulli(in[0]); }, {0, 1});
  return true;
}

bool add_poisson(Generator& g) {
  const auto rates = g.leaf(g.shape(static_cast<int>(g.choose().integer(0, 3))), g.float_dtype(), {0, 30});
  g.add("poisson", "poisson($0)", {rates}, [](const Tensors& in) { return poisson(in[0]); }, {0, 80});
  return true;
}

bool add_multinomial(Generator& g) {
  const auto n = g.sizes().integer(1, 20), count = g.sizes().integer(1, n);
  const bool replacement = g.choose().chance(0.5);
  const auto weights = g.leaf(g.choose().chance(0.5) ? Shape{n} : Shape{3, n}, g.float_dtype(), {0.1, 2});
  g.add("multinomial", fmt::format("multinomial($0, {}, {})", count, replacement), {weights},
        [=](const Tensors& in) { return multinomial(in[0], count, replacement); }, {0, static_cast<double>(n)});
  return true;
}

using Drop = Tensor (*)(const Tensor&, double);
bool add_drop(Generator& g, const char* name, Drop drop, int rank) {
  const auto x = rank == 0   ? g.floating()
                 : rank == 2 ? with_channels(g)
                 : rank == 4 ? g.image(1)
                             : g.leaf(rank == 3 ? Shape{2, g.sizes().integer(1, 5), g.sizes().integer(1, 7)}
                                                : Shape{2, g.sizes().integer(1, 5), 2, g.sizes().integer(1, 4), 3},
                                      g.float_dtype());
  const double p = g.choose().of({0.5, 0.25}), most = 2 * g.range(x).size() + 4;
  g.add(name, fmt::format("{}($0, {})", name, p), {x}, [=](const Tensors& in) { return drop(in[0], p); }, {-most, most});
  return true;
}

bool add_rrelu(Generator& g) {
  const auto x = g.floating();
  const bool training = g.choose().chance(0.7);
  g.add(
      "rrelu", fmt::format("rrelu($0, 0.125, 0.5, {})", training), {x},
      [=](const Tensors& in) { return rrelu(in[0], 0.125, 0.5, training); }, g.range(x));
  return true;
}

bool add_gumbel_softmax(Generator& g) {
  const auto x = g.floating(4, 1);
  const int dim = some_dim(g, x);
  const bool hard = g.choose().chance(0.3);
  if (g.shape_of(x)[dim] == 0) return false;
  g.add("gumbel_softmax", fmt::format("gumbel_softmax($0, 1.5, {}, {})", hard, dim), {x},
        [=](const Tensors& in) { return gumbel_softmax(in[0], 1.5, hard, dim); }, {0, 1});
  return true;
}

bool add_softmin(Generator& g) {
  const auto x = g.floating(8, 1);
  const int dim = some_dim(g, x);
  g.add("softmin", fmt::format("softmin($0, {})", dim), {x}, [dim](const Tensors& in) { return softmin(in[0], dim); }, {0, 1});
  return true;
}

bool add_ctc_loss(Generator& g) {
  const auto steps = g.sizes().integer(2, 7), batch = g.sizes().integer(1, 3), targets = g.sizes().integer(0, 3);
  const auto x = g.leaf({steps, batch, 4}, g.float_dtype(), {-3, -0.5});
  const auto labels = g.leaf({batch, targets}, Dtype::i32, {1, 3}, Fill::integers);
  const auto lengths = g.leaf({batch}, Dtype::i32, {static_cast<double>(steps - 1), static_cast<double>(steps)}, Fill::integers);
  const auto own = g.leaf({batch}, Dtype::i64, {0, static_cast<double>(targets)}, Fill::integers);
  g.add("ctc_loss", "ctc_loss($0, $1, $2, $3, {.zero_infinity = true})", {x, labels, lengths, own},
        [](const Tensors& in) { return ctc_loss(in[0], in[1], in[2], in[3], {.zero_infinity = true}); }, {0, 30});
  return true;
}

bool add_soft_margin(Generator& g, bool labels) {
  const auto x = labels ? g.floating(8, 1) : g.floating(8);
  const auto target = g.leaf(g.shape_of(x), g.dtype_of(x), {0, 1});
  if (g.shape_of(x).numel() == 0) return false;
  const auto name = labels ? "multilabel_soft_margin_loss" : "soft_margin_loss";
  g.add(name, fmt::format("{}($0, $1)", name), {x, target},
        [=](const Tensors& in) { return labels ? multilabel_soft_margin_loss(in[0], in[1]) : soft_margin_loss(in[0], in[1]); },
        {0, 20});
  return true;
}

bool add_multi_margin(Generator& g, bool labels) {
  const auto dtype = g.float_dtype();
  const auto rows = g.sizes().integer(1, 5), classes = g.sizes().integer(1, 6);
  const auto x = g.of_shape({rows, classes}, dtype);
  const auto last = static_cast<double>(classes - 1);
  const auto targets = g.leaf(labels ? Shape{rows, classes} : Shape{rows}, g.choose().of({Dtype::i32, Dtype::i64}),
                              {labels ? -1.0 : 0.0, last}, Fill::integers);
  const double most = (1 + 2 * g.range(x).size()) * static_cast<double>(classes * rows);
  const auto name = labels ? "multilabel_margin_loss" : "multi_margin_loss";
  g.add(name, fmt::format("{}($0, $1)", name), {x, targets},
        [=](const Tensors& in) { return labels ? multilabel_margin_loss(in[0], in[1]) : multi_margin_loss(in[0], in[1]); },
        {0, most});
  return true;
}

/// 0 to 4 in turn: the same at every run, as the result's shape depends on it. Made in each call, on the device that is current.
Tensor some_numbers(const Shape& shape) {
  std::vector<std::int32_t> numbers;
  for (std::int64_t i = 0; i < shape.numel(); ++i) numbers.push_back(static_cast<std::int32_t>(i * 7 % 5));
  return Tensor::from(numbers, shape);
}

bool add_masked_select(Generator& g) {
  const auto x = with_rank(g, 1);
  const auto shape = g.shape_of(x);
  std::vector<bool> truth;
  for (std::int64_t i = 0; i < shape.numel(); ++i) truth.push_back(i % 3 != 1);
  // Made in each call, on the device that is current.
  g.add(
      "masked_select", "masked_select($0, mask /* 1, 0, 1 in turn */)", {x},
      [=](const Tensors& in) { return masked_select(in[0], Tensor::from(truth, shape)); }, g.range(x));
  return true;
}

bool add_known(Generator& g, const std::string& name, Tensor (*function)(const Tensor&)) {
  const auto shape = g.shape(2);
  g.add(name, name + "(numbers /* 0, 2, 4, 1, 3 in turn */)", {}, [=](const Tensors&) { return function(some_numbers(shape)); },
        {0, static_cast<double>(shape.numel())});
  return true;
}

Tensor some_boxes_left(const Tensor& numbers) {
  const auto count = numbers.numel();
  std::vector<float> corners, scores;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto left = static_cast<float>(i * 5 % 11), top = static_cast<float>(i * 3 % 7);
    corners.insert(corners.end(), {left, top, left + 4, top + 3});
    scores.push_back(static_cast<float>(i * 17 % 23));
  }
  return nms(Tensor::from(corners, {count, 4}), Tensor::from(scores), 0.25);
}

}  // namespace

std::vector<Entry> index_entries() {
  return {
      {"einsum", 1, add_einsum},
      {"interpolate", 1.5, add_interpolate},
      {"cumsum", 1, add_cumsum},
      {"unfold", 0.5, [](Generator& g) { return add_unfold(g, false); }},
      {"fold", 0.5, [](Generator& g) { return add_unfold(g, true); }},
      {"sort", 0.7, [](Generator& g) { return add_sort(g, false); }},
      {"argsort", 0.5, [](Generator& g) { return add_sort(g, true); }},
      {"topk", 0.7, add_topk},
      {"scatter", 0.7, [](Generator& g) { return add_scatter(g, false); }},
      {"scatter_add", 0.7, [](Generator& g) { return add_scatter(g, true); }},
      {"scatter_reduce", 0.5, add_scatter_reduce},
      {"index_add", 0.7, add_index_add},
      {"masked_select", 0.5, add_masked_select},
      {"argwhere", 0.2, [](Generator& g) { return add_known(g, "argwhere", argwhere); }},
      {"nonzero", 0.3, [](Generator& g) { return add_known(g, "nonzero", nonzero); }},
      {"unique", 0.3, [](Generator& g) { return add_known(g, "unique", [](const Tensor& x) { return unique(x).values; }); }},
      {"unique_consecutive", 0.3,
       [](Generator& g) {
         return add_known(g, "unique_consecutive", [](const Tensor& x) { return unique_consecutive(x).counts; });
       }},
      {"nms", 0.3, [](Generator& g) { return add_known(g, "nms", some_boxes_left); }},
      {"repeat", 0.4, [](Generator& g) { return add_repeat(g, false); }},
      {"repeat_interleave", 0.5, [](Generator& g) { return add_repeat(g, true); }},
      {"diagonal", 0.7, add_diagonal},
      {"diag", 0.4, add_diag},
      {"trace", 0.4, add_trace},
      {"linspace", 0.3, add_linspace},
      {"eye", 0.3, add_eye},
      {"randint", 0.3, add_randint},
      {"randperm", 0.3, add_randperm},
      {"bernoulli", 0.3, add_bernoulli},
      {"multinomial", 0.3, add_multinomial},
      {"poisson", 0.3, add_poisson},
      {"dropout1d", 0.3, [](Generator& g) { return add_drop(g, "dropout1d", dropout1d, 3); }},
      {"dropout2d", 0.4, [](Generator& g) { return add_drop(g, "dropout2d", dropout2d, 4); }},
      {"dropout3d", 0.3, [](Generator& g) { return add_drop(g, "dropout3d", dropout3d, 5); }},
      {"alpha_dropout", 0.4, [](Generator& g) { return add_drop(g, "alpha_dropout", alpha_dropout, 0); }},
      {"feature_alpha_dropout", 0.3, [](Generator& g) { return add_drop(g, "feature_alpha_dropout", feature_alpha_dropout, 2); }},
      {"rrelu", 0.5, add_rrelu},
      {"gumbel_softmax", 0.5, add_gumbel_softmax},
      {"softmin", 0.5, add_softmin},
      {"ctc_loss", 0.3, add_ctc_loss},
      {"multi_margin_loss", 0.4, [](Generator& g) { return add_multi_margin(g, false); }},
      {"multilabel_margin_loss", 0.4, [](Generator& g) { return add_multi_margin(g, true); }},
      {"soft_margin_loss", 0.5, [](Generator& g) { return add_soft_margin(g, false); }},
      {"multilabel_soft_margin_loss", 0.5, [](Generator& g) { return add_soft_margin(g, true); }}};
}

}  // namespace clnet::fuzz
