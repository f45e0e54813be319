// Random calls of the operations that arrange elements otherwise.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

using Amounts = std::vector<std::int64_t>;

template <class T>
std::string list(const std::vector<T>& values) {
  return fmt::format("{{{}}}", fmt::join(values, ", "));
}

bool add_reshape(Generator& g) {
  const auto x = g.any_value();
  const auto& from = g.shape_of(x);
  Amounts to = from.extents();
  switch (g.choose().below(4)) {
    case 0: to = {from.numel()}; break;
    case 1:  // two neighbours joined
      if (to.size() < 2) return false;
      for (const auto at = g.choose().below(static_cast<std::int64_t>(to.size()) - 1); true;) {
        to[static_cast<std::size_t>(at)] *= to[static_cast<std::size_t>(at) + 1];
        to.erase(to.begin() + at + 1);
        break;
      }
      break;
    case 2: {  // one divided
      if (to.empty()) return false;
      const auto at = static_cast<std::size_t>(g.choose().below(static_cast<std::int64_t>(to.size())));
      const auto extent = to[at];
      std::int64_t divisor = 1;
      for (std::int64_t d : {2, 3, 5, 7})
        if (extent > 0 && extent % d == 0) divisor = d;
      to[at] = extent / divisor;
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(at) + g.choose().below(2), divisor);
      break;
    }
    default: to.insert(to.begin() + g.choose().below(static_cast<std::int64_t>(to.size()) + 1), 1);
  }
  if (to.size() > 6) return false;
  g.add(
      "reshape", fmt::format("reshape($0, Shape{})", list(to)), {x},
      [to](const Tensors& in) { return reshape(in[0], Shape(to)); }, g.range(x));
  return true;
}

bool add_flatten(Generator& g) {
  const auto x = with_rank(g, 2);
  const int first = static_cast<int>(g.choose().below(g.shape_of(x).rank()));
  g.add(
      "flatten", fmt::format("flatten($0, {})", first), {x}, [first](const Tensors& in) { return flatten(in[0], first); },
      g.range(x));
  return true;
}

bool add_squeeze(Generator& g) {
  const auto x = g.any(
      [&](const Ref& ref) {
        for (auto extent : g.shape_of(ref))
          if (extent == 1) return true;
        return false;
      },
      [&] { return with_rank(g, 1); });
  int dim = 0;
  for (int d = 0; d < g.shape_of(x).rank(); ++d)
    if (g.shape_of(x)[d] == 1) dim = d;
  g.add(
      "squeeze", fmt::format("squeeze($0, {})", dim), {x}, [dim](const Tensors& in) { return squeeze(in[0], dim); }, g.range(x));
  return true;
}

bool add_unsqueeze(Generator& g) {
  const auto x = g.any_value();
  const int rank = g.shape_of(x).rank();
  if (rank > 4) return false;
  const int dim = static_cast<int>(g.choose().integer(-rank - 1, rank));
  g.add(
      "unsqueeze", fmt::format("unsqueeze($0, {})", dim), {x}, [dim](const Tensors& in) { return unsqueeze(in[0], dim); },
      g.range(x));
  return true;
}

bool add_transpose(Generator& g) {
  const auto x = with_rank(g, 2);
  const int a = some_dim(g, x), b = some_dim(g, x);
  g.add(
      "transpose", fmt::format("transpose($0, {}, {})", a, b), {x}, [=](const Tensors& in) { return transpose(in[0], a, b); },
      g.range(x));
  return true;
}

bool add_permute(Generator& g) {
  const auto x = with_rank(g, 2);
  std::vector<int> dims(static_cast<std::size_t>(g.shape_of(x).rank()));
  std::iota(dims.begin(), dims.end(), 0);
  for (auto i = dims.size(); i > 1; --i)
    std::swap(dims[i - 1], dims[static_cast<std::size_t>(g.choose().below(static_cast<std::int64_t>(i)))]);
  g.add(
      "permute", fmt::format("permute($0, {})", list(dims)), {x}, [dims](const Tensors& in) { return permute(in[0], dims); },
      g.range(x));
  return true;
}

