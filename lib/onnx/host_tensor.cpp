#include "lib/onnx/host_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "clnet/error.h"
#include "lib/base/input_file.h"

namespace clnet::onnx {
namespace {

/// Calls f(T{}) with the C++ type of an element; 16-bit floats are their bits.
template <class F>
decltype(auto) with_type(ElementType type, const F& f) {
  switch (type) {
    case ElementType::f32: return f(float{});
    case ElementType::f64: return f(double{});
    case ElementType::u8: return f(std::uint8_t{});
    case ElementType::i8: return f(std::int8_t{});
    case ElementType::u16:
    case ElementType::f16:
    case ElementType::bf16: return f(std::uint16_t{});
    case ElementType::i16: return f(std::int16_t{});
    case ElementType::i32: return f(std::int32_t{});
    case ElementType::i64: return f(std::int64_t{});
    case ElementType::u32: return f(std::uint32_t{});
    case ElementType::u64: return f(std::uint64_t{});
    case ElementType::boolean: return f(bool{});
    default: throw Unsupported(fmt::format("onnx: elements of type {} are not supported", to_string(type)));
  }
}

template <class T>
T element(const std::vector<char>& bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void append(std::vector<char>& bytes, T value) {
  const auto* begin = reinterpret_cast<const char*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

/// Truncates; what is out of range becomes the nearest number, NaN becomes 0.
std::int64_t to_integer(double value) {
  if (!(value == value)) return 0;
  if (value >= 9223372036854775807.0) return std::numeric_limits<std::int64_t>::max();
  if (value <= -9223372036854775808.0) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

template <class From>
void append_as(std::vector<char>& bytes, ElementType type, From value) {
  if (type == ElementType::f16) return append(bytes, float_to_half(static_cast<float>(value)));
  if (type == ElementType::bf16) return append(bytes, float_to_bfloat16(static_cast<float>(value)));
  with_type(type, [&](auto to) {
    using To = decltype(to);
    if constexpr (std::is_same_v<To, bool>)
      append(bytes, static_cast<char>(value != 0));
    else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
      append(bytes, static_cast<To>(to_integer(static_cast<double>(value))));
    else
      append(bytes, static_cast<To>(value));
  });
}

template <class T>
HostTensor made_of(ElementType type, const Shape& shape, const std::vector<T>& elements) {
  HostTensor out{type, shape, {}};
  out.bytes.reserve(elements.size() * size_of(type));
  for (const auto value : elements) append_as(out.bytes, type, value);
  return out;
}

/// The shape of a tensor in a file, whose elements are counted without overflow.
Shape checked_shape(const std::vector<std::int64_t>& dims, const std::string& what) {
  std::int64_t count = 1;
  bool is_empty = false;
  if (dims.size() > 64) throw FileError(fmt::format("{} has {} dimensions", what, dims.size()));
  for (const auto extent : dims) {
    if (extent < 0) throw FileError(fmt::format("{} has the negative extent {}", what, extent));
    if (extent == 0) {
      is_empty = true;
      continue;
    }
    if (count > std::numeric_limits<std::int32_t>::max() / extent)
      throw FileError(fmt::format("{} has more than 2^31 - 1 elements", what));
    count *= extent;
  }
  if (is_empty)
    for (const auto extent : dims)
      if (extent > std::numeric_limits<std::int32_t>::max()) throw FileError(fmt::format("{} has an extent of {}", what, extent));
  return Shape(dims);
}

/// External data: a file inside of the model's own folder, reached without links that lead out of it.
std::vector<char> read_external(const TensorData::External& external, const std::filesystem::path& folder, std::uint64_t bytes,
                                const std::string& what) {
  namespace fs = std::filesystem;
  const auto fail = [&](std::string_view reason) {
    throw FileError(fmt::format("{}: its data in {} {}", what, in_quotes(external.location), reason));
  };
  const fs::path location{std::string(external.location)};
  if (external.location.empty() || external.location.find('\0') != std::string_view::npos) fail("has no name of a file");
  if (location.is_absolute()) fail("lies outside of the model's folder");
  for (const auto& part : location)
    if (part == "..") fail("lies outside of the model's folder");
  std::error_code error;
  const auto base = fs::canonical(folder.empty() ? fs::path(".") : folder, error);
  if (error) fail("cannot be found");
  const auto path = fs::canonical(base / location, error);
  if (error) fail("cannot be found");
  const auto [inside, rest] = std::mismatch(base.begin(), base.end(), path.begin(), path.end());
  if (inside != base.end()) fail("leads out of the model's folder");
  const InputFile file(path);
  if (external.length && *external.length != bytes)
    fail(fmt::format("has {} bytes, the tensor needs {}", *external.length, bytes));
  if (external.offset > file.size() || bytes > file.size() - external.offset)
    fail(fmt::format("has {} bytes, the tensor needs {} from byte {}", file.size(), bytes, external.offset));
  std::vector<char> out(bytes);
  file.read_at(external.offset, out.data(), out.size());
  return out;
}

}  // namespace

std::size_t size_of(ElementType type) {
  return with_type(type, [](auto value) { return sizeof value; });
}

bool is_floating(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f64 || type == ElementType::f16 || type == ElementType::bf16;
}

Dtype dtype_of(ElementType type) {
  switch (type) {
    case ElementType::f32: return Dtype::f32;
    case ElementType::f16: return Dtype::f16;
    case ElementType::bf16: return Dtype::bf16;
    case ElementType::f64: return Dtype::f64;
    case ElementType::u8: return Dtype::u8;
    case ElementType::i8: return Dtype::i8;
    case ElementType::u16:
    case ElementType::i16:
    case ElementType::i32: return Dtype::i32;
    case ElementType::u32:
    case ElementType::u64:
    case ElementType::i64: return Dtype::i64;
    case ElementType::boolean: return Dtype::boolean;
    default: throw Unsupported(fmt::format("onnx: elements of type {} are not supported", to_string(type)));
  }
}

ElementType type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return ElementType::f32;
    case Dtype::f16: return ElementType::f16;
    case Dtype::bf16: return ElementType::bf16;
    case Dtype::f64: return ElementType::f64;
    case Dtype::i32: return ElementType::i32;
    case Dtype::i64: return ElementType::i64;
    case Dtype::i8: return ElementType::i8;
    case Dtype::u8: return ElementType::u8;
    case Dtype::boolean: return ElementType::boolean;
  }
  return ElementType::undefined;
}

std::vector<double> HostTensor::numbers() const {
  std::vector<double> out(static_cast<std::size_t>(numel()));
  with_type(type, [&](auto value) {
    using T = decltype(value);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if constexpr (std::is_same_v<T, std::uint16_t>) {
        const auto bits = element<std::uint16_t>(bytes, i);
        out[i] = type == ElementType::f16    ? half_to_float(bits)
                 : type == ElementType::bf16 ? bfloat16_to_float(bits)
                                             : static_cast<double>(bits);
      } else if constexpr (std::is_same_v<T, bool>) {
        out[i] = bytes[i] != 0 ? 1 : 0;
      } else {
        out[i] = static_cast<double>(element<T>(bytes, i));
      }
    }
  });
  return out;
}

std::vector<std::int64_t> HostTensor::integers() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(numel()));
  if (onnx::is_floating(type)) {
    const auto all = numbers();
    std::transform(all.begin(), all.end(), out.begin(), to_integer);
    return out;
  }
  with_type(type, [&](auto value) {
    using T = decltype(value);
    for (std::size_t i = 0; i < out.size(); ++i)
      if constexpr (std::is_same_v<T, bool>)
        out[i] = bytes[i] != 0 ? 1 : 0;
      else
        out[i] = static_cast<std::int64_t>(element<T>(bytes, i));  // NOLINT(bugprone-signed-char-misuse): the sign is kept
  });
  return out;
}

