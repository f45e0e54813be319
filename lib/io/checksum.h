// Check sums of checkpoints.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "clnet/io.h"

namespace clnet::io {

/// Adds texts and bytes up, each with its length, so that none can pass into the next.
class Checksum {
 public:
  Checksum& add(std::string_view text) { return add(text.data(), text.size()); }
  Checksum& add(const void* data, std::size_t bytes);
  std::string text() const;

 private:
  void update(const void* data, std::size_t bytes);

  unsigned long sum_ = 0;  ///< of nothing
};

/// CRC-32 of everything in a checkpoint but itself: names, shapes, dtypes and values of all tensors and all metadata. It is the
/// metadata called `key`.
std::string checkpoint_checksum(const StateDict& tensors, const std::map<std::string, std::string>& metadata,
                                std::string_view key = "checksum");

}  // namespace clnet::io
