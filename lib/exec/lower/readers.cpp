#include "lib/exec/lower/readers.h"

#include <fmt/format.h>

#include "lib/exec/collect/work.h"
#include "lib/graph/op.h"

namespace clnet::exec {

namespace {

std::string how(const Node& node, std::size_t input) {
  return fmt::format("{} {} {}", to_string(node.op->fields()), input, to_string(node.inputs[input].spec()));
}

}  // namespace

Reuse Readers::of(const Node& node, std::size_t input) {
  auto& by_value = by_op_[std::string(node.op->name())];
  if (by_value.empty()) count(node.op->name(), by_value);
  const auto root = root_of(node.inputs[input]).tensor;
  const auto found = by_value.find(key(root));
  if (found == by_value.end()) return {};
  const auto alike = found->second.alike.find(how(node, input));
  if (alike == found->second.alike.end()) return {};
  return {alike->second, node_of(root)->slot && value_of(root) && alike->second == found->second.all};
}

Packed Readers::packed(const Node& node) {
  const auto packed = node.op->tuning(specs_of(node.inputs)).packed;
  if (!packed) return Packed::once;
  const auto input = *packed;
  constexpr std::int64_t many = 4;
  const auto reuse = of(node, input);
  if (reuse.kept || reuse.alike >= many) return Packed::shared;
  const auto root = root_of(node.inputs[input]).tensor;
  return value_of(root) && !node_of(root)->slot ? Packed::leaf : Packed::once;
}

void Readers::count(std::string_view op, std::map<Key, Of>& by_value) const {
  for (const auto& node : nodes_)
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      auto& readers = by_value[key(root_of(node->inputs[i]).tensor)];
      ++readers.all;
      if (node->op->name() == op) ++readers.alike[how(*node, i)];
    }
}

}  // namespace clnet::exec