bool add_expand(Generator& g) {
  const auto x = g.any_value();
  auto extents = g.shape_of(x).extents();
  std::int64_t elements = g.shape_of(x).numel();
  for (auto& extent : extents) {
    if (extent != 1 || !g.choose().chance(0.6)) continue;
    const auto wanted = g.extent();
    if (!g.fits(elements * wanted)) continue;
    extent = wanted;
    elements *= wanted;
  }
  if (const auto front = g.sizes().integer(1, 4); extents.size() < 5 && g.choose().chance(0.5) && g.fits(elements * front))
    extents.insert(extents.begin(), front);
  g.add(
      "expand", fmt::format("expand($0, Shape{})", list(extents)), {x},
      [extents](const Tensors& in) { return expand(in[0], Shape(extents)); }, g.range(x));
  return true;
}

/// Values that may stand beside x along a dimension, x among them perhaps twice.
std::vector<Ref> neighbours(Generator& g, const Ref& x, int dim, bool same_extent) {
  std::vector<Ref> parts{x};
  const auto count = g.choose().integer(1, 2);
  const auto fits = g.all([&](const Ref& ref) {
    const auto &a = g.shape_of(ref), &b = g.shape_of(x);
    return g.dtype_of(ref) == g.dtype_of(x) && a.rank() == b.rank() &&
           (same_extent ? a == b : a.with(dim, 0) == b.with(dim, 0)) && g.fits((a.numel() + b.numel()) * 2);
  });
  for (std::int64_t i = 0; i < count; ++i) {
    if (!fits.empty() && g.choose().chance(0.8))
      parts.push_back(g.choose().of(fits));
    else if (is_floating(g.dtype_of(x)))
      parts.push_back(g.leaf(same_extent ? g.shape_of(x) : g.shape_of(x).with(dim, g.sizes().integer(1, 5)), g.dtype_of(x)));
  }
  if (g.choose().chance(0.5)) std::swap(parts.front(), parts.back());
  return parts;
}

bool add_joined(Generator& g, bool stacked) {
  const auto x = with_rank(g, stacked ? 0 : 1);
  const int rank = g.shape_of(x).rank();
  if (!g.fits(g.shape_of(x).numel() * 3) || rank > 4) return false;
  const int dim = stacked ? static_cast<int>(g.choose().integer(0, rank)) : some_dim(g, x);
  const auto parts = neighbours(g, x, dim, stacked);
  Range range = g.range(x);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    names.push_back(fmt::format("${}", i));
    range = {std::min(range.low, g.range(parts[i]).low), std::max(range.high, g.range(parts[i]).high)};
  }
  g.add(
      stacked ? "stack" : "concat", fmt::format("{}({}, {})", stacked ? "stack" : "concat", list(names), dim), parts,
      [=](const Tensors& in) { return stacked ? stack(in, dim) : concat(in, dim); }, range);
  return true;
}

bool add_split(Generator& g) {
  const auto x = with_rank(g, 1);
  const int dim = g.choose().chance(0.5) ? 0 : some_dim(g, x);
  const auto extent = g.shape_of(x)[dim];
  const auto first = extent == 0 ? 0 : g.sizes().integer(0, extent);
  Amounts lengths{first, extent - first};
  if (g.choose().chance(0.3) && lengths[1] > 1) lengths = {first, 1, extent - first - 1};
  g.add_all(
      "split", fmt::format("split($0, {}, {})", list(lengths), dim), {x},
      [=](const Tensors& in) { return split(in[0], lengths, dim); }, g.range(x));
  return true;
}

