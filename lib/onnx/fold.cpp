#include "lib/onnx/fold.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "clnet/error.h"
#include "lib/onnx/program.h"

namespace clnet::onnx {
namespace {

constexpr std::int64_t most_folded = 4096;  // elements of an input or result

/// Integers, or the doubles that hold another type's elements exactly.
struct Elements {
  ElementType type;
  Shape shape;
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
};

bool is_real(ElementType type) { return type == ElementType::f32 || type == ElementType::f64; }

Elements elements_of(const RunValue& value) {
  Elements out{value.type(), value.shape(), {}, {}};
  if (is_real(value.type()))
    out.numbers = value.host()->numbers();
  else
    out.integers = value.host()->integers();
  return out;
}

Outputs folded(ElementType type, const Shape& shape, const std::vector<std::int64_t>& elements) {
  return {RunValue(HostTensor::of(type, shape, elements))};
}

/// The element of an input for each element of the result, by NumPy's broadcasting.
std::vector<std::size_t> sources(const Shape& from, const Shape& to) {
  const auto rank = to.rank();
  std::vector<std::int64_t> steps(static_cast<std::size_t>(rank));
  std::int64_t step = 1;
  auto slot = steps.rbegin();
  for (int d = from.rank(); d-- > 0; step *= from[d]) *slot++ = from[d] == 1 ? 0 : step;
  std::vector<std::size_t> out(static_cast<std::size_t>(to.numel()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i), at = std::int64_t{0};
    for (int d = rank; d-- > 0; rest /= to[d]) at += rest % to[d] * steps[static_cast<std::size_t>(d)];
    out[i] = static_cast<std::size_t>(at);
  }
  return out;
}

using Binary = std::int64_t (*)(std::int64_t, std::int64_t);

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  const auto rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

const std::map<std::string_view, Binary>& binaries() {
  using i64 = std::int64_t;
  using u64 = std::uint64_t;
  static const std::map<std::string_view, Binary> all{
      {"Add", [](i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) + static_cast<u64>(b)); }},
      {"Sub", [](i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) - static_cast<u64>(b)); }},
      {"Mul", [](i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) * static_cast<u64>(b)); }},
      {"Div", [](i64 a, i64 b) { return b == 0    ? 0
                                        : b == -1 ? static_cast<i64>(-static_cast<u64>(a))
                                                  : a / b; }},
      {"Mod", [](i64 a, i64 b) { return b == 0 || b == -1 ? 0 : floor_mod(a, b); }},
      {"Max", [](i64 a, i64 b) { return std::max(a, b); }},
      {"Min", [](i64 a, i64 b) { return std::min(a, b); }},
      {"Equal", [](i64 a, i64 b) { return static_cast<i64>(a == b); }},
      {"Greater", [](i64 a, i64 b) { return static_cast<i64>(a > b); }},
      {"GreaterOrEqual", [](i64 a, i64 b) { return static_cast<i64>(a >= b); }},
      {"Less", [](i64 a, i64 b) { return static_cast<i64>(a < b); }},
      {"LessOrEqual", [](i64 a, i64 b) { return static_cast<i64>(a <= b); }},
      {"And", [](i64 a, i64 b) { return static_cast<i64>(a != 0 && b != 0); }},
      {"Or", [](i64 a, i64 b) { return static_cast<i64>(a != 0 || b != 0); }},
      {"Xor", [](i64 a, i64 b) { return static_cast<i64>((a != 0) != (b != 0)); }},
  };
  return all;
}

bool compares(std::string_view name) {
  return name == "Equal" || name.starts_with("Greater") || name.starts_with("Less") || name == "And" || name == "Or" ||
         name == "Xor";
}

/// Of integers of 32 and 64 bits and bool: others wrap around.
std::optional<Outputs> fold_binary(const Call& call, Binary f) {
  if (call.count() != 2 || (call.opset() < 7 && call.has_attribute("axis"))) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i)
    if (const auto type = call.type(i); type != ElementType::i64 && type != ElementType::i32 && type != ElementType::boolean)
      return std::nullopt;
  if (call.name() == "Mod" && call.attribute("fmod", std::int64_t{0}) != 0) return std::nullopt;
  const auto a = elements_of(call.in(0)), b = elements_of(call.in(1));
  const auto shape = broadcast(a.shape, b.shape, call.name());
  if (shape.numel() > most_folded) return std::nullopt;
  const auto from_a = sources(a.shape, shape), from_b = sources(b.shape, shape);
  std::vector<std::int64_t> out(from_a.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = f(a.integers[from_a[i]], b.integers[from_b[i]]);
  return folded(compares(call.name()) ? ElementType::boolean : a.type, shape, out);
}

