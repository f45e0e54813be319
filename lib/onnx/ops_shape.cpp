// Operators that make, cut, join and reorder tensors.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "clnet/ops/index.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/runner.h"

namespace clnet::onnx {
namespace {

using Role::data;
using Role::structure;

Shape shape_of(const std::vector<std::int64_t>& extents) { return Shape(extents); }

/// Also of an optional value that is nothing.
Outputs identity(const Call& call) { return {call.maybe(0)}; }

Outputs shape(const Call& call) {
  const auto& extents = call.shape(0).extents();
  const auto rank = static_cast<std::int64_t>(extents.size());
  const auto bound = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const auto first = bound(call.attribute("start", std::int64_t{0})), last = bound(call.attribute("end", rank));
  std::vector<std::int64_t> part;
  if (first < last) part.assign(extents.begin() + first, extents.begin() + last);
  const Shape shape{static_cast<std::int64_t>(part.size())};
  return {RunValue(HostTensor::of(ElementType::i64, shape, part))};
}

Outputs size(const Call& call) {
  return {RunValue(HostTensor::of(ElementType::i64, {}, std::vector<std::int64_t>{call.shape(0).numel()}))};
}

Outputs reshape(const Call& call) {
  auto wanted = call.integers(1, "shape");
  const auto& from = call.shape(0);
  const bool keeps_zeros = call.attribute("allowzero", std::int64_t{0}) != 0;
  for (std::size_t d = 0; d < wanted.size(); ++d)
    if (wanted[d] == 0 && !keeps_zeros) {
      if (static_cast<int>(d) >= from.rank())
        call.fail(fmt::format("extent {} of the shape is 0, and {} has none", d, to_string(from)));
      wanted[d] = from[static_cast<int>(d)];
    }
  return {call.give(clnet::reshape(call.x(0), wanted))};
}

Outputs flatten(const Call& call) {
  const auto& extents = call.shape(0).extents();
  const auto rank = static_cast<std::int64_t>(extents.size());
  auto axis = call.attribute("axis", std::int64_t{1});
  if (axis < -rank || axis > rank) call.fail(fmt::format("axis {} is out of range for {} dimensions", axis, rank));
  if (axis < 0) axis += rank;
  const auto product = [&](std::int64_t first, std::int64_t last) {
    return std::accumulate(extents.begin() + first, extents.begin() + last, std::int64_t{1}, std::multiplies<>());
  };
  return {call.give(clnet::reshape(call.x(0), Shape{product(0, axis), product(axis, rank)}))};
}

Outputs transpose(const Call& call) {
  auto dims = call.integers("perm");
  const auto rank = call.shape(0).rank();
  if (dims.empty())
    for (int d = rank; d-- > 0;) dims.push_back(d);
  std::vector<int> order;
  for (const auto dim : dims) order.push_back(Call::axis(dim, rank));
  return {call.give(permute(call.x(0), order))};
}

Outputs squeeze(const Call& call) {
  const auto& from = call.shape(0);
  const auto axes = call.integers(1, "axes");
  std::vector<bool> dropped(static_cast<std::size_t>(from.rank()));
  for (int d = 0; axes.empty() && d < from.rank(); ++d) dropped[static_cast<std::size_t>(d)] = from[d] == 1;
  for (const auto axis : axes) {
    const auto d = Call::axis(axis, from.rank());
    if (from[d] != 1) call.fail(fmt::format("dimension {} of {} is not 1", d, to_string(from)));
    dropped[static_cast<std::size_t>(d)] = true;
  }
  std::vector<std::int64_t> to;
  for (int d = 0; d < from.rank(); ++d)
    if (!dropped[static_cast<std::size_t>(d)]) to.push_back(from[d]);
  return {call.give(clnet::reshape(call.x(0), Shape(to)))};
}

Outputs unsqueeze(const Call& call) {
  const auto& from = call.shape(0);
  const auto axes = call.integers(1, "axes");
  const auto rank = from.rank() + static_cast<int>(axes.size());
  std::vector<bool> added(static_cast<std::size_t>(rank));
  for (const auto axis : axes) {
    const auto d = static_cast<std::size_t>(Call::axis(axis, rank));
    if (added[d]) call.fail(fmt::format("axis {} is given twice", axis));
    added[d] = true;
  }
  std::vector<std::int64_t> to;
  for (int d = 0, next = 0; d < rank; ++d) to.push_back(added[static_cast<std::size_t>(d)] ? 1 : from[next++]);
  return {call.give(clnet::reshape(call.x(0), Shape(to)))};
}

Outputs concat(const Call& call) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < call.count(); ++i) parts.push_back(call.x(i));
  if (parts.empty()) call.fail("has no inputs");
  const auto* axis = call.attribute("axis");
  return {call.give(clnet::concat(parts, Call::axis(axis ? axis->integer : 1, parts[0].rank())))};
}

