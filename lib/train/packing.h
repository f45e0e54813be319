// What rank 0 tells the others, as bytes that are written and read in the same order. All of it is inline, for programs outside
// of the library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/data/dataset.h"
#include "clnet/dist.h"
#include "clnet/error.h"
#include "clnet/tensor.h"

namespace clnet::train {

class Packer {
 public:
  void number(std::int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view text) {
    number(static_cast<std::int64_t>(text.size()));
    bytes_ += text;
  }
  void shape(const Shape& shape) {
    number(shape.rank());
    for (const auto extent : shape.extents()) number(extent);
  }
  void value(const Tensor& tensor) {
    const auto& spec = tensor.spec();
    number(static_cast<std::int64_t>(spec.dtype));
    shape(spec.shape);
    const auto at = bytes_.size(), size = static_cast<std::size_t>(spec.bytes());
    bytes_.resize(at + size);
    tensor.to_bytes(bytes_.data() + at, size);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}
  std::int64_t number() {
    std::int64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(static_cast<std::size_t>(number()))); }
  Shape shape() {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(number()));
    for (auto& extent : extents) extent = number();
    return Shape(std::move(extents));
  }
  data::Array value() {
    const auto dtype = static_cast<Dtype>(number());
    data::Array array(shape(), dtype);
    const auto bytes = take(array.bytes.size());
    std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), array.bytes.begin());
    return array;
  }

 private:
  std::string_view take(std::size_t size) {
    if (size > left_.size()) throw Error("a message of another rank is too short");
    const auto taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  std::string_view left_;
};

/// The rank that has the data.
constexpr int has_data = 0;

/// What a message is about.
enum class Sent : std::int64_t { content, end, failure };

inline std::string told(const std::exception& error) {
  Packer packer;
  packer.number(static_cast<std::int64_t>(Sent::failure));
  packer.text(error.what());
  return packer.take();
}
/// Throws what it tells of.
inline Sent kind_of(Unpacker& unpacker) {
  const auto kind = static_cast<Sent>(unpacker.number());
  if (kind == Sent::failure) throw Error(unpacker.text());
  return kind;
}

inline dist::HostArray host_array(std::string& text) { return {Dtype::u8, text.data(), text.size()}; }

/// Bytes that rank 0 makes, on all ranks. What it throws is thrown on all of them; the others throw Error with its text.
inline std::string from_first(const dist::Group& group, const std::function<std::string()>& make) {
  std::string message;
  std::exception_ptr failed;
  if (group.rank() == has_data) {
    try {
      Packer packer;
      packer.number(static_cast<std::int64_t>(Sent::content));
      packer.text(make());
      message = packer.take();
    } catch (const std::exception& error) {
      failed = std::current_exception();
      message = told(error);
    }
  }
  std::vector<std::int64_t> size{static_cast<std::int64_t>(message.size())};
  dist::broadcast(size, has_data, group);
  message.resize(static_cast<std::size_t>(size[0]));
  dist::broadcast(host_array(message), has_data, group);
  if (failed) std::rethrow_exception(failed);
  Unpacker unpacker(message);
  (void)kind_of(unpacker);
  return unpacker.text();
}

}  // namespace clnet::train