bool add_slice(Generator& g) {
  const auto x = with_rank(g, 1);
  const int dim = g.choose().chance(0.6) ? 0 : some_dim(g, x);
  const auto extent = g.shape_of(x)[dim];
  std::int64_t start = 0, stop = extent, step = 1;
  const auto most = std::max<std::int64_t>(extent, 1);
  switch (g.choose().below(6)) {
    case 0: stop = (extent + 1) / 2; break;
    case 1: start = extent / 2; break;
    case 2:
      start = g.sizes().below(most);
      stop = start + 1;
      break;
    case 3: step = g.choose().integer(2, 3); break;
    case 4:
      start = extent - 1;
      stop = -extent - 1;
      step = g.choose().of<std::int64_t>({-1, -2});
      break;
    default: start = g.sizes().below(most); stop = g.sizes().integer(start, extent);
  }
  g.add(
      "slice", fmt::format("slice($0, {}, {}, {}, {})", dim, start, stop, step), {x},
      [=](const Tensors& in) { return slice(in[0], dim, start, stop, step); }, g.range(x));
  return true;
}

bool add_pad(Generator& g) {
  const auto x = with_rank(g, 1);
  const auto& shape = g.shape_of(x);
  const auto mode = g.choose().of(
      {PadMode::constant, PadMode::constant, PadMode::constant, PadMode::reflect, PadMode::edge, PadMode::circular});
  Amounts before, after;
  std::int64_t elements = 1;
  for (auto extent : shape) {
    const auto least = mode == PadMode::constant && g.choose().chance(0.3) ? -extent / 2 : std::int64_t{0};
    const auto most = mode == PadMode::reflect               ? std::clamp<std::int64_t>(extent - 1, 0, 2)
                      : mode == PadMode::circular            ? std::min<std::int64_t>(extent, 2)
                      : mode == PadMode::edge && extent == 0 ? 0
                                                             : 2;
    const bool here = g.choose().chance(0.6);
    before.push_back(here ? g.sizes().integer(std::min(least, most), most) : 0);
    after.push_back(here ? g.sizes().integer(std::min(least, most), most) : 0);
    elements *= std::max<std::int64_t>(1, extent + before.back() + after.back());
  }
  if (!g.fits(elements)) return false;
  constexpr std::string_view names[] = {"constant", "reflect", "edge", "circular"};
  const auto range = g.range(x);
  g.add("pad", fmt::format("pad($0, {}, {}, 1, PadMode::{})", list(before), list(after), names[static_cast<std::size_t>(mode)]),
        {x}, [=](const Tensors& in) { return pad(in[0], before, after, 1, mode); },
        {std::min(range.low, 1.0), std::max(range.high, 1.0)});
  return true;
}

bool add_index_select(Generator& g) {
  const auto x = with_rank(g, 1);
  const int dim = some_dim(g, x);
  const auto extent = g.shape_of(x)[dim];
  if (extent == 0) return false;
  const Shape picks = g.choose().chance(0.8) ? Shape{g.sizes().integer(1, 7)} : Shape{2, g.sizes().integer(1, 3)};
  if (!g.fits(g.shape_of(x).numel() / extent * picks.numel()) || g.shape_of(x).rank() > 5) return false;
  const auto at = indices(g, extent, picks);
  g.add(
      "index_select", fmt::format("index_select($0, {}, $1)", dim), {x, at},
      [dim](const Tensors& in) { return index_select(in[0], dim, in[1]); }, g.range(x));
  return true;
}

bool add_gather(Generator& g) {
  const auto x = with_rank(g, 1);
  const int dim = some_dim(g, x);
  const auto extent = g.shape_of(x)[dim];
  if (extent == 0) return false;
  auto extents = g.shape_of(x).extents();
  for (auto& e : extents)
    if (e > 1 && g.choose().chance(0.3)) e = g.sizes().integer(1, e);
  extents[static_cast<std::size_t>(dim)] = g.sizes().integer(1, 5);
  if (!g.fits(Shape(extents).numel())) return false;
  const auto at = indices(g, extent, Shape(extents));
  g.add(
      "gather", fmt::format("gather($0, {}, $1)", dim), {x, at}, [dim](const Tensors& in) { return gather(in[0], dim, in[1]); },
      g.range(x));
  return true;
}

