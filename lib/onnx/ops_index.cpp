// Operators that gather, scatter, sort and search.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "clnet/ops/index.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/runner.h"

namespace clnet::onnx {
namespace {

/// Indices below 0 count from the end.
Tensor wrapped(const Tensor& indices, std::int64_t extent) {
  const Tensor at = cast(indices, Dtype::i64);
  return where(less(at, 0.0), at + static_cast<double>(extent), at);
}

/// Throws Error for a constant index out of -extent..extent-1. What data say is not read: such elements are NaN, or 0.
void require_inside(const Call& call, std::size_t input, std::int64_t extent) {
  if (!call.in(input).host()) return;
  for (const auto index : call.integers(input))
    if (index < -extent || index >= extent) call.fail(fmt::format("index {} of {} elements", index, extent));
}

Outputs gather_of(const Call& call) {
  const Tensor &x = call.x(0), &indices = call.x(1);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{0}), x.rank());
  require_inside(call, 1, x.size(axis));
  if (call.in(1).host() && indices.rank() == 0) {
    const auto index = call.integers(1)[0];
    return {call.give(select(x, axis, index < 0 ? index + x.size(axis) : index))};
  }
  std::vector<std::int64_t> extents(x.shape().begin(), x.shape().begin() + axis);
  extents.insert(extents.end(), indices.shape().begin(), indices.shape().end());
  extents.insert(extents.end(), x.shape().begin() + axis + 1, x.shape().end());
  const Tensor lines = index_select(x, axis, reshape(wrapped(indices, x.size(axis)), {-1}));
  return {call.give(reshape(lines, extents))};
}

Outputs gather_elements(const Call& call) {
  const Tensor& x = call.x(0);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{0}), x.rank());
  require_inside(call, 1, x.size(axis));
  return {call.give(gather(x, axis, wrapped(call.x(1), x.size(axis))))};
}

/// Of index tuples: each number counts from the end of its own dimension where it is below 0.
Tensor wrapped_tuples(const Tensor& indices, const Shape& shape, int first) {
  std::vector<std::int64_t> extents;
  for (std::int64_t d = 0; d < indices.size(-1); ++d) extents.push_back(shape[first + static_cast<int>(d)]);
  const Tensor at = cast(indices, Dtype::i64);
  return where(less(at, 0.0), at + Tensor::from(extents), at);
}

/// As require_inside(), of tuples that begin with dimension `first` of the shape.
void require_tuples_inside(const Call& call, std::size_t input, const Shape& shape, int first) {
  if (!call.in(input).host()) return;
  std::int64_t at = 0;
  const auto width = call.shape(input)[-1];
  for (const auto index : call.integers(input)) {
    const auto extent = shape[first + static_cast<int>(at++ % width)];
    if (index < -extent || index >= extent) call.fail(fmt::format("index {} of {} elements", index, extent));
  }
}

Outputs gather_nd_of(const Call& call) {
  const Tensor& x = call.x(0);
  const auto batches = call.attribute("batch_dims", std::int64_t{0});
  if (batches < 0 || batches >= x.rank()) call.fail(fmt::format("batch_dims is {} of {}", batches, to_string(x.shape())));
  const auto batch = static_cast<int>(batches);
  if (call.shape(1).rank() < 1 || batch + call.shape(1)[-1] > x.rank())
    call.fail(fmt::format("indices {} of {}", to_string(call.shape(1)), to_string(x.shape())));
  require_tuples_inside(call, 1, x.shape(), batch);
  return {call.give(gather_nd(x, wrapped_tuples(call.x(1), x.shape(), batch), batch))};
}

std::optional<ScatterReduction> reduction_of(const Call& call) {
  const auto name = call.attribute("reduction", std::string_view("none"));
  if (name == "none") return std::nullopt;
  if (name == "add") return ScatterReduction::sum;
  if (name == "mul") return ScatterReduction::prod;
  if (name == "max") return ScatterReduction::amax;
  if (name == "min") return ScatterReduction::amin;
  call.fail(fmt::format("the reduction is \"{}\"", name));
}

Outputs scatter_elements(const Call& call) {
  const Tensor& x = call.x(0);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{0}), x.rank());
  require_inside(call, 1, x.size(axis));
  const Tensor at = wrapped(call.x(1), x.size(axis));
  const auto reduction = reduction_of(call);
  return {call.give(reduction ? scatter_reduce(x, axis, at, call.x(2), *reduction) : scatter(x, axis, at, call.x(2)))};
}

Outputs scatter_nd_of(const Call& call) {
  const Tensor& x = call.x(0);
  if (call.shape(1).rank() < 1 || call.shape(1)[-1] > x.rank())
    call.fail(fmt::format("indices {} of {}", to_string(call.shape(1)), to_string(x.shape())));
  require_tuples_inside(call, 1, x.shape(), 0);
  const Tensor at = wrapped_tuples(call.x(1), x.shape(), 0);
  const auto reduction = reduction_of(call);
  return {call.give(scatter_nd(x, at, call.x(2), reduction))};
}

