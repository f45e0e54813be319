#include "lib/io/checksum.h"

#include <cstddef>
#include <vector>

#include "lib/base/checksum.h"

namespace clnet::io {

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
