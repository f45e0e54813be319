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

/// What a message of protobuf holds, less what nodes and names may take. Tensors of more bytes lie beside the model.
constexpr std::uint64_t most_in_model = (std::uint64_t{1} << 31) - (std::uint64_t{1} << 26);
/// Bytes of a file, a message of protobuf.
constexpr std::uint64_t largest_model = (std::uint64_t{1} << 31) - 1;

class ExternalData {
 public:
  /// Of the model in this file: the data lie beside it, under its name with ".data" behind.
  explicit ExternalData(std::filesystem::path model) : model_(std::move(model)) {}

  /// Adds a tensor, unless it is so small that it belongs into the model. Returns its TensorProto.
  std::string add(std::string_view name, const Tensor& tensor);
  std::string add(std::string_view name, const HostTensor& tensor);
  /// The same of what `content` gives when it is written.
  std::string add(std::string_view name, ElementType type, const Shape& shape, std::function<HostTensor()> content);

  bool is_empty() const { return pieces_.empty(); }
  /// The file's name in the model's folder.
  std::string location() const { return model_.filename().string() + ".data"; }
  /// Writes the data, one tensor after the other, and then the model by `write_model`: a model without its data is none. Throws
  /// what that throws, and FileError. A file of data that there was not before is removed then.
  void write(const std::function<void()>& write_model) const;

 private:
  struct Piece {
    std::uint64_t offset;
    std::function<HostTensor()> content;
  };
  void write_data(const std::filesystem::path& path) const;

  std::filesystem::path model_;
  std::vector<Piece> pieces_;
  std::uint64_t end_ = 0;
};

}  // namespace clnet::onnx
