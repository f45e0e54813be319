// Changes of shape. Where a case has no attributes that say what a function does, it is what the format's own does, or what
// gives the wanted result.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tests/torch/cases.h"
#include "tests/torch/names.h"

namespace clnet::torch {

PadMode pad_mode(const std::string& name) {
  if (name == "constant" || name == "zeros") return PadMode::constant;
  if (name == "reflect") return PadMode::reflect;
  if (name == "circular") return PadMode::circular;
  if (name == "replicate" || name == "edge") return PadMode::edge;
  throw Failed("unknown mode " + name);
}

namespace {

using Candidates = std::vector<std::function<Tensor()>>;

const Shape& wanted(const Given& in) { return in.outputs.at("y").shape(); }

/// "permute_0231", "permute_0_2_3_1", "transpose_12": dimensions in the function's name without a letter.
std::optional<std::vector<int>> dims_of(const Given& in) {
  if (auto dims = in.dims()) return dims;
  const auto numbers = in.integers("numbers");
  if (!numbers) return std::nullopt;
  std::vector<int> result(numbers->begin(), numbers->end());
  if (const auto digits = std::to_string(result[0]); result.size() == 1 && result[0] > 0) {
    // A leading 0 is lost in the number.
    result.clear();
    for (const char digit : digits) result.push_back(digit - '0');
    if (result.size() + 1 == static_cast<std::size_t>(in.inputs().begin()->second.rank())) result.insert(result.begin(), 0);
  }
  return result;
}

Tensor permute_case(const Given& in) {
  const auto x = in[input];
  if (const auto dims = dims_of(in)) return permute(x, *dims);
  Candidates candidates;
  std::vector<int> order(static_cast<std::size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  do candidates.emplace_back([x, order] { return permute(x, order); });
  while (std::next_permutation(order.begin(), order.end()));
  return chosen(in, candidates);
}

Tensor transpose_case(const Given& in) {
  const auto x = in[input];
  if (in.find({"dim0", "axis0"}) != nullptr)
    return transpose(x, static_cast<int>(in.integer({"dim0", "axis0"}, 0)), static_cast<int>(in.integer({"dim1", "axis1"}, 1)));
  auto dims = dims_of(in);
  if (dims && dims->size() == 2) return transpose(x, (*dims)[0], (*dims)[1]);
  if (dims) throw Failed("transpose takes two dimensions");
  Candidates candidates;
  for (int a = 0; a < x.rank(); ++a)
    for (int b = a + 1; b < x.rank(); ++b) candidates.emplace_back([=] { return transpose(x, a, b); });
  return chosen(in, candidates);
}

Tensor flip_case(const Given& in) {
  const auto x = in[input];
  if (const auto dims = in.dims()) return flip(x, Dims(*dims));
  Candidates candidates;
  for (unsigned subset = 1; subset < 1U << static_cast<unsigned>(x.rank()); ++subset)
    candidates.emplace_back([=] {
      std::vector<int> dims;
      for (int d = 0; d < x.rank(); ++d)
        if ((subset >> static_cast<unsigned>(d) & 1U) != 0) dims.push_back(d);
      return flip(x, Dims(dims));
    });
  return chosen(in, candidates);
}

Tensor roll_case(const Given& in) {
  const auto x = in[input];
  auto shifts = in.integers({"shifts", "shift", "numbers"});
  const auto dims = in.dims();
  if (shifts && dims) return roll(x, *shifts, Dims(*dims));
  // Without dimensions PyTorch's rolls the elements as one line.
  const auto line = [=](std::int64_t by) { return reshape(roll(reshape(x, {x.numel()}), {by}, Dims(0)), x.shape()); };
  if (shifts && shifts->size() == 1) return line((*shifts)[0]);
  Candidates candidates;
  for (int a = 0; a < x.rank(); ++a)
    for (std::int64_t i = 1; i < x.size(a); ++i) {
      candidates.emplace_back([=] { return roll(x, {i}, Dims(a)); });
      for (int b = a + 1; b < x.rank(); ++b)
        for (std::int64_t j = 1; j < x.size(b); ++j)
          candidates.emplace_back([=] { return roll(x, {i, j}, Dims(std::vector<int>{a, b})); });
    }
  for (std::int64_t i = 1; i < std::min<std::int64_t>(x.numel(), 100); ++i) candidates.emplace_back([=] { return line(i); });
  return chosen(in, candidates);
}

Tensor tile_case(const Given& in) {
  const auto x = in[input];
  if (const auto repeats = in.integers({"repeats", "sizes", "reps", "dims", "numbers"})) return tile(x, *repeats);
  const auto& to = wanted(in);
  std::vector<std::int64_t> repeats;
  for (int d = 0; d < to.rank(); ++d) {
    const int own = d - (to.rank() - x.rank());
    repeats.push_back(own < 0 ? to[d] : to[d] / std::max<std::int64_t>(x.size(own), 1));
  }
  return tile(x, repeats);
}

Tensor repeat_interleave_case(const Given& in) {
  const auto x = in[input];
  const auto repeats = static_cast<std::int64_t>(in.parameter(0, {"repeats", "repeat"}, 0));
  if (repeats != 0) {
    if (const auto dims = in.dims()) return repeat_interleave(x, repeats, dims->at(0));
    return repeat_interleave(reshape(x, {x.numel()}), repeats, 0);
  }
  for (int d = 0; d < x.rank(); ++d)
    if (wanted(in).rank() == x.rank() && wanted(in)[d] != x.size(d)) return repeat_interleave(x, wanted(in)[d] / x.size(d), d);
  return repeat_interleave(reshape(x, {x.numel()}), wanted(in).numel() / x.numel(), 0);
}

using Join = Tensor (*)(const std::vector<Tensor>&, int);

/// x and twice x, along the dimension that the wanted result shows where there is no attribute.
Operation join_self(Join function, bool new_dimension) {
  return [=](const Given& in) {
    const std::vector<Tensor> both{in[input], in[input] * 2.0};
    if (const auto dims = in.dims()) return y(function(both, dims->at(0)));
    Candidates candidates;
    for (int d = 0; d < both[0].rank() + (new_dimension ? 1 : 0); ++d) candidates.emplace_back([=] { return function(both, d); });
    return y(chosen(in, candidates));
  };
}

Operation join(Join function, bool new_dimension) {
  return [=](const Given& in) {
    const auto all = in.operands();
    return all.empty() ? join_self(function, new_dimension)(in) : y(function(all, in.dim(0)));
  };
}

Results parts_case(const Given& in, const std::function<std::vector<std::int64_t>(std::int64_t extent)>& lengths) {
  const auto x = in[input];
  const int dim = in.dim(0);
  return pieces(in, split(x, lengths(x.size(dim)), dim));
}

std::vector<std::int64_t> equal_parts(std::int64_t extent, std::int64_t length) {
  if (length < 1) throw Failed("a part has no length");
  std::vector<std::int64_t> result;
  for (std::int64_t from = 0; from < extent; from += length) result.push_back(std::min(length, extent - from));
  return result;
}

Results split_case(const Given& in) {
  const auto lengths = in.integers({"split_size_or_sections", "sections", "lengths", "split_size", "sizes", "numbers"});
  if (!lengths) throw Failed("there are no lengths to split at");
  return parts_case(in,
                    [&](std::int64_t extent) { return lengths->size() == 1 ? equal_parts(extent, (*lengths)[0]) : *lengths; });
}

Results chunk_case(const Given& in) {
  const auto chunks = in.integer({"chunks", "count", "numbers"}, static_cast<std::int64_t>(in.outputs.size()));
  return parts_case(in, [&](std::int64_t extent) { return equal_parts(extent, (extent + chunks - 1) / chunks); });
}

Results unbind_case(const Given& in) {
  auto results = parts_case(in, [](std::int64_t extent) { return equal_parts(extent, 1); });
  const int dim = in.dim(0);
  for (auto& [name, part] : results.outputs) part = squeeze(part, dim);
  return results;
}

Tensor slice_case(const Given& in) {
  const auto x = in[input];
  if (const auto dims = in.dims())
    return slice(x, dims->at(0), in.integer("start", 0), in.integer({"stop", "end"}, std::numeric_limits<std::int64_t>::max()),
                 in.integer("step", 1));
  return slice(slice(slice(x, 1, 1, 4), 2, 0, 4, 2), 3, 1, 3);
}

/// Of a function, or of a layer for so many axes.
Tensor pad_case(const Given& in, const std::string& otherwise, std::size_t axes = 0) {
  const auto form = pad_mode(in.text("mode", otherwise));
  const auto x = in[input];
  if (auto ends = in.integers({"pad", "padding"})) {
    // A layer's may be one number for all sides.
    if (axes > 0 && ends->size() == 1) ends->resize(2 * axes, (*ends)[0]);
    // PyTorch's list begins with the last dimension.
    std::vector<std::int64_t> before(static_cast<std::size_t>(x.rank())), after(before.size());
    if (ends->size() % 2 != 0 || ends->size() > 2 * before.size()) throw Failed("pad does not fit the shape");
    for (std::size_t i = 0; i < ends->size() / 2; ++i) {
      before[before.size() - 1 - i] = (*ends)[2 * i];
      after[after.size() - 1 - i] = (*ends)[2 * i + 1];
    }
    return pad(x, before, after, in.number("value", 0), form);
  }
  if (form == PadMode::constant) return pad(x, {0, 0, 0, 1}, {0, 0, 3, 2}, in.number("value", 0.5));
  return pad(x, {0, 0, 2, 1}, {0, 0, 1, 2}, 0, form);
}

std::int64_t factor(const Given& in) {
  return static_cast<std::int64_t>(in.parameter(0, {"factor", "upscale_factor", "downscale_factor"}, 2));
}

std::int64_t offset(const Given& in) { return static_cast<std::int64_t>(in.parameter(0, {"diagonal", "offset", "k"}, 0)); }

/// One number for both axes, or one for each.
Pair pair(const Given& in, const Names& names, std::int64_t otherwise) {
  const auto both = in.axes(names, 2, otherwise);
  return {both[0], both[1]};
}

Pair kernel_size(const Given& in) { return pair(in, {"kernel_size", "kernel"}, 1); }

UnfoldOptions windows(const Given& in) {
  return {.dilation = pair(in, "dilation", 1), .padding = pair(in, "padding", 0), .stride = pair(in, "stride", 1)};
}

/// PyTorch's function of images, or its method: slices of `size` elements along a dimension, `step` apart, as a last dimension.
Tensor unfold_case(const Given& in) {
  if (in.find({"kernel_size", "kernel"}) != nullptr) return unfold(in[input], kernel_size(in), windows(in));
  const auto x = in[input];
  const int dim = static_cast<int>(in.integer({"dimension", "dim"}, 0));
  const auto size = in.integer("size", 1), step = in.integer("step", 1);
  std::vector<Tensor> parts;
  for (std::int64_t from = 0; from + size <= x.size(dim); from += step) {
    std::vector<int> order;
    for (int d = 0; d < x.rank(); ++d)
      if (d != x.shape().normalize(dim)) order.push_back(d);
    order.push_back(x.shape().normalize(dim));
    parts.push_back(permute(slice(x, dim, from, from + size), order));
  }
  return stack(parts, x.shape().normalize(dim));
}

void add_joined(Operations& operations) {
  operations["cat"] = operations["concat"] = join(concat, false);
  operations["stack"] = join(stack, true);
  operations["cat_self"] = join_self(concat, false);
  operations["stack_self"] = join_self(stack, true);
  operations["split"] = split_case;
  operations["chunk"] = chunk_case;
  operations["unbind"] = unbind_case;
  operations["slice"] = [](const Given& in) { return y(slice_case(in)); };
  operations["narrow"] = [](const Given& in) {
    const auto start = in.integer("start", 0);
    return y(narrow(in[input], in.dim(0), start < 0 ? start + in[input].size(in.dim(0)) : start, in.integer("length", 1)));
  };
  operations["select"] = [](const Given& in) {
    const int dim = in.dim(0);
    auto at = in.integer("index", 0);
    if (at < 0) at += in[input].size(dim);
    return y(squeeze(slice(in[input], dim, at, at + 1), dim));
  };
  operations["slice_scatter"] = operations["slice_update"] = [](const Given& in) {
    if (in.integer("step", 1) != 1) throw Failed("only steps of 1 are there");
    in.restated({"end", "stop"});
    return y(slice_update(in[input], in.dim(0), in.integer("start", 0), in[{"src", "source", "value", "b"}]));
  };
}

}  // namespace

void add_shapes(Operations& operations) {
  for (const char* name : {"reshape", "view"})
    operations[name] = [](const Given& in) {
      const auto given = in.integers({"shape", "size"});
      return y(given ? reshape(in[input], *given) : reshape(in[input], wanted(in)));
    };
  // These say by the expected shape what they do.
  for (const char* name : {"flatten", "squeeze", "unsqueeze", "unflatten"})
    operations[name] = [](const Given& in) {
      in.restated({"dim", "start_dim", "end_dim", "sizes", "numbers"});
      return y(reshape(in[input], wanted(in)));
    };
  for (const char* name : {"expand", "broadcast_to"})
    operations[name] = [](const Given& in) {
      in.restated({"shape", "size", "sizes"});
      return y(expand(in[input], wanted(in)));
    };
  operations["permute"] = [](const Given& in) { return y(permute_case(in)); };
  for (const char* name : {"transpose", "swapaxes", "swapdims", "t"})
    operations[name] = [](const Given& in) { return y(transpose_case(in)); };
  operations["flip"] = [](const Given& in) { return y(flip_case(in)); };
  operations["roll"] = [](const Given& in) { return y(roll_case(in)); };
  operations["tile"] = operations["repeat"] = [](const Given& in) { return y(tile_case(in)); };
  operations["repeat_interleave"] = [](const Given& in) { return y(repeat_interleave_case(in)); };
  operations["pad"] = operations["pad_const"] =
      operations["pad_constant"] = [](const Given& in) { return y(pad_case(in, "constant")); };
  for (const char* mode : {"reflect", "replicate", "circular"})
    operations[std::string("pad_") + mode] = [mode](const Given& in) { return y(pad_case(in, mode)); };
  for (const auto& [layer, mode] : {std::pair{"constant", "constant"},
                                    {"zero", "constant"},
                                    {"reflection", "reflect"},
                                    {"replication", "replicate"},
                                    {"circular", "circular"}})
    for (std::size_t axes = 1; axes <= 3; ++axes)
      operations[fmt::format("{}_pad{}d", layer, axes)] = [mode = mode, axes](const Given& in) {
        return y(pad_case(in, mode, axes));
      };
  operations["pixel_shuffle"] = [](const Given& in) { return y(pixel_shuffle(in[input], factor(in))); };
  operations["pixel_unshuffle"] = [](const Given& in) { return y(pixel_unshuffle(in[input], factor(in))); };
  operations["tril"] = [](const Given& in) { return y(tril(in[input], offset(in))); };
  operations["triu"] = [](const Given& in) { return y(triu(in[input], offset(in))); };
  operations["diag"] = [](const Given& in) { return y(diag(in[input], offset(in))); };
  operations["diagonal"] = [](const Given& in) {
    return y(diagonal(in[input], offset(in), static_cast<int>(in.integer("dim1", 0)), static_cast<int>(in.integer("dim2", 1))));
  };
  operations["unfold"] = operations["im2col"] = [](const Given& in) { return y(unfold_case(in)); };
  operations["fold"] = operations["col2im"] = [](const Given& in) {
    return y(fold(in[{"x", "input", "columns"}], pair(in, {"output_size", "size"}, 1), kernel_size(in), windows(in)));
  };
  add_joined(operations);
}

}  // namespace clnet::torch