Outputs one_hot_of(const Call& call) {
  const auto depth = call.integer(1);
  const auto rank = call.shape(0).rank() + 1;
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{-1}), rank);
  // Indices out of -depth..depth-1 have no element that is on.
  const Tensor at = unsqueeze(wrapped(is_floating(call.type(0)) ? cast(call.x(0), Dtype::i64) : call.x(0), depth), axis);
  std::vector<std::int64_t> along(static_cast<std::size_t>(rank), 1);
  along[static_cast<std::size_t>(axis)] = depth;
  const Tensor& values = call.x(2);
  const Tensor off = slice(values, 0, 0, 1), on = slice(values, 0, 1, 2);
  return {call.give(where(eq(at, reshape(arange(depth), along)), reshape(on, Shape{}), reshape(off, Shape{})), 2)};
}

Outputs top_k(const Call& call) {
  const Tensor& x = call.x(0);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{-1}), x.rank());
  const auto k = call.opset() < 10 ? call.attribute("k", std::int64_t{0}) : call.integer(1);
  const auto result = topk(x, k, axis, call.attribute("largest", std::int64_t{1}) != 0);
  return {call.give(result.values), RunValue(cast(result.indices, Dtype::i64), ElementType::i64)};
}

Outputs nonzero_of(const Call& call) { return {RunValue(transpose(nonzero(call.x(0)), 0, 1), ElementType::i64)}; }

Outputs compress(const Call& call) {
  const bool flat = !call.has_attribute("axis");
  const Tensor x = flat ? reshape(call.x(0), {-1}) : call.x(0);
  const auto axis = flat ? 0 : Call::axis(call.attribute("axis", std::int64_t{0}), x.rank());
  const auto condition = call.integers(1);
  std::vector<std::int64_t> kept;
  if (std::cmp_greater(condition.size(), x.size(axis)))
    call.fail(fmt::format("{} conditions of {} places", condition.size(), x.size(axis)));
  for (std::size_t i = 0; i < condition.size(); ++i)
    if (condition[i] != 0) kept.push_back(static_cast<std::int64_t>(i));
  return {call.give(index_select(x, axis, Tensor::from(kept)))};
}

/// Values, the first place of each, the value of each element, and how often each appears: in ascending order or that of the
/// first places.
Outputs unique_of(const Call& call) {
  const bool flat = !call.has_attribute("axis");
  const Tensor x = flat ? reshape(call.x(0), {-1}) : call.x(0);
  const auto axis = flat ? 0 : Call::axis(call.attribute("axis", std::int64_t{0}), x.rank());
  if (!call.in(0).is_constant() && !call.runner().options().may_read)
    throw DependsOnData("Unique: the number of values depends on data");
  const auto found = flat ? unique(x) : unique(x, axis);
  Tensor inverse = reshape(found.inverse, {-1}), counts = found.counts;
  const auto extent = x.size(axis), count = counts.size(0);
  Tensor first =
      scatter_reduce(full({count}, static_cast<double>(extent), Dtype::i64), 0, inverse, arange(extent), ScatterReduction::amin);
  if (call.attribute("sorted", std::int64_t{1}) == 0) {
    const Tensor order = argsort(first);
    const Tensor place = scatter(zeros({count}, Dtype::i64), 0, order, arange(count));
    first = index_select(first, 0, order);
    counts = index_select(counts, 0, order);
    inverse = index_select(place, 0, inverse);
  }
  return {call.give(index_select(x, axis, first)), RunValue(first), RunValue(inverse), RunValue(counts)};
}

/// Writes `update` into a cache, from a place of each sequence on; circular: over its end to its beginning.
Outputs tensor_scatter(const Call& call) {
  const Tensor &cache = call.x(0), &update = call.x(1);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{-2}), cache.rank());
  const auto mode = call.attribute("mode", std::string_view("linear"));
  if (mode != "linear" && mode != "circular") call.fail(fmt::format("the mode is \"{}\"", mode));
  if (axis == 0 || update.rank() != cache.rank() || !(update.shape().with(axis, cache.size(axis)) == cache.shape()) ||
      update.size(axis) > cache.size(axis))
    call.fail(fmt::format("{} into {} along dimension {}", to_string(update.shape()), to_string(cache.shape()), axis));
  std::vector<std::int64_t> along(static_cast<std::size_t>(cache.rank()), 1), by_sequence(along);
  along[static_cast<std::size_t>(axis)] = update.size(axis);
  by_sequence[0] = cache.size(0);
  Tensor at = reshape(arange(update.size(axis)), along);
  if (call.has(2)) at = at + reshape(cast(call.x(2), Dtype::i64), by_sequence);
  const auto extent = static_cast<double>(cache.size(axis));
  if (mode == "circular") at = at - at / extent * extent;
  return {call.give(scatter(cache, axis, expand(at, update.shape()), update))};
}

