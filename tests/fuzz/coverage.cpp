#include "tests/fuzz/coverage.h"

#include <fmt/format.h>

#include <unordered_map>
#include <vector>

#include "lib/graph/node.h"

namespace clnet::fuzz {

namespace {

/// The value that a reader's input is made of, through reshapes and slices, and how.
std::pair<Tensor, std::string> behind_views(Tensor input) {
  bool reshaped = false, sliced = false;
  while (node_of(input)->op) {
    const auto name = node_of(input)->op->name();
    if (name != "reshape" && name != "slice") break;
    (name == "reshape" ? reshaped : sliced) = true;
    input = node_of(input)->inputs[0];
  }
  return {input, reshaped && sliced ? "reshaped slice" : sliced ? "slice" : reshaped ? "reshaped" : "itself"};
}

}  // namespace

void Coverage::add(std::span<const Tensor> values) {
  std::unordered_map<const Node*, int> readers;
  std::vector<const Node*> order;
  std::vector<const Node*> open;
  std::set<const Node*> known;
  for (const auto& value : values) open.push_back(node_of(value).get());
  while (!open.empty()) {
    const auto* node = open.back();
    open.pop_back();
    if (!known.insert(node).second) continue;
    order.push_back(node);
    for (const auto& input : node->inputs) {
      ++readers[node_of(behind_views(input).first).get()];
      open.push_back(node_of(input).get());
    }
  }
  for (const auto* node : order) {
    if (!node->op) continue;
    for (const auto& input : node->inputs) {
      const auto [source, way] = behind_views(input);
      if (source.numel() == 1 && !node_of(source)->op) continue;  // a number
      const auto from = node_of(source)->op ? std::string(node_of(source)->op->name()) : "a leaf";
      const auto kind = way + (readers[node_of(source).get()] > 1 ? ", one of several readers" : "");
      ++seen_[{from, std::string(node->op->name()), kind, std::string(to_string(source.dtype()))}];
    }
  }
}

void Coverage::add(const Coverage& other) {
  for (const auto& [key, count] : other.seen_) seen_[key] += count;
}

std::string Coverage::summary() const {
  std::set<std::string> ops;
  std::set<std::pair<std::string, std::string>> pairs;
  std::map<std::string, std::set<std::pair<std::string, std::string>>> by_kind;
  for (const auto& [key, count] : seen_) {
    const auto& [from, to, kind, dtype] = key;
    ops.insert(to);
    pairs.insert({from, to});
    by_kind[kind].insert({from, to});
  }
  auto text = fmt::format("coverage: {} operations, {} pairs of operations, {} with kind of alias and dtype\n", ops.size(),
                          pairs.size(), seen_.size());
  for (const auto& [kind, of_kind] : by_kind) text += fmt::format("  {} pairs read as {}\n", of_kind.size(), kind);
  return text;
}

std::string Coverage::list() const {
  std::string text;
  for (const auto& [key, count] : seen_) {
    const auto& [from, to, kind, dtype] = key;
    text += fmt::format("{} -> {}, {}, {}: {}\n", from, to, kind, dtype, count);
  }
  return text;
}

}  // namespace clnet::fuzz