constexpr std::int64_t most_parts = 1'000'000;

Outputs split(const Call& call) {
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{0}), call.shape(0).rank());
  const auto extent = call.shape(0)[axis];
  auto lengths = call.integers(1, "split");
  if (lengths.empty()) {
    const auto count = call.attribute("num_outputs", static_cast<std::int64_t>(call.outputs()));
    if (count < 1 || count > most_parts) call.fail(fmt::format("{} outputs of an extent of {}", count, extent));
    const auto length = (extent + count - 1) / count;
    for (std::int64_t i = 0, at = 0; i < count; ++i, at += length)
      lengths.push_back(std::clamp<std::int64_t>(extent - at, 0, length));
  }
  Outputs out;
  for (auto& part : clnet::split(call.x(0), lengths, axis)) out.push_back(call.give(std::move(part)));
  return out;
}

Outputs slice_of(const Call& call) {
  const auto starts = call.integers(1, "starts"), stops = call.integers(2, "ends");
  auto axes = call.integers(3, "axes");
  auto steps = call.has(4) ? call.integers(4) : std::vector<std::int64_t>(starts.size(), 1);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (stops.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    call.fail(fmt::format("{} starts, {} ends, {} axes and {} steps", starts.size(), stops.size(), axes.size(), steps.size()));
  Tensor y = call.x(0);
  for (std::size_t i = 0; i < starts.size(); ++i) y = slice(y, Call::axis(axes[i], y.rank()), starts[i], stops[i], steps[i]);
  return {call.give(y)};
}

Outputs expand_to(const Call& call) {
  const auto to = broadcast(call.shape(0), shape_of(call.integers(1)), "Expand");
  return {call.give(expand(call.x(0), to))};
}

Outputs tile_of(const Call& call) {
  const auto repeats = call.integers(1);
  if (static_cast<int>(repeats.size()) != call.shape(0).rank())
    call.fail(fmt::format("{} repeats of {} dimensions", repeats.size(), call.shape(0).rank()));
  return {call.give(repeat(call.x(0), repeats))};
}

Outputs constant(const Call& call) {
  auto& constants = call.runner().constants();
  const auto of = [](ElementType type, const Shape& shape, const auto& elements) -> Outputs {
    return {RunValue(HostTensor::of(type, shape, elements))};
  };
  using Type = Attribute::Type;
  for (const auto name : {"value", "sparse_value", "value_float", "value_floats", "value_int", "value_ints"}) {
    const auto* found = call.attribute(name);
    if (!found) continue;
    switch (found->type) {
      case Type::tensor:
        if (!found->tensors.empty()) {
          auto value = call.runner().held(found->tensors[0]);
          return {value.is_there() ? value : constants.of(found->tensors[0])};
        }
        break;
      case Type::sparse_tensor:
        if (!found->sparse.empty()) return {constants.of(found->sparse[0])};
        break;
      case Type::real: return of(ElementType::f32, {}, std::vector<double>{static_cast<double>(found->real)});
      case Type::reals: return of(ElementType::f32, {static_cast<std::int64_t>(found->reals.size())}, call.numbers(name));
      case Type::integer: return of(ElementType::i64, {}, std::vector<std::int64_t>{found->integer});
      case Type::integers: return of(ElementType::i64, {static_cast<std::int64_t>(found->integers.size())}, found->integers);
      default: break;
    }
  }
  call.refuse("a constant of texts, or of no value");
}

Outputs constant_of_shape(const Call& call) {
  const auto shape = shape_of(call.integers(0));
  const auto* value = call.attribute("value");
  if (!value || value->tensors.empty()) return {RunValue(zeros(shape), ElementType::f32)};
  const auto host = call.runner().constants().of(value->tensors[0]);
  if (host.shape().numel() != 1) call.fail("the value has several elements");
  constexpr std::int64_t most_on_host = 4096;
  if (host.host() && shape.numel() <= most_on_host) {
    HostTensor out{host.type(), shape, {}};
    for (std::int64_t i = 0; i < shape.numel(); ++i)
      out.bytes.insert(out.bytes.end(), host.host()->bytes.begin(), host.host()->bytes.end());
    return {RunValue(std::move(out))};
  }
  return {RunValue(expand(clnet::reshape(host.tensor(), Shape{}), shape), host.type())};
}

/// The numbers of a range are computed in double, as its inputs may be.
Outputs range(const Call& call) {
  const auto type = call.type(0);
  if (is_floating(type)) {
    const double start = call.number(0), limit = call.number(1), step = call.number(2);
    if (step == 0) call.fail("the step is 0");
    const double steps = std::ceil((limit - start) / step);
    if (!(steps <= INT32_MAX)) call.fail(fmt::format("{} elements", steps));
    const auto count = steps > 0 ? static_cast<std::int64_t>(steps) : 0;
    return {call.give(arange(count, start, step, dtype_of(type)))};
  }
  const auto start = call.integer(0), limit = call.integer(1), step = call.integer(2);
  if (step == 0) call.fail("the step is 0");
  // Without a sign, as the distance may have 64 bits.
  const auto bits = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const auto distance =
      (step > 0 ? limit > start : limit < start) ? (step > 0 ? bits(limit) - bits(start) : bits(start) - bits(limit)) : 0;
  const auto by = step > 0 ? bits(step) : std::uint64_t{0} - bits(step);
  const auto steps = distance / by + (distance % by != 0 ? 1 : 0);
  if (steps > INT32_MAX) call.fail(fmt::format("{} elements", steps));
  const auto count = static_cast<std::int64_t>(steps);
  if (count <= 4096) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) all[static_cast<std::size_t>(i)] = start + i * step;
    return {RunValue(HostTensor::of(type, {count}, all))};
  }
  return {call.give(arange(count, static_cast<double>(start), static_cast<double>(step), dtype_of(type)))};
}