bool add_embedding(Generator& g) {
  const auto weight =
      g.any([&](const Ref& ref) { return is_floating(g.dtype_of(ref)) && g.shape_of(ref).rank() == 2 && g.shape_of(ref)[0] > 0; },
            [&] {
              return g.leaf({g.sizes().integer(1, 9), g.sizes().integer(1, 17)}, g.float_dtype());
            });
  const auto count = g.shape_of(weight)[0];
  const Shape shape = g.choose().chance(0.5) ? Shape{g.sizes().integer(1, 9)} : Shape{2, g.sizes().integer(1, 4)};
  if (!g.fits(shape.numel() * g.shape_of(weight)[1])) return false;
  const auto at = indices(g, count, shape);
  const bool padded = g.choose().chance(0.4);
  g.add(
      "embedding", padded ? "embedding($0, $1, 0)" : "embedding($0, $1)", {at, weight},
      [padded](const Tensors& in) { return padded ? embedding(in[0], in[1], 0) : embedding(in[0], in[1]); }, g.range(weight));
  return true;
}

bool add_one_hot(Generator& g) {
  const auto classes = g.sizes().integer(1, 9);
  const auto at = g.leaf(g.shape(static_cast<int>(g.choose().integer(0, 2))), g.choose().of({Dtype::i32, Dtype::i64}),
                         {-1, static_cast<double>(classes)}, Fill::integers);
  if (!g.fits(g.shape_of(at).numel() * classes)) return false;
  const auto dtype = g.float_dtype();
  g.add("one_hot", fmt::format("one_hot($0, {}, Dtype::{})", classes, to_string(dtype)), {at},
        [=](const Tensors& in) { return one_hot(in[0], classes, dtype); }, {0, 1});
  return true;
}

bool add_flip(Generator& g) {
  const auto x = with_rank(g, 1);
  Dims dims{some_dim(g, x)};
  if (g.shape_of(x).rank() > 1 && g.choose().chance(0.3)) dims.push_back((dims[0] + 1) % g.shape_of(x).rank());
  g.add(
      "flip", fmt::format("flip($0, {})", list(dims)), {x}, [dims](const Tensors& in) { return flip(in[0], dims); }, g.range(x));
  return true;
}

bool add_roll(Generator& g) {
  const auto x = with_rank(g, 1);
  const int dim = some_dim(g, x);
  const auto shift = g.sizes().integer(-5, 5);
  const int rank = g.shape_of(x).rank();
  if (rank > 1 && shift > 0) {
    const int other = (dim + 1) % rank;
    g.add(
        "roll", fmt::format("roll($0, {{{}, {}}}, {{{}, {}}})", shift, -2, dim, other), {x},
        [=](const Tensors& in) {
          return roll(in[0], {shift, -2}, {dim, other});
        },
        g.range(x));
    return true;
  }
  g.add(
      "roll", fmt::format("roll($0, {{{}}}, {{{}}})", shift, dim), {x},
      [=](const Tensors& in) { return roll(in[0], {shift}, {dim}); }, g.range(x));
  return true;
}

bool add_tile(Generator& g) {
  const auto x = with_rank(g, 1);
  Amounts repeats(static_cast<std::size_t>(g.shape_of(x).rank()), 1);
  repeats[static_cast<std::size_t>(some_dim(g, x))] = g.choose().integer(2, 3);
  if (repeats.size() < 4 && g.choose().chance(0.3)) repeats.insert(repeats.begin(), 2);
  if (!g.fits(6 * g.shape_of(x).numel())) return false;
  g.add(
      "tile", fmt::format("tile($0, {})", list(repeats)), {x}, [repeats](const Tensors& in) { return tile(in[0], repeats); },
      g.range(x));
  return true;
}

bool add_triangle(Generator& g, bool lower) {
  const auto x = with_rank(g, 2);
  const auto diagonal = g.sizes().integer(-2, 2);
  g.add(
      lower ? "tril" : "triu", fmt::format("{}($0, {})", lower ? "tril" : "triu", diagonal), {x},
      [=](const Tensors& in) { return lower ? tril(in[0], diagonal) : triu(in[0], diagonal); }, g.range(x));
  return true;
}

