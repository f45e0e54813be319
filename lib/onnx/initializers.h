// The weights in an ONNX file without its graph: read as arrays in host memory, and replaced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "clnet/data/dataset.h"
#include "lib/onnx/external_data.h"

namespace clnet::onnx {

/// The graph's initializers under their own names, also those in external files; dtypes are those of dtype_of(). Throws
/// FileError, and Unsupported for an element type that clnet lacks.
std::vector<data::Array> read_initializers(const std::filesystem::path& path);

struct Replaced {
  std::size_t replaced = 0, kept = 0;  ///< initializers
  std::vector<std::string> unknown;    ///< arrays without an initializer of their name
  std::string beside;                  ///< the file with data in the target's folder; empty: there is none
};
/// Writes the model with the arrays' values in the place of the initializers of their names. All else stays as it is, to the
/// byte, but for initializers in external files, which come into this one. Of more than `most` bytes all lie beside it, as
/// onnx::save() has it. Data are written one tensor after the other. Throws Error for another shape, for another floating type,
/// for an integer out of the initializer's range, and where no name is that of an initializer.
Replaced replace_initializers(const std::filesystem::path& model, const std::vector<data::Array>& arrays,
                              const std::filesystem::path& target, std::uint64_t most = most_in_model);

}  // namespace clnet::onnx
