#include "lib/ops/loss/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "clnet/error.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/collect/walk.h"
#include "lib/exec/collect/work.h"

namespace clnet::ops {

namespace {

/// "sample 3", and where in it the label lies.
std::string place(const Shape& shape, std::int64_t index) {
  if (shape.rank() == 0) return "the sample";
  std::vector<std::int64_t> at(static_cast<std::size_t>(shape.rank()));
  for (int d = shape.rank(); d-- > 0; index /= shape[d]) at[static_cast<std::size_t>(d)] = index % shape[d];
  if (at.size() == 1) return fmt::format("sample {}", at[0]);
  return fmt::format("sample {} at [{}]", at[0], fmt::join(at.begin() + 1, at.end(), ", "));
}

using Numbers = std::vector<std::int64_t>;

template <class T>
Numbers whole_numbers(const std::byte* bytes, Numbers places) {
  for (auto& place : places) {
    T stored;
    std::memcpy(&stored, bytes + static_cast<std::size_t>(place) * sizeof(T), sizeof stored);
    place = static_cast<std::int64_t>(stored);  // NOLINT(bugprone-signed-char-misuse): i8 is a number
  }
  return places;
}

Numbers whole_numbers(const std::byte* bytes, Dtype dtype, Numbers places) {
  switch (dtype) {
    case Dtype::i64: return whole_numbers<std::int64_t>(bytes, std::move(places));
    case Dtype::i32: return whole_numbers<std::int32_t>(bytes, std::move(places));
    case Dtype::i8: return whole_numbers<std::int8_t>(bytes, std::move(places));
    default: return whole_numbers<std::uint8_t>(bytes, std::move(places));
  }
}

std::int64_t field(const Op& op, std::string_view name) {
  for (const auto& [key, value] : op.fields())
    if (key == name) return std::get<std::int64_t>(value);
  throw Error(fmt::format("{} has no field {}", op.name(), name));
}

/// As the dtype holds it, after a sum that may be too large for it.
std::int64_t wrapped(std::uint64_t number, Dtype dtype) {
  switch (dtype) {
    case Dtype::i64: return static_cast<std::int64_t>(number);
    case Dtype::i32: return static_cast<std::int32_t>(number);
    case Dtype::i8: return static_cast<std::int8_t>(number);
    case Dtype::boolean: return number != 0 ? 1 : 0;
    default: return static_cast<std::uint8_t>(number);
  }
}

/// Whether its memory is in the program's hands: then it may hold another thing than an operation made of its inputs.
bool is_lent(const Value* value) {
  const auto* device = dynamic_cast<const exec::DeviceValue*>(value);
  return device && device->is_lent;
}

/// What the host knows of integers and bools: behind casts, slices, ranges, sums and differences of what it has, too.
class Known {
 public:
  /// The elements of a tensor at these places, counted in its order; nothing where one is not known.
  std::optional<Numbers> at(const Tensor& tensor, Numbers places) {
    const auto dtype = tensor.dtype();
    // A graph may be deep, and lead to a tensor by many ways.
    if (is_floating(dtype) || left_-- == 0) return std::nullopt;
    const auto range = root_of(tensor);
    const Tensor& root = range.tensor;
    for (auto& place : places) place += range.offset;
    const auto value = exec::asked_value_of(root);
    if (const auto* bytes = value ? value->on_host() : nullptr) return whole_numbers(bytes, dtype, std::move(places));
    const auto& node = *node_of(root);
    if (node.slot != 0) {
      // Computed by another thread, perhaps in this moment: it is on a device.
      if (value || !walk_.enter(node_of(root)) || node.inputs.empty()) return std::nullopt;
      return at(Tensor(node.inputs[0]), std::move(places));
    }
    if (!node.op || node.inputs.empty() || is_lent(value.get())) return std::nullopt;
    if (node.is_view()) {  // one that has a value
      ++left_;             // as root_of() counts none
      const auto& alias = *node.aliases[static_cast<std::size_t>(output_of(root))];
      for (auto& place : places) place += alias.offset;
      return at(Tensor(node.inputs[alias.input]), std::move(places));
    }
    const auto name = node.op->name();
    const auto input = [&](std::size_t i) { return Tensor(node.inputs[i]); };
    if (name == "cast") {
      auto numbers = at(input(0), std::move(places));
      if (numbers)
        for (auto& number : *numbers) number = wrapped(static_cast<std::uint64_t>(number), dtype);
      return numbers;
    }
    if (name == "slice") return sliced(*node.op, input(0), std::move(places));
    if (name == "index_select") return indexed(*node.op, input(0), input(1), std::move(places));
    const bool is_range = name == "arange", is_difference = name == "sub";
    const auto fits = [&](const Tensor& part) { return part.numel() == 1 || part.shape() == root.shape(); };
    if (is_range || ((is_difference || name == "add") && fits(input(0)) && fits(input(1)))) {
      const auto of = [&](const Tensor& part) { return at(part, part.numel() == 1 ? Numbers{0} : places); };
      const auto a = of(input(0)), b = a ? of(input(1)) : std::nullopt;
      if (!a || !b) return std::nullopt;
      for (std::size_t i = 0; i < places.size(); ++i) {
        const auto first = static_cast<std::uint64_t>((*a)[a->size() == 1 ? 0 : i]);
        const auto second = static_cast<std::uint64_t>((*b)[b->size() == 1 ? 0 : i]);
        const auto times = is_range ? static_cast<std::uint64_t>(places[i]) : std::uint64_t{1};
        places[i] = wrapped(is_difference ? first - second : first + times * second, dtype);
      }
      return places;
    }
    return std::nullopt;
  }

