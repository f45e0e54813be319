#include "clnet/data/dataset.h"

#include <fmt/format.h>

#include <utility>

#include "lib/base/checksum.h"

namespace clnet::data {

Array::Array(Shape shape, Dtype dtype, std::string name)
    : shape(std::move(shape)),
      dtype(dtype),
      bytes(static_cast<std::size_t>(this->shape.numel()) * size_of(dtype)),
      name(std::move(name)) {}

Array::Array(const Tensor& tensor, std::string name) : Array(tensor.shape(), tensor.dtype(), std::move(name)) {
  tensor.to_bytes(bytes.data(), bytes.size());
}

void Array::require(Dtype wanted) const {
  if (dtype != wanted)
    throw DtypeError(
        fmt::format("data::Array: values of {} were asked for, and it has {}", to_string(wanted), to_string(spec())));
}

void Array::require_count(std::size_t count) const {
  if (std::cmp_not_equal(count, shape.numel()))
    throw ShapeError(fmt::format("data::Array: {} values, expected {} for {}", count, shape.numel(), to_string(shape)));
}

void Stream::restore(const std::string&) { throw Error("data::Stream: restore() is not there, so a state leads nowhere"); }

Example Dataset::get(std::int64_t, std::uint64_t) const { throw Error("data::Dataset: a dataset of a known size needs get()"); }

std::unique_ptr<Stream> Dataset::iterate(std::uint64_t) const {
  throw Error("data::Dataset: a dataset of unknown size needs iterate()");
}

std::int32_t Dataset::label_of(std::int64_t index) const {
  const auto sample = get(index, 0);
  if (sample.size() > 1 && sample[1].shape.numel() == 1) {
    if (sample[1].dtype == Dtype::i32) return sample[1].values<std::int32_t>()[0];
    if (sample[1].dtype == Dtype::i64)
      if (const auto label = sample[1].values<std::int64_t>()[0]; std::in_range<std::int32_t>(label))
        return static_cast<std::int32_t>(label);
  }
  throw Error(fmt::format("data::Dataset: {} has no label, an i32 or i64 as its second array", name_of(index)));
}

std::string Dataset::name_of(std::int64_t index) const { return fmt::format("sample {}", index); }

std::string Dataset::fingerprint() const {
  const auto count = size();
  if (count == unknown) return "a stream";
  Checksum names;
  for (std::int64_t i = 0; i < count; ++i) names.add(name_of(i));
  auto text = fmt::format("{} samples, names {}", count, names.text());
  if (count == 0) return text;
  const auto describe = [&](std::int64_t index) {
    std::string parts;
    for (const auto& array : get(index, 0)) parts += fmt::format(" {}{}", array.name, to_string(array.spec()));
    return parts;
  };
  return text + fmt::format(", from{} to{}", describe(0), describe(count - 1));
}

}  // namespace clnet::data
