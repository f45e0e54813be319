#include "lib/exec/collect/subgraph.h"

#include <string_view>
#include <utility>

namespace clnet::exec {

namespace {

class CopyOfView : public Op {
 public:
  std::string_view name() const override { return "copy"; }
  Specs infer(const Specs& inputs) const override { return inputs; }
  Expression expr(const Specs&) const override { return {"a"}; }
};

bool shows_little(const Tensor& tensor) { return 4 * tensor.spec().bytes() < root_of(tensor).tensor.spec().bytes(); }

}  // namespace

Subgraph::Subgraph(const Work& work) {
  auto own = private_copy(work);
  leaves_ = std::move(own.leaves);
  wanted_ = std::move(own.wanted);
  for (const auto& result : work.speculative) speculative_.push_back({tensor_of(own.nodes[result.node], result.output), result});
  std::vector<std::shared_ptr<Node>> copies(work.value_count());  // copies of small wanted views
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (!shows_little(wanted_[i])) continue;
    auto& copy = copies[work.results[i]];
    if (!copy) copy = std::make_shared<Node>(std::make_shared<CopyOfView>(), Tensors{wanted_[i]}, Specs{wanted_[i].spec()});
    wanted_[i] = tensor_of(copy, 0);
  }
  for (std::size_t k = 0; k < own.nodes.size(); ++k) {
    nodes_.push_back(own.nodes[k]);
    for (auto value = work.first_outputs[k]; value < work.first_outputs[k + 1]; ++value)
      if (copies[value]) nodes_.push_back(copies[value]);
  }
  number();
}

Subgraph::Subgraph(std::vector<std::shared_ptr<Node>> nodes, std::vector<Tensor> leaves, std::vector<Tensor> wanted,
                   std::vector<SpeculativeOutput> speculative)
    : nodes_(std::move(nodes)), leaves_(std::move(leaves)), wanted_(std::move(wanted)), speculative_(std::move(speculative)) {
  number();
}

void Subgraph::number() {
  ValueNumber next = 0;
  for (const auto& leaf : leaves_) {
    node_of(leaf)->number = next;
    roots_.push_back({next++, 0});
  }
  producers_.assign(leaves_.size(), none);
  for (NodeNumber k = 0; k < nodes_.size(); ++k) {
    auto& node = *nodes_[k];
    node.number = next;
    producers_.resize(producers_.size() + node.outputs.size(), k);
    for (std::size_t i = 0; i < node.outputs.size(); ++i, ++next) {
      if (node.aliases.empty() || !node.aliases[i]) {
        roots_.push_back({next, 0});
        continue;
      }
      const auto& [input, offset] = *node.aliases[i];
      const auto base = roots_[number(node.inputs[input])];
      roots_.push_back({base.value, base.offset + offset});
    }
  }

  first_uses_.assign(next + 1, 0);
  for (const auto& node : nodes_)
    for (const auto& input : node->inputs) ++first_uses_[number(input) + 1];
  for (ValueNumber value = 0; value < next; ++value) first_uses_[value + 1] += first_uses_[value];
  uses_.resize(first_uses_[next]);
  auto places = first_uses_;
  for (NodeNumber k = 0; k < nodes_.size(); ++k)
    for (std::size_t i = 0; i < nodes_[k]->inputs.size(); ++i) uses_[places[number(nodes_[k]->inputs[i])]++] = {k, i};

  wants_.resize(next);
  is_speculative_.resize(next);
  for (const auto& tensor : wanted_) wants_[number(tensor)] = true;
  for (const auto& speculative : speculative_) is_speculative_[number(speculative.tensor)] = true;
}

std::span<const Subgraph::Use> Subgraph::uses(ValueNumber value) const {
  return std::span(uses_).subspan(first_uses_[value], first_uses_[value + 1] - first_uses_[value]);
}

Rebuilding::Rebuilding(const Subgraph& from) : from_(from), now_(from.leaves()) { now_.resize(from.value_count()); }

void Rebuilding::copy(NodeNumber k) {
  const auto& node = *from_.nodes()[k];
  Tensors inputs;
  for (const auto& input : node.inputs) inputs.push_back(now(input));
  put(k, std::make_shared<Node>(node, std::move(inputs)));
}

void Rebuilding::put(NodeNumber k, std::shared_ptr<Node> node) {
  const auto first = from_.nodes()[k]->number;
  for (std::size_t i = 0; i < node->outputs.size(); ++i) now_[first + i] = tensor_of(node, static_cast<int>(i));
  add(std::move(node));
}

Subgraph Rebuilding::finish() && {
  std::vector<Tensor> wanted;
  for (const auto& tensor : from_.wanted()) wanted.push_back(now(tensor));
  std::vector<Subgraph::SpeculativeOutput> speculative;
  for (const auto& [tensor, of] : from_.speculative())
    if (const auto& there = now(tensor); there.defined()) speculative.push_back({there, of});
  return {std::move(nodes_), from_.leaves(), std::move(wanted), std::move(speculative)};
}

}  // namespace clnet::exec