Outputs cast_to(const Call& call, ElementType type) {
  type = call.runner().stored(type);
  const auto from = call.type(0);
  if (from == type) return {call.in(0)};
  // Integers of 64 bits without a sign are stored as those with one: the upper half is below 0.
  constexpr double all = 18446744073709551616.0;
  const Tensor& x = call.x(0);
  if (from == ElementType::u64 && is_floating(type)) {
    const Tensor wide = cast(x, type == ElementType::f64 ? Dtype::f64 : Dtype::f32);
    return {call.give_as(where(less(x, 0.0), wide + all, wide), type)};
  }
  if (type == ElementType::u64 && is_floating(from)) {
    const Tensor wide = from == ElementType::f64 ? x : cast(x, Dtype::f32);
    return {call.give_as(where(greater_equal(wide, all / 2), wide - all, wide), type)};
  }
  return {call.give_as(x, type)};
}
Outputs cast_as(const Call& call) { return cast_to(call, call.element_type("to", ElementType::undefined)); }
Outputs cast_like(const Call& call) { return cast_to(call, call.type(1)); }

Outputs eye_like(const Call& call) {
  const auto& shape = call.shape(0);
  if (shape.rank() != 2) call.fail(fmt::format("the input {} is no matrix", to_string(shape)));
  const auto type = call.runner().stored(call.element_type("dtype", call.type(0)));
  const auto k = call.attribute("k", std::int64_t{0});
  const Tensor rows = unsqueeze(arange(shape[0], static_cast<double>(k)), 1), columns = arange(shape[1]);
  return {call.give_as(eq(rows, columns), type)};
}

constexpr std::int64_t most_block = 1 << 15;

Outputs depth_to_space(const Call& call) {
  const auto& s = call.shape(0);
  const auto block = call.attribute("blocksize", std::int64_t{1});
  if (s.rank() != 4 || block < 1 || block > most_block || s[1] % (block * block) != 0)
    call.fail(fmt::format("blocks of {} from {}", block, to_string(s)));
  const auto channels = s[1] / (block * block);
  const bool by_columns = call.attribute("mode", std::string_view("DCR")) == "CRD";
  Tensor x = by_columns ? clnet::reshape(call.x(0), {s[0], channels, block, block, s[2], s[3]})
                        : clnet::reshape(call.x(0), {s[0], block, block, channels, s[2], s[3]});
  x = by_columns ? permute(x, {0, 1, 4, 2, 5, 3}) : permute(x, {0, 3, 4, 1, 5, 2});
  return {call.give(clnet::reshape(x, {s[0], channels, s[2] * block, s[3] * block}))};
}

