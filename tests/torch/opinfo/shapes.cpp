// Operations that rearrange the elements of one tensor.
#include <algorithm>
#include <numeric>

#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

namespace {

Tensor reshaped(const Args& in) { return reshape(in.tensor(0), in.sizes(1, "shape")); }

/// -1 keeps an extent.
Tensor expanded(const Args& in) {
  const auto x = in.tensor(0);
  auto sizes = in.sizes(1);
  const auto added = sizes.size() - std::min(sizes.size(), static_cast<std::size_t>(x.rank()));
  for (std::size_t i = added; i < sizes.size(); ++i)
    if (sizes[i] == -1) sizes[i] = x.size(static_cast<int>(i - added));
  return expand(x, Shape(sizes));
}

Tensor squeezed(const Args& in) {
  auto x = in.tensor(0);
  std::vector<int> dims;
  if (in.find(1, "dim") == nullptr) {
    dims.resize(static_cast<std::size_t>(x.rank()));
    std::iota(dims.begin(), dims.end(), 0);
  } else {
    for (const auto dim : in.integers(1, "dim"))
      if (x.rank() > 0) dims.push_back(positive_dim(x, static_cast<int>(dim)));
  }
  std::sort(dims.begin(), dims.end(), std::greater<>());
  for (const int dim : dims)
    if (x.size(dim) == 1) x = squeeze(x, dim);
  return x;
}

Tensor unflattened(const Args& in) {
  const auto x = in.tensor(0);
  const int dim = positive_dim(x, in.dim(1));
  auto extents = x.shape().extents();
  const auto sizes = in.integers(2, "sizes");
  const auto at = extents.erase(extents.begin() + dim);
  extents.insert(at, sizes.begin(), sizes.end());
  return reshape(x, extents);
}

/// All dimensions in the opposite order.
Tensor reversed(const Tensor& x) {
  std::vector<int> dims(static_cast<std::size_t>(x.rank()));
  std::iota(dims.rbegin(), dims.rend(), 0);
  return permute(x, dims);
}

Tensor moved(const Args& in) {
  const auto x = in.tensor(0);
  const auto from = in.integers(1, "source"), to = in.integers(2, "destination");
  std::vector<int> dims(static_cast<std::size_t>(x.rank()), -1);
  std::vector<bool> taken(dims.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const int source = positive_dim(x, static_cast<int>(from[i]));
    dims[static_cast<std::size_t>(positive_dim(x, static_cast<int>(to.at(i))))] = source;
    taken[static_cast<std::size_t>(source)] = true;
  }
  std::size_t next = 0;
  for (auto& dim : dims) {
    if (dim >= 0) continue;
    while (taken[next]) ++next;
    dim = static_cast<int>(next++);
  }
  return permute(x, dims);
}

Tensor rolled(const Args& in) {
  const auto x = in.tensor(0);
  const auto shifts = in.integers(1, "shifts");
  const auto dims = in.dims(2, "dims");
  return dims.empty() ? reshape(roll(as_line(x), shifts, 0), x.shape()) : roll(x, shifts, dims);
}

Tensor rotated(const Args& in) {
  const auto x = in.tensor(0);
  const auto turns = ((in.integer(1, "k", 1) % 4) + 4) % 4;
  auto dims = in.dims(2, "dims");
  if (dims.empty()) dims = {0, 1};
  if (turns == 0) return x;
  if (turns == 2) return flip(x, dims);
  return turns == 1 ? transpose(flip(x, dims[1]), dims[0], dims[1]) : flip(transpose(x, dims[0], dims[1]), dims[1]);
}

Tensor repeated_elements(const Args& in) {
  if (in.is_tensor(1, "repeats")) throw LeftOut("a number of repetitions for each element");
  in.without_effect({"output_size"});
  const auto x = in.tensor(0);
  if (in.find(2, "dim") == nullptr) return repeat_interleave(as_line(x), in.integer(1, "repeats"), 0);
  return repeat_interleave(x, in.integer(1, "repeats"), in.dim(2));
}

Tensor narrowed(const Args& in) {
  const auto x = in.tensor(0);
  const int dim = in.dim(1);
  const auto length = in.integer(3, "length");
  if (in.is_tensor(2, "start")) return narrow(x, dim, in.tensor(2, "start"), length);
  const auto start = in.integer(2, "start");
  return narrow(x, dim, start < 0 ? start + x.size(dim) : start, length);
}

std::int64_t element(const Tensor& x, int dim, std::int64_t index) { return index < 0 ? index + x.size(dim) : index; }

Tensor selected(const Args& in) {
  const auto x = in.tensor(0);
  const int dim = in.dim(1);
  return squeeze(narrow(x, dim, element(x, dim, in.integer(2, "index")), 1), dim);
}

Tensor sliced(const Args& in) {
  const auto x = in.tensor(0);
  const int dim = in.dim(1, "dim", 0);
  const auto start = in.integer(2, "start", 0), end = in.integer(3, "end", std::numeric_limits<std::int64_t>::max());
  return slice(x, dim, start, end, in.integer(4, "step", 1));
}

Tensor with_selected(const Args& in) {
  const auto x = in.tensor(0);
  const int dim = positive_dim(x, in.dim(2));
  return slice_update(x, dim, element(x, dim, in.integer(3, "index")), unsqueeze(in.tensor(1, "src"), dim));
}

Tensor with_slice(const Args& in) {
  const auto x = in.tensor(0);
  const int dim = in.dim(2, "dim", 0);
  const auto start = in.integer(3, "start", 0);
  static_cast<void>(in.find(4, "end"));
  if (in.integer(5, "step", 1) != 1) throw LeftOut("slice_update() with a step");
  const auto source = in.tensor(1, "src");
  return source.size(dim) == 0 ? x : slice_update(x, dim, element(x, dim, start), source);
}

Tensor diagonal_of(const Args& in, int dim1, int dim2) {
  return diagonal(in.tensor(0), in.integer(1, "offset", 0), in.dim(2, "dim1", dim1), in.dim(3, "dim2", dim2));
}

Tensor padded(const Args& in, const std::string& given, int value_at) {
  const auto x = in.tensor(0);
  const auto pairs = in.integers(1, "pad");
  std::vector<std::int64_t> before(static_cast<std::size_t>(x.rank())), after = before;
  if (pairs.size() > 2 * before.size() || pairs.size() % 2 != 0) throw Failed("no padding of these dimensions");
  for (std::size_t i = 0; i < pairs.size() / 2; ++i) {
    before[before.size() - 1 - i] = pairs[2 * i];
    after[after.size() - 1 - i] = pairs[2 * i + 1];
  }
  static const std::map<std::string, PadMode> modes{{"constant", PadMode::constant},
                                                    {"reflect", PadMode::reflect},
                                                    {"replicate", PadMode::edge},
                                                    {"circular", PadMode::circular}};
  const auto mode = modes.find(given);
  if (mode == modes.end()) throw Failed("unknown mode " + given);
  return pad(x, before, after, in.number(value_at, "value", 0), mode->second);
}

/// Windows along a dimension, their elements as the last one.
Tensor windows_along(const Args& in) {
  auto x = in.tensor(0);
  if (x.rank() == 0) x = reshape(x, {1});
  const int dim = positive_dim(x, in.dim(1, "dimension"));
  const auto size = in.integer(2, "size"), step = in.integer(3, "step");
  const auto count = (x.size(dim) - size) / step + 1;
  if (size == 0) return zeros(Shape(x.shape().with(dim, count).extents()), x.dtype());
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < size; ++i) parts.push_back(slice(x, dim, i, i + (count - 1) * step + 1, step));
  const auto result = stack(parts, x.rank());
  return in.tensor(0).rank() == 0 ? reshape(result, {size}) : result;
}

