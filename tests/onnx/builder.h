// ONNX files for tests, written field by field.
#pragma once

#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/onnx/host_tensor.h"
#include "lib/onnx/write.h"

namespace clnet::test {

using Type = onnx::ElementType;
using onnx::HostTensor;

/// A node's attribute of a type of AttributeProto, as a message; `add` adds the value.
template <class Add>
std::string attribute_of(const std::string& name, int type, const Add& add) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_string(1, name);
  add(writer);
  writer.add_int32(20, type);
  return out;
}
inline std::string attribute(const std::string& name, std::int64_t value) {
  return attribute_of(name, 2, [&](auto& writer) { writer.add_int64(3, value); });
}
inline std::string attribute(const std::string& name, float value) {
  return attribute_of(name, 1, [&](auto& writer) { writer.add_float(2, value); });
}
inline std::string attribute(const std::string& name, const std::vector<std::int64_t>& values) {
  return attribute_of(name, 7, [&](auto& writer) {
    for (const auto value : values) writer.add_int64(8, value);
  });
}
inline std::string attribute(const std::string& name, const std::string& text) {
  return attribute_of(name, 3, [&](auto& writer) { writer.add_string(4, text); });
}
inline std::string graph_attribute(const std::string& name, const std::string& graph) {
  return attribute_of(name, 5, [&](auto& writer) { writer.add_message(6, graph); });
}

/// A graph, and the model around it.
class Builder {
 public:
  Builder& node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                const std::vector<std::string>& attributes = {}, const std::string& domain = {}) {
    std::string message;
    protozero::pbf_writer writer(message);
    for (const auto& input : inputs) writer.add_string(1, input);
    for (const auto& output : outputs) writer.add_string(2, output);
    writer.add_string(3, "the_" + op);
    writer.add_string(4, op);
    for (const auto& each : attributes) writer.add_message(5, each);
    if (!domain.empty()) writer.add_string(7, domain);
    protozero::pbf_writer(graph_).add_message(1, message);
    return *this;
  }
  Builder& initializer(const std::string& name, const Shape& shape, const std::vector<double>& values, Type type = Type::f32) {
    return raw_initializer(onnx::write_tensor(HostTensor::of(type, shape, values), name));
  }
  Builder& raw_initializer(const std::string& message) {
    protozero::pbf_writer(graph_).add_message(5, message);
    return *this;
  }
  Builder& input(const std::string& name, Type type = Type::f32, const std::vector<std::int64_t>& extents = {}) {
    return value(11, name, type, extents);
  }
  Builder& output(const std::string& name, Type type = Type::f32, const std::vector<std::int64_t>& extents = {}) {
    return value(12, name, type, extents);
  }

  const std::string& graph() const { return graph_; }
  std::string model(std::int64_t opset = 18) const {
    std::string out, imported;
    protozero::pbf_writer(imported).add_int64(2, opset);
    protozero::pbf_writer writer(out);
    writer.add_int64(1, 8);
    writer.add_message(8, imported);
    writer.add_message(7, graph_);
    return out;
  }

 private:
  Builder& value(int field, const std::string& name, Type type, const std::vector<std::int64_t>& extents) {
    std::string shape, tensor, kind, message;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      const auto extent = extents[d];
      std::string dimension;
      if (extent < 0)
        protozero::pbf_writer(dimension).add_string(2, d == 0 ? "n" : "n" + std::to_string(d));
      else
        protozero::pbf_writer(dimension).add_int64(1, extent);
      protozero::pbf_writer(shape).add_message(1, dimension);
    }
    protozero::pbf_writer writer(tensor);
    writer.add_int32(1, static_cast<std::int32_t>(type));
    if (!extents.empty()) writer.add_message(2, shape);  // else of any rank
    protozero::pbf_writer(kind).add_message(1, tensor);
    protozero::pbf_writer named(message);
    named.add_string(1, name);
    named.add_message(2, kind);
    protozero::pbf_writer(graph_).add_message(static_cast<protozero::pbf_tag_type>(field), message);
    return *this;
  }

  std::string graph_;
};

}  // namespace clnet::test