 private:
  /// A place in a tensor as one before, at and after what lies between.
  struct Along {
    std::int64_t outer(std::int64_t place) const { return place / (extent * after); }
    std::int64_t at(std::int64_t place) const { return place / after % extent; }
    std::int64_t inner(std::int64_t place) const { return place % after; }
    std::int64_t place(std::int64_t outer, std::int64_t at, std::int64_t inner) const {
      return (outer * extent + at) * after + inner;
    }
    std::int64_t extent, after;
  };
  static Along along(const Tensor& tensor, int dim) {
    Along result{tensor.size(dim), 1};
    for (int d = dim + 1; d < tensor.rank(); ++d) result.after *= tensor.size(d);
    return result;
  }

  std::optional<Numbers> sliced(const Op& op, const Tensor& from, Numbers places) {
    const auto start = field(op, "start"), step = field(op, "step");
    const auto there = along(from, static_cast<int>(field(op, "dim")));
    const Along here{field(op, "count"), there.after};
    for (auto& place : places) place = there.place(here.outer(place), start + here.at(place) * step, here.inner(place));
    return at(from, std::move(places));
  }

  /// 0 for an index outside. All dimensions of the index are in the place of one.
  std::optional<Numbers> indexed(const Op& op, const Tensor& from, const Tensor& index, Numbers places) {
    if (from.numel() == 0) return std::nullopt;
    const auto there = along(from, static_cast<int>(field(op, "dim")));
    const Along here{index.numel(), there.after};
    Numbers wanted(places.size());
    std::transform(places.begin(), places.end(), wanted.begin(), [&](std::int64_t place) { return here.at(place); });
    auto chosen = at(index, std::move(wanted));
    if (!chosen) return std::nullopt;
    std::vector<bool> outside(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      auto& row = (*chosen)[i];
      if (row < 0) row += there.extent;
      outside[i] = row < 0 || row >= there.extent;
      places[i] = there.place(here.outer(places[i]), outside[i] ? 0 : row, here.inner(places[i]));
    }
    auto numbers = at(from, std::move(places));
    for (std::size_t i = 0; numbers && i < outside.size(); ++i)
      if (outside[i]) (*numbers)[i] = 0;
    return numbers;
  }

  exec::Walk walk_;
  int left_ = 64;  ///< tensors that are still looked at
};

std::optional<Numbers> all_known(const Tensor& tensor) {
  // Most that are large are on the device alone, which one place shows.
  if (tensor.numel() > 0 && !Known().at(tensor, {0})) return std::nullopt;
  Numbers places(static_cast<std::size_t>(tensor.numel()));
  std::iota(places.begin(), places.end(), std::int64_t{0});
  return Known().at(tensor, std::move(places));
}

}  // namespace

void require_classes(std::string_view op, const Tensor& labels, std::int64_t classes, std::optional<std::int64_t> ignored) {
  const auto numbers = all_known(labels);
  for (std::size_t i = 0; numbers && i < numbers->size(); ++i) {
    const auto label = (*numbers)[i];
    if ((label >= 0 && label < classes) || (ignored && label == *ignored)) continue;
    throw Error(fmt::format("{}: label {} of {} is no class: there are {}, from 0{}", op, label,
                            place(labels.shape(), static_cast<std::int64_t>(i)), classes,
                            ignored ? fmt::format(", and ignore_index {}", *ignored) : ""));
  }
}

void require_rows(std::string_view op, const Tensor& indices, std::int64_t rows) {
  const auto numbers = all_known(indices);
  for (std::size_t i = 0; numbers && i < numbers->size(); ++i)
    if (const auto index = (*numbers)[i]; index < -rows || index >= rows)
      throw Error(fmt::format("{}: index {} of {} is outside of the {} rows", op, index,
                              place(indices.shape(), static_cast<std::int64_t>(i)), rows));
}

}  // namespace clnet::ops