Tensor shuffled(const Args& in) {
  const auto x = in.tensor(0);
  const auto groups = in.integer(1, "groups");
  return reshape(transpose(reshape(x, {x.size(0), groups, x.size(1) / groups, -1}), 1, 2), x.shape());
}

Pair to_pair(const std::vector<std::int64_t>& two) { return {two[0], two[1]}; }

Tensor columns_of(const Args& in) {
  return unfold(in.tensor(0), to_pair(in.axes(1, "kernel_size", 2, 1)),
                {.dilation = to_pair(in.axes(2, "dilation", 2, 1)),
                 .padding = to_pair(in.axes(3, "padding", 2, 0)),
                 .stride = to_pair(in.axes(4, "stride", 2, 1))});
}

}  // namespace

int positive_dim(const Tensor& x, int dim) { return x.shape().normalize(dim); }

std::vector<int> to_ints(const std::vector<std::int64_t>& values) { return {values.begin(), values.end()}; }

void add_shapes(Adapters& adapters) {
  for (const char* name : {"reshape", "view", "view_copy"}) adapters[name] = one(reshaped);
  for (const char* name : {"reshape_as", "view_as"})
    adapters[name] = one([](const Args& in) { return reshape(in.tensor(0), in.tensor(1, "other").shape()); });
  for (const char* name : {"expand", "expand_copy", "broadcast_to"}) adapters[name] = one(expanded);
  adapters["expand_as"] = one([](const Args& in) { return expand(in.tensor(0), in.tensor(1, "other").shape()); });
  adapters["flatten"] =
      one([](const Args& in) { return flatten(in.tensor(0), in.dim(1, "start_dim", 0), in.dim(2, "end_dim", -1)); });
  adapters["ravel"] = one([](const Args& in) { return flatten(in.tensor(0), 0); });
  adapters["unflatten"] = one(unflattened);
  for (const char* name : {"squeeze", "squeeze_copy"}) adapters[name] = one(squeezed);
  for (const char* name : {"unsqueeze", "unsqueeze_copy"})
    adapters[name] = one([](const Args& in) { return unsqueeze(in.tensor(0), in.dim(1)); });
  for (const char* name : {"transpose", "transpose_copy"})
    adapters[name] = one([](const Args& in) { return transpose(in.tensor(0), in.dim(1, "dim0"), in.dim(2, "dim1")); });
  for (const char* name : {"permute", "permute_copy"})
    adapters[name] = one([](const Args& in) { return permute(in.tensor(0), to_ints(in.sizes(1, "dims"))); });
  for (const char* name : {"t", "t_copy", "T"}) adapters[name] = one([](const Args& in) { return reversed(in.tensor(0)); });
  adapters["mT"] = one([](const Args& in) { return transpose(in.tensor(0), -2, -1); });
  adapters["movedim"] = one(moved);
  adapters["flip"] = one([](const Args& in) {
    const auto dims = in.dims(1, "dims");
    return dims.empty() ? in.tensor(0) : flip(in.tensor(0), dims);
  });
  adapters["flipud"] = one([](const Args& in) { return flip(in.tensor(0), 0); });
  adapters["fliplr"] = one([](const Args& in) { return flip(in.tensor(0), 1); });
  adapters["roll"] = one(rolled);
  adapters["rot90"] = one(rotated);
  adapters["tile"] = one([](const Args& in) { return tile(in.tensor(0), in.sizes(1, "dims")); });
  adapters["repeat"] = one([](const Args& in) { return repeat(in.tensor(0), in.sizes(1, "repeats")); });
  adapters["repeat_interleave"] = one(repeated_elements);
  for (const char* name : {"narrow", "narrow_copy"}) adapters[name] = one(narrowed);
  adapters["select"] = one(selected);
  adapters["select_scatter"] = one(with_selected);
  adapters["slice"] = one(sliced);
  adapters["slice_scatter"] = one(with_slice);
  for (const char* name : {"diagonal", "diagonal_copy"})
    adapters[name] = one([](const Args& in) { return diagonal_of(in, 0, 1); });
  adapters["linalg.diagonal"] = one([](const Args& in) { return diagonal_of(in, -2, -1); });
  adapters["diag"] = one([](const Args& in) { return diag(in.tensor(0), in.integer(1, "diagonal", 0)); });
  adapters["diagflat"] = one([](const Args& in) { return diag(as_line(in.tensor(0)), in.integer(1, "offset", 0)); });
  adapters["tril"] = one([](const Args& in) { return tril(in.tensor(0), in.integer(1, "diagonal", 0)); });
  adapters["triu"] = one([](const Args& in) { return triu(in.tensor(0), in.integer(1, "diagonal", 0)); });
  adapters["nn.functional.pad"] = one([](const Args& in) { return padded(in, in.text(2, "mode", "constant"), 3); });
  adapters["constant_pad_nd"] = one([](const Args& in) { return padded(in, "constant", 2); });
  adapters["unfold"] = adapters["unfold_copy"] = one(windows_along);
  adapters["nn.functional.unfold"] = one(columns_of);
  adapters["nn.functional.channel_shuffle"] = one(shuffled);
  adapters["nn.functional.pixel_shuffle"] =
      one([](const Args& in) { return pixel_shuffle(in.tensor(0), in.integer(1, "upscale_factor")); });
  adapters["nn.functional.pixel_unshuffle"] =
      one([](const Args& in) { return pixel_unshuffle(in.tensor(0), in.integer(1, "downscale_factor")); });
}

}  // namespace clnet::torch::opinfo
