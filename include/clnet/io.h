// Weights on disk: safetensors, the format that PyTorch users exchange (https://github.com/huggingface/safetensors).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet::io {

/// Named tensors in a stable order, as Module::state_dict() gives them.
using StateDict = std::vector<std::pair<std::string, Tensor>>;

struct Safetensors {
  StateDict tensors;                            ///< in the order of the file's header
  std::map<std::string, std::string> metadata;  ///< the file's `__metadata__`
};

/// Computes the tensors' values, writes them to a temporary file and renames it: the target is either the old file or the
/// complete new one. The header keeps the order given; in the data, wider dtypes come first, so that all are aligned. Throws
/// FileError, and Error for a name that appears twice, is not UTF-8 or is `__metadata__`.
CLNET_API void save_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                                const std::map<std::string, std::string>& metadata = {});

/// Reads dtypes F32, F16, BF16, F64 (converted to f32), I32, I64, U8 and BOOL. Every size in the file is checked against the
/// file's length before anything is allocated; tensors may sit at unaligned offsets. Throws FileError naming path and reason,
/// also for a file that the format does not allow: names that appear twice, unknown fields, gaps, overlaps, bytes behind the last
/// tensor.
CLNET_API Safetensors load_safetensors(const std::filesystem::path& path);

}  // namespace clnet::io
