#include "lib/exec/plan/key.h"

#include <fmt/format.h>

#include <typeinfo>

#include "lib/exec/collect/value.h"
#include "lib/graph/op.h"

namespace clnet::exec {

namespace {

class Writer {
 public:
  explicit Writer(std::size_t expected = 0) { text_.reserve(expected); }
  template <class T>
  void raw(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    raw(value.size());
    text_.append(value);
  }
  void spec(const Spec& value) {
    raw(static_cast<unsigned char>(value.dtype));
    raw(static_cast<unsigned char>(value.shape.rank()));
    for (auto extent : value.shape) raw(extent);
  }
  void field(const Field& value) {
    raw(static_cast<unsigned char>(value.index()));
    std::visit(
        [&](const auto& content) {
          using T = std::decay_t<decltype(content)>;
          if constexpr (std::is_same_v<T, std::string>) {
            text(content);
          } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
            raw(content.size());
            for (auto element : content) raw(element);
          } else {
            raw(content);
          }
        },
        value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::string plan_key(const Work& work, const Options& options) {
  constexpr std::size_t usual = 128;  // bytes per node
  Writer key(usual * (work.nodes.size() + work.leaves.size()));
  key.text(options.key());
  key.raw(work.leaves.size());
  for (std::size_t i = 0; i < work.leaves.size(); ++i) {
    key.spec(work.leaves[i].spec());
    key.raw(is_host_scalar(work.leaves[i], work.values[i].get()));
    key.raw(node_of(work.leaves[i])->slot != 0);  // solvers prepack parameters
  }
  for (std::size_t k = 0; k < work.nodes.size(); ++k) {
    const auto& node = *work.nodes[k];
    // The operation's class is part of the key: names are for people only.
    const auto& op = *node.op;
    key.raw(&typeid(op));
    key.text(op.name());
    const auto fields = op.fields();
    key.raw(fields.size());
    for (const auto& [name, value] : fields) key.field(value);
    key.raw(node.inputs.size());
    for (const auto value : work.reads_of(k)) key.raw(value);
    key.raw(node.outputs.size());
    for (const auto& output : node.outputs) key.spec(output);
  }
  for (const auto result : work.results) key.raw(result);
  key.raw(work.results.size());
  for (const auto& [node, output] : work.speculative) {
    key.raw(node);
    key.raw(output);
  }
  return key.take();
}

std::vector<std::string> describe(const Work& work) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < work.leaves.size(); ++i)
    lines.push_back(fmt::format("input {}: {}{}", i, to_string(work.leaves[i].spec()),
                                is_host_scalar(work.leaves[i], work.values[i].get()) ? ", a scalar of the host" : ""));
  for (const auto& node : work.nodes) {
    const auto fields = to_string(node->op->fields());
    std::string outputs;
    for (const auto& output : node->outputs) outputs += (outputs.empty() ? "" : ", ") + to_string(output);
    lines.push_back(fmt::format("{}{}{} -> {}", node->op->name(), fields.empty() ? "" : " ", fields, outputs));
  }
  return lines;
}

}  // namespace clnet::exec
