// The pickle in a checkpoint of PyTorch: a program for a machine with a stack, which Python would run. This machine runs nothing:
// it knows the opcodes and the few globals that state dicts need, and refuses all others by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lib/io/convert_values.h"

namespace clnet::io {

/// An element type of PyTorch, and how clnet stores it.
struct TorchType {
  std::string_view storage;  ///< "FloatStorage"; empty: a tensor names its dtype, and its storage is untyped
  std::string_view dtype;    ///< "float32"
  std::size_t bytes = 0;     ///< of an element in the file
  Dtype stored_as = Dtype::f32;
  ConvertValues convert = nullptr;
};
/// The type that writes a dtype.
const TorchType& torch_type_of(Dtype dtype);

/// A tensor as the pickle describes it. Its elements are in a member of the archive.
struct PickledTensor {
  std::string name;  ///< keys of nested dicts, joined by dots
  const TorchType* type = nullptr;
  std::string_view storage;  ///< the key of the storage; points into the pickle
  std::uint64_t storage_bytes = 0;
  std::uint64_t offset = 0;                    ///< of the first element, in elements
  std::vector<std::int64_t> extents, strides;  ///< strides in elements
};

struct PickledState {
  std::vector<PickledTensor> tensors;  ///< in the order of the dicts
  std::size_t others = 0;              ///< values that are no tensors
};

/// What is wrong with a pickle, without the file's name.
struct PickleFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The tensors of a pickle. Those whose names begin with `key` and a dot, without that; all where it is empty. Strides are
/// checked against the storages' sizes. Throws PickleFault.
PickledState read_state_pickle(std::string_view pickle, std::string_view key);

}  // namespace clnet::io
