// Tensors on disk: safetensors, a common format of PyTorch users (https://github.com/huggingface/safetensors), PyTorch's own
// checkpoints, and NumPy's files.
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

/// The contents of a safetensors file.
struct Safetensors {
  StateDict tensors;                            ///< in the order of the file's header
  std::map<std::string, std::string> metadata;  ///< the file's `__metadata__`
};

/// Computes the values, writes a temporary file and renames it: the target is either the old file or the complete new one. The
/// header keeps the given order. The data begins with the widest dtypes, so that all tensors are aligned. Throws FileError where
/// the file cannot be written. Throws Error for a name that appears twice, is not UTF-8 or is `__metadata__`.
CLNET_API void save_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                                const std::map<std::string, std::string>& metadata = {});

/// Reads dtypes F32, F16, BF16, F64, I32, I64, I8, U8 and BOOL. All sizes are checked against the file's
/// length before memory is allocated. Tensors may begin at unaligned offsets. Throws FileError with path and reason, also for a
/// file that the format forbids: duplicate names, unknown fields, gaps, overlaps, bytes after the last tensor.
CLNET_API Safetensors load_safetensors(const std::filesystem::path& path);

/// Options of load_torch().
struct LoadTorchOptions {
  std::string key;  ///< only tensors below this key, as "state_dict" or "ema.model", with the rest of their names
};
/// The tensors in a checkpoint of PyTorch, a file of torch.save() since version 1.6. Nested dicts and lists become names with
/// dots; values that are no tensors are left out. Dtypes: all of clnet's; int16 and uint16 become i32, uint32 and uint64 become
/// i64.
///
/// Nothing in the file is executed: only globals of state dicts are known. Throws FileError with path and reason for a file that
/// is damaged or big-endian, that holds objects of other classes, has no tensor below the key, or takes more memory than 128 MiB
/// and eight times its size.
CLNET_API StateDict load_torch(const std::filesystem::path& path, const LoadTorchOptions& options = {});
/// Writes a file that torch.load(path, weights_only=True) reads as an OrderedDict, by a temporary file as save_safetensors().
/// Throws Error for a name that appears twice, and FileError where the file cannot be written.
CLNET_API void save_torch(const std::filesystem::path& path, const StateDict& tensors);

/// Reads weights by the file's ending: .safetensors, .npz, or .pt, .pth, .ckpt and .bin of PyTorch. Throws Error for another
/// ending, and as the format's own function.
///   model.load_state_dict(io::load_state("resnet18.pth"));
CLNET_API StateDict load_state(const std::filesystem::path& path);
/// Writes weights by the file's ending, as load_state().
CLNET_API void save_state(const std::filesystem::path& path, const StateDict& tensors);

/// Writes a .npy file of version 1.0 in C order, by a temporary file as save_safetensors(). bf16 is written as f4, as NumPy has
/// no such dtype.
CLNET_API void save_npy(const std::filesystem::path& path, const Tensor& tensor);
/// The array in a .npy file. Dtypes and errors are those of data::read_npy().
CLNET_API Tensor load_npy(const std::filesystem::path& path, Dtype doubles = Dtype::f64);

/// Options of save_npz().
struct NpzOptions {
  bool compressed = false;  ///< deflated, as by numpy.savez_compressed()
};
/// Writes a .npz file with a member for each tensor, as numpy.savez(). Throws Error for a name that is empty or given twice, and
/// FileError where the file cannot be written.
CLNET_API void save_npz(const std::filesystem::path& path, const StateDict& tensors, const NpzOptions& options = {});
/// The arrays in a .npz file. Dtypes, limits and errors are those of data::read_npz().
CLNET_API StateDict load_npz(const std::filesystem::path& path, Dtype doubles = Dtype::f64);

}  // namespace clnet::io