/// Takes the elements `from` of input 0, whatever their type.
Outputs taken(const RunValue& value, const Shape& shape, const std::vector<std::size_t>& from) {
  const auto& host = *value.host();
  const auto size = size_of(host.type);
  HostTensor out{host.type, shape, {}};
  out.bytes.reserve(from.size() * size);
  for (const auto at : from) {
    const auto begin = host.bytes.begin() + static_cast<std::ptrdiff_t>(at * size);
    out.bytes.insert(out.bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
  }
  return {RunValue(std::move(out))};
}

Outputs reshaped(const RunValue& value, const Shape& shape) {
  auto host = *value.host();
  host.shape = shape;
  return {RunValue(std::move(host))};
}

/// The operator on the device gives the result's shape; its elements stay as they are.
std::optional<Outputs> fold_reshape(const Call& call) {
  const auto outputs = call.instruction().op->run(call);
  return reshaped(call.in(0), outputs[0].shape());
}

std::optional<Outputs> fold_gather(const Call& call) {
  const auto& shape = call.shape(0);
  if (shape.rank() != 1) return std::nullopt;
  std::vector<std::size_t> from;
  for (auto index : call.integers(1)) {
    if (index < 0) index += shape[0];
    if (index < 0 || index >= shape[0]) return std::nullopt;  // the operator says so
    from.push_back(static_cast<std::size_t>(index));
  }
  return taken(call.in(0), call.shape(1), from);
}

std::optional<Outputs> fold_slice(const Call& call) {
  if (call.shape(0).rank() != 1) return std::nullopt;
  const auto extent = call.shape(0)[0];
  const auto starts = call.integers(1, "starts"), stops = call.integers(2, "ends");
  const auto step = call.has(4) ? call.integers(4) : std::vector<std::int64_t>{1};
  if (starts.size() != 1 || stops.size() != 1 || step.size() != 1 || step[0] != 1) return std::nullopt;
  const auto bound = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent); };
  std::vector<std::size_t> from;
  for (auto at = bound(starts[0]); at < bound(stops[0]); ++at) from.push_back(static_cast<std::size_t>(at));
  return taken(call.in(0), Shape{static_cast<std::int64_t>(from.size())}, from);
}

std::optional<Outputs> fold_concat(const Call& call) {
  HostTensor out{call.type(0), {}, {}};
  for (std::size_t i = 0; i < call.count(); ++i) {
    const auto& host = *call.in(i).host();
    if (host.shape.rank() != 1 || host.type != out.type) return std::nullopt;
    out.bytes.insert(out.bytes.end(), host.bytes.begin(), host.bytes.end());
  }
  out.shape = Shape{static_cast<std::int64_t>(out.bytes.size() / size_of(out.type))};
  return Outputs{RunValue(std::move(out))};
}

std::optional<Outputs> fold_expand(const Call& call) {
  const auto shape = broadcast(call.shape(0), Shape(call.integers(1)), call.name());
  if (shape.numel() > most_folded) return std::nullopt;
  return taken(call.in(0), shape, sources(call.shape(0), shape));
}

std::optional<Outputs> fold_cast(const Call& call) {
  const auto to = call.element_type("to", ElementType::undefined);
  const auto from = call.type(0);
  const auto whole = [](ElementType type) {
    return type == ElementType::i64 || type == ElementType::i32 || type == ElementType::boolean;
  };
  if (whole(from) && (whole(to) || to == ElementType::f32)) return folded(to, call.shape(0), call.integers(0));
  if (from == ElementType::f32 && (to == ElementType::i64 || to == ElementType::f32))
    return Outputs{RunValue(HostTensor::of(to, call.shape(0), call.numbers(0)))};
  return std::nullopt;
}

std::optional<Outputs> fold_where(const Call& call) {
  if (call.type(1) != call.type(2) || call.shape(0).numel() > most_folded) return std::nullopt;
  const auto shape = broadcast(broadcast(call.shape(0), call.shape(1), "Where"), call.shape(2), "Where");
  if (shape.numel() > most_folded) return std::nullopt;
  const auto condition = call.integers(0);
  const auto from_c = sources(call.shape(0), shape), from_a = sources(call.shape(1), shape),
             from_b = sources(call.shape(2), shape);
  const auto size = size_of(call.type(1));
  HostTensor out{call.type(1), shape, {}};
  for (std::size_t i = 0; i < from_c.size(); ++i) {
    const bool first = condition[from_c[i]] != 0;
    const auto& bytes = call.in(first ? 1 : 2).host()->bytes;
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>((first ? from_a : from_b)[i] * size);
    out.bytes.insert(out.bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
  }
  return Outputs{RunValue(std::move(out))};
}

std::optional<Outputs> fold_product(const Call& call) {
  if (call.shape(0).rank() != 1 || call.type(0) != ElementType::i64 || call.has(1) || call.has_attribute("axes"))
    return std::nullopt;
  const auto all = call.integers(0);
  const auto product = std::accumulate(all.begin(), all.end(), std::uint64_t{1},
                                       [](std::uint64_t a, std::int64_t b) { return a * static_cast<std::uint64_t>(b); });
  const bool keeps = call.attribute("keepdims", std::int64_t{1}) != 0;
  return folded(ElementType::i64, keeps ? Shape{1} : Shape{}, std::vector<std::int64_t>{static_cast<std::int64_t>(product)});
}

}  // namespace

std::optional<Outputs> fold(const Call& call) {
  using Fold = std::optional<Outputs> (*)(const Call&);
  static const std::map<std::string_view, Fold> folds{
      {"Cast", fold_cast},       {"Concat", fold_concat},      {"Expand", fold_expand},   {"Flatten", fold_reshape},
      {"Gather", fold_gather},   {"ReduceProd", fold_product}, {"Reshape", fold_reshape}, {"Slice", fold_slice},
      {"Squeeze", fold_reshape}, {"Unsqueeze", fold_reshape},  {"Where", fold_where},
  };
  if (!call.instruction().op->domain.empty() || call.count() == 0) return std::nullopt;
  for (std::size_t i = 0; i < call.count(); ++i)
    if (call.has(i) && (!call.in(i).host() || call.shape(i).numel() > most_folded)) return std::nullopt;
  if (!call.has(0)) return std::nullopt;
  if (const auto found = binaries().find(call.name()); found != binaries().end())
    return call.has(1) ? fold_binary(call, found->second) : std::nullopt;
  const auto found = folds.find(call.name());
  return found == folds.end() ? std::nullopt : found->second(call);
}

}  // namespace clnet::onnx
