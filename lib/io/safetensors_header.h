// The header of a safetensors file: 8 bytes little-endian length, then that much JSON, then the tensors' bytes without a gap.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/dtype.h"
#include "clnet/shape.h"
#include "lib/base/input_file.h"

namespace clnet::io {

/// The JSON is never longer than this, and no writer of the format makes it so.
inline constexpr std::uint64_t most_header_bytes = 100'000'000;

/// A tensor in a file. `begin` and `end` count from the end of the header.
struct StoredTensor {
  std::string name;
  Spec spec;  ///< as it is loaded
  std::uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  ///< in the header's order
  std::map<std::string, std::string> metadata;
  std::uint64_t data_offset = 0;  ///< of the data in the file, set by read_header()
};

/// Checks everything there is to check without the data: JSON and its form, names, dtypes, shapes, and that the tensors fill
/// `data_bytes` without a gap or an overlap. Throws FileError; the text does not name the file.
SafetensorsHeader parse_header(std::string_view json, std::uint64_t data_bytes);

/// The header of a file, checked as above and against the file's length. Throws FileError with path and reason.
SafetensorsHeader read_header(const InputFile& file);

/// What stands before the data, the length included; the data begin at a multiple of 8. Throws Error for a name that cannot be
/// written and for a header that is too long.
std::string write_header(std::span<const StoredTensor> tensors, const std::map<std::string, std::string>& metadata);

}  // namespace clnet::io
