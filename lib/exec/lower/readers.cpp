#include "lib/exec/lower/readers.h"

#include <fmt/format.h>

#include "lib/graph/op.h"

namespace clnet::exec {

namespace {

std::string how(const Node& node, std::size_t input) {
  return fmt::format("{} {} {}", to_string(node.op->fields()), input, to_string(node.inputs[input].spec()));
}

}  // namespace

EqualReaders Readers::of(const Node& node, std::size_t input) {
  auto& by_value = by_op_[std::string(node.op->name())];
  if (by_value.empty()) by_value = count(node.op->name());
  const auto root = graph_.root(node.inputs[input]).value;
  const auto& found = by_value[root];
  const auto alike = found.alike.find(how(node, input));
  if (alike == found.alike.end()) return {};
  const bool of_slot = graph_.is_leaf(root) && node_of(graph_.leaves()[root])->slot != 0;
  return {alike->second, of_slot && alike->second == found.all};
}

Packed Readers::packed(const Node& node) {
  const auto packed = node.op->tuning(specs_of(node.inputs)).packed;
  if (!packed) return Packed::once;
  const auto input = *packed;
  constexpr std::int64_t many = 4;
  const auto readers = of(node, input);
  if (readers.lasting || readers.alike >= many) return Packed::shared;
  const auto root = graph_.root(node.inputs[input]).value;
  return graph_.is_leaf(root) && node_of(graph_.leaves()[root])->slot == 0 ? Packed::leaf : Packed::once;
}

std::vector<Readers::Of> Readers::count(std::string_view op) const {
  std::vector<Of> by_value(graph_.value_count());
  for (const auto& node : graph_.nodes())
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      auto& readers = by_value[graph_.root(node->inputs[i]).value];
      ++readers.all;
      if (node->op->name() == op) ++readers.alike[how(*node, i)];
    }
  return by_value;
}

}  // namespace clnet::exec
