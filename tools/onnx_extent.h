// Extents of an ONNX network's inputs, as onnx::ValueInfo has them.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

namespace clnet::tools {

/// The number of an extent; 0: it is open, and has a name or nothing.
inline std::int64_t number_of(const std::string& extent) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(extent.data(), extent.data() + extent.size(), value);
  return code == std::errc() && end == extent.data() + extent.size() && value > 0 ? value : 0;
}

}  // namespace clnet::tools