HostTensor HostTensor::of(ElementType type, const Shape& shape, const std::vector<std::int64_t>& elements) {
  return made_of(type, shape, elements);
}
HostTensor HostTensor::of(ElementType type, const Shape& shape, const std::vector<double>& elements) {
  return made_of(type, shape, elements);
}

HostTensor content_of(const TensorData& data, const std::filesystem::path& folder, const std::string& name) {
  const auto what = fmt::format("{}: tensor {}", name, in_quotes(data.name));
  if (data.type == ElementType::undefined) throw FileError(fmt::format("{} has no type", what));
  std::size_t size;
  try {
    size = size_of(data.type);
  } catch (const Unsupported&) {
    throw Unsupported(fmt::format("{} has elements of type {}, which are not supported", what, to_string(data.type)));
  }
  HostTensor out{data.type, checked_shape(data.dims, what), {}};
  const auto count = static_cast<std::uint64_t>(out.numel());
  if (data.external) {
    out.bytes = read_external(*data.external, folder, count * size, what);
  } else if (data.raw) {
    if (data.raw->size() != count * size)
      throw FileError(
          fmt::format("{} {} has {} bytes instead of {}", what, to_string(out.shape), data.raw->size(), count * size));
    out.bytes.assign(data.raw->begin(), data.raw->end());
  } else {
    const auto take = [&](const auto& list) {
      if (list.size() != count)
        throw FileError(fmt::format("{} {} has {} elements instead of {}", what, to_string(out.shape), list.size(), count));
      out.bytes.reserve(count * size);
      with_type(data.type, [&](auto element) {
        using T = decltype(element);
        for (const auto value : list)
          if constexpr (std::is_same_v<T, bool>)
            append(out.bytes, static_cast<char>(value != 0));
          else
            append(out.bytes, static_cast<T>(value));
      });
    };
    switch (data.type) {
      case ElementType::f32: take(data.floats); break;
      case ElementType::f64: take(data.doubles); break;
      case ElementType::i64: take(data.longs); break;
      case ElementType::u32:
      case ElementType::u64: take(data.unsigned_longs); break;
      default: take(data.ints);  // 16-bit floats as their bits
    }
  }
  if (data.type == ElementType::boolean)
    for (auto& byte : out.bytes) byte = static_cast<char>(byte != 0);
  return out;
}