/// How often each sequence of numbers of a pool appears in each row, with up to max_skip_count elements left out between two.
Outputs tf_idf(const Call& call) {
  constexpr std::int64_t most_counted = 1 << 26;
  if (call.has_attribute("pool_strings")) call.refuse("texts");
  const auto pool = call.integers("pool_int64s"), begins = call.integers("ngram_counts"), places = call.integers("ngram_indexes");
  const auto weights = call.numbers("weights");
  const auto mode = call.attribute("mode", std::string_view{});
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") call.fail(fmt::format("the mode is \"{}\"", mode));
  std::map<std::vector<std::int64_t>, std::size_t> place_of;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const auto end = i + 1 < begins.size() ? begins[i + 1] : static_cast<std::int64_t>(pool.size());
    if (begins[i] < 0 || end < begins[i] || std::cmp_greater(end, pool.size())) call.fail("ngram_counts does not fit the pool");
    const auto length = static_cast<std::ptrdiff_t>(i) + 1;
    for (auto at = begins[i]; at + length <= end; at += length, ++taken) {
      if (taken >= places.size() || places[taken] < 0 || places[taken] >= most_counted) call.fail("ngram_indexes is too short");
      place_of.emplace(std::vector<std::int64_t>(pool.begin() + at, pool.begin() + at + length),
                       static_cast<std::size_t>(places[taken]));
    }
  }
  if (places.empty()) call.fail("ngram_indexes is empty");
  const auto width = static_cast<std::size_t>(*std::max_element(places.begin(), places.end()) + 1);
  const auto& shape = call.shape(0);
  const bool batched = shape.rank() == 2;
  const auto rows = batched ? shape[0] : 1, length = shape.rank() == 0 ? 1 : shape[-1];
  if (shape.rank() > 2 || rows > most_counted / static_cast<std::int64_t>(width))
    call.fail(fmt::format("the input is {}", to_string(shape)));
  if ((mode != "TF" && !weights.empty() && weights.size() < width) || width > static_cast<std::size_t>(most_counted))
    call.fail(fmt::format("{} weights of {} places", weights.size(), width));
  const auto shortest = call.attribute("min_gram_length", std::int64_t{1}),
             longest = call.attribute("max_gram_length", std::int64_t{1});
  const auto skips = std::min(call.attribute("max_skip_count", std::int64_t{0}), length);
  const auto x = call.integers(0);
  std::vector<double> counts(static_cast<std::size_t>(rows) * width);
  for (std::int64_t row = 0; row < rows; ++row)
    for (auto size = std::max<std::int64_t>(shortest, 1); size <= std::min(longest, length); ++size)
      for (std::int64_t step = 1; step <= (size == 1 ? 1 : skips + 1) && (size - 1) * step < length; ++step)
        for (std::int64_t begin = 0; begin + (size - 1) * step < length; ++begin) {
          std::vector<std::int64_t> gram;
          for (std::int64_t i = 0; i < size; ++i) gram.push_back(x[static_cast<std::size_t>(row * length + begin + i * step)]);
          if (const auto found = place_of.find(gram); found != place_of.end())
            counts[static_cast<std::size_t>(row) * width + found->second] += 1;
        }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double weight = weights.empty() ? 1 : weights[i % width];
    if (mode == "IDF") counts[i] = counts[i] > 0 ? weight : 0;
    if (mode == "TFIDF") counts[i] *= weight;
  }
  const auto columns = static_cast<std::int64_t>(width);
  const auto host = HostTensor::of(ElementType::f32, batched ? Shape{rows, columns} : Shape{columns}, counts);
  return {RunValue(to_tensor(host), ElementType::f32)};
}

}  // namespace

std::vector<Operator> index_operators() {
  using enum Role;
  return {
      {"Compress", 9, compress, {data, structure}},
      {"Gather", 1, gather_of, {weight, data}},
      {"GatherElements", 11, gather_elements},
      {"GatherND", 11, gather_nd_of},
      {"NonZero", 9, nonzero_of},
      {"OneHot", 9, one_hot_of, {data, structure, statistic}},
      {"ScatterElements", 11, scatter_elements},
      {"Scatter", 9, scatter_elements},
      {"ScatterND", 11, scatter_nd_of},
      {"TensorScatter", 24, tensor_scatter},
      {"TfIdfVectorizer", 9, tf_idf},
      {"TopK", 1, top_k, {data, structure}},
      {"Unique", 11, unique_of},
  };
}

}  // namespace clnet::onnx