bool add_pixels(Generator& g, bool shuffle) {
  const auto x = g.any(
      [&](const Ref& ref) {
        const auto& s = g.shape_of(ref);
        if (s.rank() < 3) return false;
        return shuffle ? s[-3] % 4 == 0 && s[-3] > 0 : s[-1] % 2 == 0 && s[-2] % 2 == 0;
      },
      [&] {
        const auto h = g.sizes().integer(1, 4), w = g.sizes().integer(1, 4);
        return g.leaf(shuffle ? Shape{8, h, w} : Shape{2, 2 * h, 2 * w}, g.float_dtype());
      });
  g.add(
      shuffle ? "pixel_shuffle" : "pixel_unshuffle", shuffle ? "pixel_shuffle($0, 2)" : "pixel_unshuffle($0, 2)", {x},
      [shuffle](const Tensors& in) { return shuffle ? pixel_shuffle(in[0], 2) : pixel_unshuffle(in[0], 2); }, g.range(x));
  return true;
}

/// A place that is a value; at times some of the slice lies outside.
bool add_placed_slice(Generator& g, bool update) {
  const auto x = g.any([&](const Ref& ref) { return g.shape_of(ref).rank() > 0 && g.shape_of(ref).numel() > 0; },
                       [&] { return g.floating(8, 1); });
  const auto& shape = g.shape_of(x);
  if (shape.numel() == 0) return false;
  const int dim = static_cast<int>(g.choose().below(shape.rank()));
  const auto length = g.sizes().integer(1, shape[dim]), start = g.sizes().integer(0, shape[dim] - length);
  if (!update) {
    g.add(
        "narrow", fmt::format("narrow($0, {}, {}, {})", dim, start, length), {x},
        [=](const Tensors& in) { return narrow(in[0], dim, start, length); }, g.range(x));
    return true;
  }
  const bool floating = is_floating(g.dtype_of(x));
  const auto value = g.leaf(shape.with(dim, length), g.dtype_of(x), floating ? Range{-2, 2} : Range{0, 1},
                            floating ? Fill::smooth : Fill::integers);
  const auto [low, high] = g.range(x);
  const Range both{std::min(low, -2.0), std::max(high, 2.0)};
  if (g.choose().chance(0.5)) {
    g.add(
        "slice_update", fmt::format("slice_update($0, {}, {}, $1)", dim, start), {x, value},
        [=](const Tensors& in) { return slice_update(in[0], dim, start, in[1]); }, both);
    return true;
  }
  const auto place = g.leaf({1}, Dtype::i64, {-1, 4}, Fill::integers);
  g.add(
      "slice_update", fmt::format("slice_update($0, {}, $2, $1)", dim), {x, value, place},
      [=](const Tensors& in) { return slice_update(in[0], dim, in[2], in[1]); }, both);
  return true;
}

}  // namespace

std::vector<Entry> shape_entries() {
  return {{"reshape", 6, add_reshape},
          {"flatten", 1, add_flatten},
          {"squeeze", 2, add_squeeze},
          {"unsqueeze", 2, add_unsqueeze},
          {"transpose", 3, add_transpose},
          {"permute", 3, add_permute},
          {"expand", 2, add_expand},
          {"concat", 3, [](Generator& g) { return add_joined(g, false); }},
          {"stack", 2, [](Generator& g) { return add_joined(g, true); }},
          {"split", 4, add_split},
          {"slice", 8, add_slice},
          {"slice_update", 1, [](Generator& g) { return add_placed_slice(g, true); }},
          {"narrow", 0.7, [](Generator& g) { return add_placed_slice(g, false); }},
          {"pad", 3, add_pad},
          {"flip", 1, add_flip},
          {"roll", 1, add_roll},
          {"tile", 1, add_tile},
          {"tril", 0.7, [](Generator& g) { return add_triangle(g, true); }},
          {"triu", 0.7, [](Generator& g) { return add_triangle(g, false); }},
          {"pixel_shuffle", 0.5, [](Generator& g) { return add_pixels(g, true); }},
          {"pixel_unshuffle", 0.5, [](Generator& g) { return add_pixels(g, false); }},
          {"index_select", 2, add_index_select},
          {"gather", 2, add_gather},
          {"embedding", 1, add_embedding},
          {"one_hot", 1, add_one_hot}};
}

}  // namespace clnet::fuzz
