// save() with a limit that tests reach.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "clnet/onnx.h"

namespace clnet::onnx {

/// What a message of protobuf holds, less what nodes and names may take.
constexpr std::uint64_t most_in_model = (std::uint64_t{1} << 31) - (std::uint64_t{1} << 26);

/// Tensors lie beside the model where they have more than `most` bytes.
void save_within(const Function& function, const std::vector<Tensor>& examples, const std::filesystem::path& path,
                 const SaveOptions& options, nn::Module* parameters, std::uint64_t most);

}  // namespace clnet::onnx
