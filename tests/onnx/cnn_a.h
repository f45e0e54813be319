// cnn_a of the reference trainings, as an ONNX file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "clnet/io.h"
#include "tests/onnx/builder.h"

namespace clnet::test {

/// With weights from a safetensors file.
inline std::string cnn_a_file(const std::filesystem::path& weights) {
  Builder b;
  const auto state = io::load_safetensors(weights);
  for (const auto& [name, tensor] : state.tensors) b.initializer(name, tensor.shape(), tensor.to_vector<double>());
  const auto pads = attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  const std::vector<std::string> pool{attribute("kernel_shape", std::vector<std::int64_t>{2, 2}),
                                      attribute("strides", std::vector<std::int64_t>{2, 2})};
  b.input("input", Type::f32, {-1, 1, 28, 28}).output("logits");
  b.node("Conv", {"input", "conv1.weight", "conv1.bias"}, {"a"}, {pads}).node("Relu", {"a"}, {"b"});
  b.node("MaxPool", {"b"}, {"c"}, pool);
  b.node("Conv", {"c", "conv2.weight", "conv2.bias"}, {"d"}, {pads}).node("Relu", {"d"}, {"e"});
  b.node("MaxPool", {"e"}, {"f"}, pool).node("Flatten", {"f"}, {"g"});
  b.node("Gemm", {"g", "fc.weight", "fc.bias"}, {"logits"}, {attribute("transB", std::int64_t{1})});
  return b.model();
}

}  // namespace clnet::test
