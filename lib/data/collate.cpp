#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "clnet/data/batches.h"
#include "clnet/error.h"

namespace clnet::data {
namespace {

Shape with_samples(std::size_t samples, const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> all{static_cast<std::int64_t>(samples)};
  all.insert(all.end(), extents.begin(), extents.end());
  return Shape(std::move(all));
}

std::string array_text(const Array& array, std::size_t index) {
  return array.name.empty() ? fmt::format("array {}", index) : fmt::format("array '{}'", array.name);
}

void require_sizes(const std::vector<Example>& samples) {
  if (samples.empty() || samples[0].empty()) throw Error("collate: there are no samples, or they have no arrays");
  for (std::size_t n = 0; n < samples.size(); ++n) {
    if (samples[n].size() != samples[0].size())
      throw Error(
          fmt::format("sample {} of the batch has {} arrays, and the first has {}", n, samples[n].size(), samples[0].size()));
    for (const auto& array : samples[n])
      if (std::cmp_not_equal(array.bytes.size(), array.spec().bytes()))
        throw ShapeError(fmt::format("sample {} of the batch has an array of {} bytes, which is no {}", n, array.bytes.size(),
                                     to_string(array.spec())));
  }
}

/// The bytes of one element. Throws Error where the dtype does not have the value.
std::vector<std::byte> element_of(double value, Dtype dtype) {
  std::vector<std::byte> bytes(size_of(dtype));
  const auto put = [&](auto element) { std::memcpy(bytes.data(), &element, sizeof element); };
  const auto integer = [&]<class T>(T) {
    if (!(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
          value <= static_cast<double>(std::numeric_limits<T>::max()) && value == std::floor(value)))
      throw Error(fmt::format("pad_collate: {} is no {}", value, to_string(dtype)));
    put(static_cast<T>(value));
  };
  switch (dtype) {
    case Dtype::f32: put(static_cast<float>(value)); break;
    case Dtype::f16: put(float_to_half(static_cast<float>(value))); break;
    case Dtype::bf16: put(float_to_bfloat16(static_cast<float>(value))); break;
    case Dtype::i32: integer(std::int32_t{}); break;
    case Dtype::i64:
      if (!(std::abs(value) < 9e18)) throw Error(fmt::format("pad_collate: {} is no {}", value, to_string(dtype)));
      integer(std::int64_t{});
      break;
    case Dtype::i8: integer(std::int8_t{}); break;
    case Dtype::u8: integer(std::uint8_t{}); break;
    case Dtype::boolean:
      if (value != 0 && value != 1) throw Error(fmt::format("pad_collate: {} is no bool", value));
      put(static_cast<std::uint8_t>(value));
      break;
  }
  return bytes;
}

/// Copies `from` to the corner of a larger array whose elements are filled already.
void copy_corner(const Array& from, const std::vector<std::int64_t>& extents, std::byte* out) {
  const auto item = size_of(from.dtype);
  const auto& own = from.shape.extents();
  if (from.shape.numel() == 0) return;
  if (own.empty()) {
    std::memcpy(out, from.bytes.data(), item);
    return;
  }
  const auto row = static_cast<std::size_t>(own.back()) * item;
  std::vector<std::int64_t> at(own.size(), 0);
  for (std::size_t read = 0; read < from.bytes.size(); read += row) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < own.size(); ++d) place = place * extents[d] + at[d];
    std::memcpy(out + static_cast<std::size_t>(place) * item, from.bytes.data() + read, row);
    for (std::size_t d = own.size() - 1; d-- > 0;) {
      if (++at[d] < own[d]) break;
      at[d] = 0;
    }
  }
}

