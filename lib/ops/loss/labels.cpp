#include "lib/ops/loss/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "clnet/error.h"
#include "lib/exec/record/work.h"

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

template <class T>
std::vector<std::int64_t> whole_numbers(const std::byte* bytes, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  bytes += static_cast<std::size_t>(first) * sizeof(T);
  for (auto& number : numbers) {
    T stored;
    std::memcpy(&stored, bytes, sizeof stored);
    number = stored;
    bytes += sizeof stored;
  }
  return numbers;
}

std::int64_t field(const Op& op, std::string_view name) {
  for (const auto& [key, value] : op.fields())
    if (key == name) return std::get<std::int64_t>(value);
  throw Error(fmt::format("{} has no field {}", op.name(), name));
}

using Numbers = std::vector<std::int64_t>;

std::optional<Numbers> known(const Tensor& tensor, std::int64_t first, std::int64_t count);
std::optional<Numbers> all_known(const Tensor& tensor) { return known(tensor, 0, tensor.numel()); }

/// `count` elements, from `first` on, of those along `dim` of a tensor of shape `from` that are at these places; 0 outside of it.
std::optional<Numbers> selected(const Tensor& from, int dim, const Numbers& places, std::int64_t first, std::int64_t count) {
  if (places.empty() || from.numel() == 0) return std::nullopt;
  const auto& shape = from.shape();
  std::int64_t inner = 1;
  for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
  // Along the outermost dimension, as of a range of a data set, only what lies between the first and the last.
  auto [low, high] = std::pair<std::int64_t, std::int64_t>{0, shape[dim]};
  if (inner * shape[dim] == from.numel()) {
    const auto [least, most] = std::minmax_element(places.begin(), places.end());
    low = std::clamp(*least, std::int64_t{0}, high);
    high = std::clamp(*most + 1, low, high);
  }
  const bool is_part = low > 0 || high < shape[dim];
  const auto all = is_part ? known(from, low * inner, (high - low) * inner) : all_known(from);
  if (!all) return std::nullopt;
  Numbers result;
  const auto extent = std::ssize(places);
  for (std::int64_t i = first; i < first + count; ++i) {
    const auto outer = i / (extent * inner), at = places[static_cast<std::size_t>(i / inner % extent)];
    const bool is_there = at >= low && at < high;
    result.push_back(is_there ? (*all)[static_cast<std::size_t>((outer * (high - low) + at - low) * inner + i % inner)] : 0);
  }
  return result;
}

std::optional<Numbers> sliced(const Op& op, const Tensor& from, std::int64_t first, std::int64_t count) {
  Numbers places;
  for (std::int64_t i = 0; i < field(op, "count"); ++i) places.push_back(field(op, "start") + i * field(op, "step"));
  return selected(from, static_cast<int>(field(op, "dim")), places, first, count);
}

std::optional<Numbers> indexed(const Op& op, const Tensor& from, const Tensor& index, std::int64_t first, std::int64_t count) {
  auto places = all_known(index);
  if (!places) return std::nullopt;
  const auto dim = static_cast<int>(field(op, "dim"));
  for (auto& place : *places)
    if (place < 0) place += from.size(dim);
  return selected(from, dim, *places, first, count);
}

/// arange(), and sums of such and of single numbers: the places of a range x[{{a, b}}].
std::optional<Numbers> computed(const Op& op, const Tensor& a, const Tensor& b, std::int64_t first, std::int64_t count) {
  const auto x = all_known(a), y = all_known(b);
  if (!x || !y || x->empty() || y->empty()) return std::nullopt;
  const auto of = [](const Numbers& numbers, std::int64_t i) {
    return numbers[numbers.size() == 1 ? 0 : static_cast<std::size_t>(i)];
  };
  Numbers result;
  for (std::int64_t i = first; i < first + count; ++i)
    result.push_back(op.name() == "arange" ? (*x)[0] + i * (*y)[0] : of(*x, i) + of(*y, i));
  return result;
}

/// `count` whole numbers from `first` on, as far as the host knows them, also behind casts, slices and ranges of them.
std::optional<Numbers> known(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  const auto dtype = tensor.dtype();
  if (dtype != Dtype::i32 && dtype != Dtype::i64) return std::nullopt;
  const auto range = root_of(tensor);
  const Tensor& root = range.tensor;
  first += range.offset;
  const auto value = exec::value_of(root);
  if (const auto* bytes = value ? value->on_host() : nullptr)
    return dtype == Dtype::i32 ? whole_numbers<std::int32_t>(bytes, first, count)
                               : whole_numbers<std::int64_t>(bytes, first, count);
  const auto& node = *root.node();
  if (!node.op || node.inputs.empty()) return std::nullopt;
  const auto name = node.op->name();
  const auto input = [&](std::size_t i) { return Tensor(node.inputs[i]); };
  if (name == "cast") {
    auto numbers = known(input(0), first, count);
    if (numbers && dtype == Dtype::i32)
      for (auto& number : *numbers) number = static_cast<std::int32_t>(number);
    return numbers;
  }
  if (name == "slice") return sliced(*node.op, input(0), first, count);
  if (name == "index_select") return indexed(*node.op, input(0), input(1), first, count);
  const auto fits = [&](const Tensor& part) { return part.numel() == 1 || part.shape() == root.shape(); };
  if (name == "arange" || (name == "add" && fits(input(0)) && fits(input(1))))
    return computed(*node.op, input(0), input(1), first, count);
  return std::nullopt;
}

}  // namespace

void require_classes(std::string_view op, const Tensor& labels, std::int64_t classes, std::optional<std::int64_t> ignored) {
  const auto numbers = all_known(labels);
  if (!numbers) return;
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    const auto label = (*numbers)[i];
    if ((label >= 0 && label < classes) || (ignored && label == *ignored)) continue;
    throw Error(fmt::format("{}: label {} of {} is no class: there are {}, from 0{}", op, label,
                            place(labels.shape(), static_cast<std::int64_t>(i)), classes,
                            ignored ? fmt::format(", and ignore_index {}", *ignored) : ""));
  }
}

}  // namespace clnet::ops
