#include "lib/exec/lower/narrow.h"

#include <algorithm>
#include <unordered_map>

#include "lib/exec/fuse/elementwise.h"
#include "lib/exec/fuse/fusion.h"

namespace clnet::exec {

namespace {

/// As many elements of its input as its output has, from `start` on.
class Range : public Op {
 public:
  Range(Spec spec, std::int64_t start) : spec_(std::move(spec)), start_(start) {}
  std::string_view name() const override { return "range"; }
  Fields fields() const override { return {{"start", start_}}; }
  Specs infer(const Specs&) const override { return {spec_}; }
  std::optional<Alias> alias(const Specs&, std::size_t) const override { return Alias{0, start_}; }

 private:
  Spec spec_;
  std::int64_t start_;
};

/// A node of which one reader takes a part.
struct Part {
  std::size_t reader;
  std::size_t input;  ///< of the node: the one of which less is read
  Spec range;         ///< of that input
  std::int64_t start;
  std::size_t readers = 0;
};

/// Whether it is less by so much that a kernel feels it.
bool is_less(std::int64_t part, std::int64_t whole) {
  constexpr std::int64_t tile = 64;
  return 2 * part <= whole || (4 * part <= 3 * whole && whole - part >= tile);
}

/// What `reader` takes of its input, as elements of what that is made of that follow one another; nothing where it does not.
std::optional<Part> part_of(const Work& work, std::size_t reader) {
  const auto& node = *work.nodes[reader];
  if (node.inputs.size() != 1) return std::nullopt;
  const auto& whole = node.inputs[0];
  const auto& maker = *node_of(whole);
  if (!maker.op || maker.outputs.size() != 1 || value_of(whole)) return std::nullopt;
  const auto window = window_of(node);
  if (!window) return std::nullopt;
  const auto count = node.outputs[0].shape[window->dim];
  if (count == 0 || !is_less(count, whole.size(window->dim))) return std::nullopt;
  const auto specs = specs_of(maker.inputs);
  const auto part = maker.op->part(specs, *window);
  if (!part) return std::nullopt;
  const auto& from = specs[part->input].shape;
  const auto dim = part->window.dim;
  const bool follows = std::all_of(from.begin(), from.begin() + dim, [](auto extent) { return extent == 1; });
  if (!follows || from.numel() == 0) return std::nullopt;
  return Part{
      reader, part->input, {from.with(dim, count), specs[part->input].dtype}, part->window.start * (from.numel() / from[dim])};
}

}  // namespace

Narrowed::Narrowed(const Work& work, const Options& options) : given_(work) {
  if (!options.fuses) return;
  std::unordered_map<const Node*, Part> parts;  // by what makes the whole
  for (std::size_t k = 0; k < work.nodes.size(); ++k)
    if (auto part = part_of(work, k)) parts.emplace(node_of(work.nodes[k]->inputs[0]).get(), std::move(*part));
  if (parts.empty()) return;
  const auto count = [&](const Tensor& tensor) {
    if (const auto found = parts.find(node_of(tensor).get()); found != parts.end()) ++found->second.readers;
  };
  for (const auto& node : work.nodes)
    for (const auto& input : node->inputs) count(input);
  for (const auto& tensor : work.wanted) count(tensor);
  for (const auto& result : work.kept) count(work.tensor(result));
  std::erase_if(parts, [](const auto& entry) { return entry.second.readers != 1; });
  if (parts.empty()) return;

  narrowed_ = private_copy(work);
  auto nodes = std::move(narrowed_->nodes);
  narrowed_->nodes.clear();
  at_ = nodes;
  std::unordered_map<const Node*, std::shared_ptr<Node>> instead;  // of what reads a part
  const auto replace = [&](Tensor& tensor) {
    if (const auto other = instead.find(node_of(tensor).get()); other != instead.end()) tensor = tensor_of(other->second, 0);
  };
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (instead.count(nodes[k].get())) continue;
    auto& inputs = nodes[k]->inputs;
    std::for_each(inputs.begin(), inputs.end(), replace);
    const auto found = parts.find(work.nodes[k].get());
    if (found == parts.end()) {
      narrowed_->nodes.push_back(nodes[k]);
      continue;
    }
    const auto& part = found->second;
    const InScope scope(nodes[k]->scope);
    auto& input = inputs[part.input];
    const auto range = std::make_shared<Node>(std::make_shared<Range>(part.range, part.start), Tensors{input}, Specs{part.range});
    input = tensor_of(range, 0);
    const auto& reader = nodes[part.reader];
    const auto made = std::make_shared<Node>(nodes[k]->op, std::move(inputs), reader->outputs);
    narrowed_->nodes.insert(narrowed_->nodes.end(), {range, made});
    instead[reader.get()] = made;
    at_[k] = nullptr;
    at_[part.reader] = made;
  }
  std::for_each(narrowed_->wanted.begin(), narrowed_->wanted.end(), replace);
  if (work.kept.empty()) return;
  std::unordered_map<const Node*, std::uint32_t> places;
  for (std::uint32_t k = 0; k < narrowed_->nodes.size(); ++k) places[narrowed_->nodes[k].get()] = k;
  for (const auto& [node, output] : work.kept) narrowed_->kept.push_back({places.at(at_[node].get()), output});
}

Tensor Narrowed::at(std::size_t node, int output) const {
  if (at_.empty()) return tensor_of(given_.nodes[node], output);
  return at_[node] ? tensor_of(at_[node], output) : Tensor();
}

}  // namespace clnet::exec