Array padded(const std::vector<Example>& samples, std::size_t index, double value, std::int64_t multiple) {
  const Array& first = samples[0][index];
  auto extents = first.shape.extents();
  for (std::size_t n = 1; n < samples.size(); ++n) {
    const Array& array = samples[n][index];
    if (array.shape.rank() != first.shape.rank())
      throw ShapeError(fmt::format("sample {} of the batch has {} as {}, expected {} dimensions", n, to_string(array.spec()),
                                   array_text(first, index), first.shape.rank()));
    for (std::size_t d = 0; d < extents.size(); ++d) extents[d] = std::max(extents[d], array.shape.extents()[d]);
  }
  if (const auto rest = extents[0] % multiple; rest != 0) extents[0] += multiple - rest;
  Array result(with_samples(samples.size(), extents), first.dtype, first.name);
  const auto element = element_of(value, first.dtype);
  for (std::size_t at = 0; at < result.bytes.size(); at += element.size())
    std::copy(element.begin(), element.end(), result.bytes.begin() + static_cast<std::ptrdiff_t>(at));
  const auto each = result.bytes.size() / samples.size();
  for (std::size_t n = 0; n < samples.size(); ++n) copy_corner(samples[n][index], extents, result.bytes.data() + n * each);
  return result;
}

/// `hint` stands behind the text about two shapes.
Array stacked(const std::vector<Example>& samples, std::size_t index, std::string_view hint = "") {
  const Array& first = samples[0][index];
  Array result(with_samples(samples.size(), first.shape.extents()), first.dtype, first.name);
  auto out = result.bytes.begin();
  for (std::size_t n = 0; n < samples.size(); ++n) {
    const Array& array = samples[n][index];
    if (array.shape != first.shape)
      throw ShapeError(fmt::format("sample {} of the batch has {} as {}, and the first has {}{}", n, to_string(array.spec()),
                                   array_text(first, index), to_string(first.spec()), hint));
    out = std::copy(array.bytes.begin(), array.bytes.end(), out);
  }
  return result;
}

void require_dtypes(const std::vector<Example>& samples) {
  for (std::size_t n = 1; n < samples.size(); ++n)
    for (std::size_t k = 0; k < samples[n].size(); ++k)
      if (samples[n][k].dtype != samples[0][k].dtype)
        throw DtypeError(fmt::format("sample {} of the batch has {} as {}, and the first has {}", n,
                                     to_string(samples[n][k].spec()), array_text(samples[0][k], k),
                                     to_string(samples[0][k].spec())));
}

std::vector<Array> pad(const std::vector<Example>& samples, const PadOptions& options) {
  require_sizes(samples);
  require_dtypes(samples);
  const auto count = samples[0].size();
  if (!options.values.empty() && options.values.size() != count)
    throw Error(fmt::format("pad_collate: {} values for {} arrays", options.values.size(), count));
  for (const auto index : options.arrays)
    if (index >= count || samples[0][index].shape.rank() == 0)
      throw Error(fmt::format("pad_collate: array {} of {} is not there, or has no dimension", index, count));
  std::vector<Array> result;
  std::optional<std::size_t> measured;
  for (std::size_t k = 0; k < count; ++k) {
    const bool chosen = options.arrays.empty()
                            ? samples[0][k].shape.rank() > 0
                            : std::find(options.arrays.begin(), options.arrays.end(), k) != options.arrays.end();
    if (chosen && !measured) measured = k;
    result.push_back(chosen ? padded(samples, k, options.values.empty() ? options.value : options.values[k], options.multiple)
                            : stacked(samples, k));
  }
  if (options.lengths) {
    if (!measured) throw Error("pad_collate: lengths of samples whose arrays have no dimension");
    std::vector<std::int32_t> lengths;
    for (const auto& sample : samples) lengths.push_back(static_cast<std::int32_t>(sample[*measured].shape[0]));
    result.emplace_back(lengths, Shape{static_cast<std::int64_t>(lengths.size())}, "lengths");
  }
  return result;
}

}  // namespace

std::vector<Array> stack_collate(std::vector<Example> samples) {
  require_sizes(samples);
  require_dtypes(samples);
  std::vector<Array> result;
  for (std::size_t k = 0; k < samples[0].size(); ++k) result.push_back(stacked(samples, k, "; pad_collate() pads"));
  return result;
}

Collate pad_collate(const PadOptions& options) {
  if (options.multiple < 1) throw Error(fmt::format("pad_collate: multiple is {}, expected at least 1", options.multiple));
  return [options](const std::vector<Example>& samples) { return pad(samples, options); };
}

}  // namespace clnet::data