Outputs space_to_depth(const Call& call) {
  const auto& s = call.shape(0);
  const auto block = call.attribute("blocksize", std::int64_t{1});
  if (s.rank() != 4 || block < 1 || block > most_block || s[2] % block != 0 || s[3] % block != 0)
    call.fail(fmt::format("blocks of {} from {}", block, to_string(s)));
  // Which is the outer part of the channels: a block's pixels, or the channels before.
  const auto mode = call.attribute("mode", std::string_view("DCR"));
  if (mode != "DCR" && mode != "CRD") call.fail(fmt::format("the mode is \"{}\"", mode));
  const Tensor x = clnet::reshape(call.x(0), {s[0], s[1], s[2] / block, block, s[3] / block, block});
  const Tensor y = mode == "CRD" ? permute(x, {0, 1, 3, 5, 2, 4}) : permute(x, {0, 3, 5, 1, 2, 4});
  return {call.give(clnet::reshape(y, {s[0], s[1] * block * block, s[2] / block, s[3] / block}))};
}

Outputs trilu(const Call& call) {
  const auto k = call.has(1) ? call.integer(1) : 0;
  const bool upper = call.attribute("upper", std::int64_t{1}) != 0;
  return {call.give(upper ? triu(call.x(0), k) : tril(call.x(0), k))};
}

