// Tensors of a saved network that lie in a file beside it, as the format has it for models of more than 2 GiB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/onnx/host_tensor.h"

namespace clnet::onnx {

class ExternalData {
 public:
  /// `location`: the file's name in the model's folder.
  explicit ExternalData(std::string location) : location_(std::move(location)) {}

  /// Adds a tensor, unless it is so small that it belongs into the model. Returns its TensorProto.
  std::string add(std::string_view name, const Tensor& tensor);
  std::string add(std::string_view name, const HostTensor& tensor);

  bool is_empty() const { return pieces_.empty(); }
  /// One tensor after the other is read and written. Throws FileError, and leaves the old file then.
  void write(const std::filesystem::path& folder) const;
  std::filesystem::path path(const std::filesystem::path& folder) const { return folder / location_; }

 private:
  struct Piece {
    std::uint64_t offset;
    std::function<HostTensor()> content;
  };
  std::string place(std::string_view name, ElementType type, const Shape& shape, std::uint64_t bytes,
                    std::function<HostTensor()> content);

  std::string location_;
  std::vector<Piece> pieces_;
  std::uint64_t end_ = 0;
};

}  // namespace clnet::onnx
