// save() with a limit that tests reach.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "clnet/onnx.h"

namespace clnet::onnx {

/// Tensors lie beside the model where they have more than `most` bytes.
void save_within(const Function& function, const std::vector<Tensor>& examples, const std::filesystem::path& path,
                 const SaveOptions& options, nn::Module* parameters, std::uint64_t most);

}  // namespace clnet::onnx