/// Pads of any mode on the given axes; negative ones cut off.
Outputs pad_of(const Call& call) {
  const auto rank = call.shape(0).rank();
  const auto amounts = call.integers(1, "pads");
  std::vector<int> axes;
  if (call.has(3)) {
    for (const auto axis : call.integers(3)) axes.push_back(Call::axis(axis, rank));
  } else {
    axes.resize(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (const auto amount : amounts)
    if (amount < -INT32_MAX || amount > INT32_MAX) call.fail(fmt::format("a pad of {}", amount));
  if (amounts.size() != 2 * axes.size()) call.fail(fmt::format("{} pads of {} axes", amounts.size(), axes.size()));
  std::vector<std::int64_t> before(static_cast<std::size_t>(rank)), after(before);
  Tensor x = call.x(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<std::size_t>(axes[i]);
    const auto low = amounts[i], high = amounts[i + axes.size()];
    before[d] = std::max<std::int64_t>(low, 0);
    after[d] = std::max<std::int64_t>(high, 0);
    if (low < 0 || high < 0) {
      const auto extent = x.size(axes[i]);
      const auto first = low < 0 ? -low : 0, last = high < 0 ? extent + high : extent;
      if (first > last) call.fail(fmt::format("pads {} and {} cut more than {}", low, high, extent));
      x = slice(x, axes[i], first, last);
    }
  }
  const auto mode = call.attribute("mode", std::string_view("constant"));
  if (mode == "constant") {
    const double value = call.has(2) ? call.number(2) : call.attribute("value", 0.0);
    return {call.give(pad(x, before, after, value))};
  }
  // Along one axis after the other: an index into the axis for each place of the result.
  for (int d = 0; d < rank; ++d) {
    const auto low = before[static_cast<std::size_t>(d)], high = after[static_cast<std::size_t>(d)], extent = x.size(d);
    if (low == 0 && high == 0) continue;
    if (extent == 0) call.fail(fmt::format("mode {} of an extent of 0", mode));
    static_cast<void>(x.shape().with(d, extent + low + high));  // refuses what is too large
    std::vector<std::int64_t> from;
    for (std::int64_t i = -low; i < extent + high; ++i) {
      if (mode == "edge") {
        from.push_back(std::clamp<std::int64_t>(i, 0, extent - 1));
      } else if (mode == "wrap") {
        from.push_back((i % extent + extent) % extent);
      } else if (mode == "reflect") {
        const auto period = std::max<std::int64_t>(1, 2 * (extent - 1));
        const auto at = (i % period + period) % period;
        from.push_back(std::min(at, period - at) % extent);
      } else {
        call.refuse(fmt::format("mode {}", mode));
      }
    }
    x = index_select(x, d, Tensor::from(from));
  }
  return {call.give(x)};
}

Outputs reverse_sequence(const Call& call) {
  const Tensor& x = call.x(0);
  const auto batch = Call::axis(call.attribute("batch_axis", std::int64_t{1}), x.rank());
  const auto time = Call::axis(call.attribute("time_axis", std::int64_t{0}), x.rank());
  // What data say is not read: a longer sequence is read as NaN, or 0, where there is none of it.
  if (call.in(1).host())
    for (const auto length : call.integers(1))
      if (length < 0 || length > x.size(time)) call.fail(fmt::format("a sequence of {} in {} places", length, x.size(time)));
  std::vector<std::int64_t> along(static_cast<std::size_t>(x.rank()), 1), across(along);
  along[static_cast<std::size_t>(time)] = x.size(time);
  across[static_cast<std::size_t>(batch)] = x.size(batch);
  const Tensor at = clnet::reshape(arange(x.size(time)), along);
  const Tensor length = clnet::reshape(cast(call.x(1), Dtype::i64), across);
  const Tensor from = where(less(at, length), length - 1.0 - at, at);
  return {call.give(gather(x, time, expand(from, x.shape())))};
}

Outputs center_crop_pad(const Call& call) {
  Tensor x = call.x(0);
  const auto wanted = call.integers(1);
  auto axes = call.integers("axes");
  if (axes.empty()) {
    axes.resize(wanted.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (axes.size() != wanted.size()) call.fail(fmt::format("{} extents of {} axes", wanted.size(), axes.size()));
  std::vector<std::int64_t> before(static_cast<std::size_t>(x.rank())), after(before);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto d = Call::axis(axes[i], x.rank());
    const auto extent = x.size(d), difference = wanted[i] - extent;
    if (difference > 0) {
      before[static_cast<std::size_t>(d)] = difference / 2;
      after[static_cast<std::size_t>(d)] = difference - difference / 2;
    } else if (difference < 0) {
      const auto first = -difference / 2;
      x = slice(x, d, first, first + wanted[i]);
    }
  }
  return {call.give(pad(x, before, after))};
}

/// The same bits as another type of the same size. Integers stay on the device, others are read.
Outputs bit_cast(const Call& call) {
  const auto from = call.type(0), to = call.runner().stored(call.element_type("to", ElementType::undefined));
  if (size_of(from) != size_of(to)) call.fail(fmt::format("{} and {} have different sizes", to_string(from), to_string(to)));
  if (from == to) return {call.in(0)};
  if (!is_floating(from) && !is_floating(to) && to != ElementType::boolean) return {call.give_as(call.x(0), to)};
  if (!call.in(0).is_constant() && !call.runner().options().may_read) throw DependsOnData("BitCast: the input is read");
  auto host = to_host(call.x(0), from);
  host.type = to;
  return {RunValue(to_tensor(host), to)};
}

}  // namespace

std::vector<Operator> shape_operators() {
  // clang-format off
  return {
      {"BitCast", 26, bit_cast},
      {"Cast", 1, cast_as},
      {"CastLike", 15, cast_like},
      {"CenterCropPad", 18, center_crop_pad, {data, structure}},
      {"Concat", 1, concat},
      {"Constant", 1, constant},
      {"ConstantOfShape", 9, constant_of_shape, {structure}},
      {"DepthToSpace", 1, depth_to_space},
      {"Expand", 8, expand_to, {data, structure}},
      {"EyeLike", 9, eye_like},
      {"Flatten", 1, flatten},
      {"Identity", 1, identity},
      {"Pad", 1, pad_of, {data, structure}},
      {"Range", 11, range, {structure}},
      {"Reshape", 1, reshape, {data, structure}},
      {"ReverseSequence", 10, reverse_sequence, {data, structure}},
      {"Shape", 1, shape},
      {"Size", 1, size},
      {"Slice", 1, slice_of, {data, structure}},
      {"SpaceToDepth", 1, space_to_depth},
      {"Split", 1, split, {data, structure}},
      {"Squeeze", 1, squeeze, {data, structure}},
      {"Tile", 1, tile_of, {data, structure}},
      {"Transpose", 1, transpose},
      {"Trilu", 14, trilu, {data, structure}},
      {"Unsqueeze", 1, unsqueeze, {data, structure}},
  };
  // clang-format on
}

}  // namespace clnet::onnx