HostTensor content_of(const SparseData& data, const std::filesystem::path& folder, const std::string& name) {
  const auto values = content_of(data.values, folder, name);
  const auto indices = content_of(data.indices, folder, name);
  const auto what = fmt::format("{}: sparse tensor {}", name, in_quotes(data.values.name));
  HostTensor out{values.type, checked_shape(data.dims, what), {}};
  if (out.numel() > (std::int64_t{1} << 26)) throw FileError(fmt::format("{} has more than 2^26 elements", what));
  const auto size = size_of(out.type);
  const auto count = values.numel(), rank = static_cast<std::int64_t>(data.dims.size());
  const bool linear = indices.shape == Shape{count};
  if (values.shape.rank() != 1 || (!linear && !(indices.shape == Shape{count, rank})))
    throw FileError(fmt::format("{} has values {} and indices {}", what, to_string(values.shape), to_string(indices.shape)));
  out.bytes.resize(static_cast<std::size_t>(out.numel()) * size);
  const auto places = indices.integers();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t place = linear ? places[static_cast<std::size_t>(i)] : 0;
    if (!linear)
      for (std::int64_t d = 0; d < rank; ++d) {
        const auto index = places[static_cast<std::size_t>(i * rank + d)], extent = data.dims[static_cast<std::size_t>(d)];
        if (index < 0 || index >= extent) throw FileError(fmt::format("{} has the index {} of {}", what, index, extent));
        place = place * extent + index;
      }
    if (place < 0 || place >= out.numel()) throw FileError(fmt::format("{} has the index {} of {}", what, place, out.numel()));
    std::memcpy(out.bytes.data() + static_cast<std::size_t>(place) * size,
                values.bytes.data() + static_cast<std::size_t>(i) * size, size);
  }
  return out;
}

Tensor to_tensor(const HostTensor& host) {
  const auto dtype = dtype_of(host.type);
  if (clnet::size_of(dtype) == size_of(host.type))
    return Tensor::from_bytes(host.bytes.data(), host.bytes.size(), {host.shape, dtype});
  const auto widened = HostTensor::of(type_of(dtype), host.shape, host.integers());
  return Tensor::from_bytes(widened.bytes.data(), widened.bytes.size(), {host.shape, dtype});
}

HostTensor to_host(const Tensor& tensor, ElementType type) {
  const auto own = type_of(tensor.dtype());
  HostTensor out{own, tensor.shape(), {}};
  out.bytes.resize(static_cast<std::size_t>(tensor.spec().bytes()));
  tensor.to_bytes(out.bytes.data(), out.bytes.size());
  if (own == type || (own == ElementType::i64 && type == ElementType::u64)) {
    out.type = type;
    return out;
  }
  return onnx::is_floating(own) ? HostTensor::of(type, out.shape, out.numbers())
                                : HostTensor::of(type, out.shape, out.integers());
}

}  // namespace clnet::onnx
