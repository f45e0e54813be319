#include "lib/io/checksum.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <vector>

namespace clnet::io {

void Checksum::update(const void* data, std::size_t bytes) {
  // zlib takes a null pointer, which an empty vector has, for the wish to begin anew.
  if (bytes != 0) sum_ = ::crc32_z(sum_, static_cast<const Bytef*>(data), bytes);
}

Checksum& Checksum::add(const void* data, std::size_t bytes) {
  const std::uint64_t length = bytes;
  update(&length, sizeof length);
  update(data, bytes);
  return *this;
}

std::string Checksum::text() const { return fmt::format("{:08x}", sum_); }

std::string checkpoint_checksum(const StateDict& tensors, const std::map<std::string, std::string>& metadata,
                                std::string_view key) {
  Checksum sum;
  for (const auto& [name, value] : metadata)
    if (name != key) sum.add(name).add(value);
  std::vector<std::byte> bytes;
  for (const auto& [name, tensor] : tensors) {
    bytes.resize(static_cast<std::size_t>(tensor.spec().bytes()));
    tensor.to_bytes(bytes.data(), bytes.size());
    sum.add(name).add(to_string(tensor.spec())).add(bytes.data(), bytes.size());
  }
  return sum.text();
}

}  // namespace clnet::io
