// The .npy format (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): magic, version, the length of a
// header, a Python dict of dtype, order and shape, and the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "clnet/data/dataset.h"

namespace clnet::io {

/// Where an array's bytes come from, front to back.
class ByteReader {
 public:
  virtual ~ByteReader() = default;
  /// Fills `target` with up to `bytes` and returns how many; fewer only at the end.
  virtual std::size_t read(void* target, std::size_t bytes) = 0;
  /// No more bytes than this follow.
  virtual std::uint64_t most_left() const = 0;
  /// Throws FileError: "NAME: REASON".
  [[noreturn]] void fail(std::string_view reason) const;

 protected:
  explicit ByteReader(std::string name) : name_(std::move(name)) {}
  ByteReader(const ByteReader&) = default;
  ByteReader(ByteReader&&) = default;
  ByteReader& operator=(const ByteReader&) = default;
  ByteReader& operator=(ByteReader&&) = default;

 private:
  std::string name_;
};

/// The whole array, which takes `most_bytes` of memory at most, with f8 as `doubles`: f64 or f32. Nothing may follow it. Memory
/// grows with the data that arrive.
data::Array read_npy_array(ByteReader& source, std::uint64_t most_bytes, Dtype doubles);

/// All that stands before the data of an array in C order. bf16 counts as f32.
std::string npy_header(const Spec& spec);
/// The data from an array's bytes: bf16 as f32.
std::string npy_data(Dtype dtype, std::string bytes);

}  // namespace clnet::io
