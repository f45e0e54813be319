// A network of one node.
#pragma once

#include <string>
#include <vector>

#include "clnet/onnx.h"
#include "tests/onnx/builder.h"
#include "tests/support/temporary.h"

namespace clnet::test {

/// The builder's network.
inline onnx::Model loaded(const Builder& builder, std::int64_t opset, const onnx::LoadOptions& options = {}) {
  const Folder folder;
  return onnx::load(folder.write("model.onnx", builder.model(opset)), options);
}

/// With inputs x0, x1, ... and outputs y0, y1, ...
inline onnx::Model one_node(const std::string& op, int inputs, const std::vector<std::string>& attributes = {},
                            std::int64_t opset = 27, int outputs = 1) {
  Builder b;
  std::vector<std::string> from, to;
  for (int i = 0; i < inputs; ++i) {
    from.push_back("x" + std::to_string(i));
    b.input(from.back());
  }
  for (int i = 0; i < outputs; ++i) {
    to.push_back("y" + std::to_string(i));
    b.output(to.back());
  }
  b.node(op, from, to, attributes);
  return loaded(b, opset);
}

}  // namespace clnet::test
