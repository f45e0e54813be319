// Tensors in host memory with ONNX's element types: what files hold, and what shapes are computed from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "clnet/tensor.h"
#include "lib/onnx/file.h"

namespace clnet::onnx {

/// Bytes of one element. Throws Unsupported for strings, complex numbers and types of less than 16 bits that are no u8 or i8.
std::size_t size_of(ElementType type);
bool is_floating(ElementType type);
/// The dtype that stores it: i32 holds 16-bit integers, i64 holds u32 and u64. Throws Unsupported as size_of().
Dtype dtype_of(ElementType type);
/// The type of ONNX that a dtype is without further knowledge.
ElementType type_of(Dtype dtype);

struct HostTensor {
  ElementType type = ElementType::f32;
  Shape shape;
  std::vector<char> bytes;  ///< elements in row-major order, as the type stores them

  std::int64_t numel() const { return shape.numel(); }
  /// All elements; floats are truncated.
  std::vector<std::int64_t> integers() const;
  std::vector<double> numbers() const;

  static HostTensor of(ElementType type, const Shape& shape, const std::vector<std::int64_t>& elements);
  static HostTensor of(ElementType type, const Shape& shape, const std::vector<double>& elements);
};

/// The content of a tensor in a file; external data lies in `folder` or below. Sizes are checked against the data before memory
/// is taken. Throws FileError, which begins with `name`.
HostTensor content_of(const TensorData& data, const std::filesystem::path& folder, const std::string& name);
HostTensor content_of(const SparseData& data, const std::filesystem::path& folder, const std::string& name);

/// On the device, as dtype_of() says.
Tensor to_tensor(const HostTensor& host);
/// The values of a tensor as this type; integers wrap around.
HostTensor to_host(const Tensor& tensor, ElementType type);

}  // namespace clnet::onnx
