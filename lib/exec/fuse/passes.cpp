#include "lib/exec/fuse/passes.h"

#include <algorithm>
#include <utility>

#include "lib/exec/collect/work.h"
#include "lib/exec/fuse/epilogue.h"
#include "lib/graph/op.h"

namespace clnet::exec {

namespace {

using Key = std::pair<const Node*, int>;
Key key(const Tensor& tensor) { return {node_of(tensor).get(), output_of(tensor)}; }

/// What a group leaves behind, if that is one value which it alone makes.
const Tensor* only_output(const Group& group, Tensor& own) {
  if (!group.node || group.before || group.node->outputs.size() != 1) return nullptr;
  if (group.kernel) return group.outputs.size() == 1 ? &group.outputs[0] : nullptr;
  own = tensor_of(group.node, 0);
  return &own;
}

class Finder {
 public:
  Finder(std::span<const Group> groups, std::span<const Tensor> wanted) : groups_(groups) {
    for (std::size_t k = 0; k < groups.size(); ++k) {
      const auto& group = groups[k];
      Tensor own;
      if (const auto* output = only_output(group, own)) makers_[key(*output)] = k;
      // Its own kernel reads the result of the node within it.
      if (group.node)
        for (const auto& input : group.node->inputs) read(input);
      for (const auto* kernel : {&group.kernel, &group.before})
        if (*kernel)
          for (const auto& buffer : (*kernel)->buffers)
            if (!group.node || node_of(buffer) != group.node) read(buffer);
    }
    for (const auto& tensor : wanted) read(tensor);
  }

  /// The group that makes what this one's node reads first, if nothing else reads that, and it may be kept within a kernel.
  std::size_t before(std::size_t k) const {
    const auto& input = groups_[k].node->inputs[0];
    const auto maker = makers_.find(key(input));
    if (maker == makers_.end() || readers_.at(key(input)) != 1 || input.shape().rank() < 2) return none;
    const auto& group = groups_[maker->second];
    if (!group.kernel) return maker->second;
    const auto channels = input.size(1), inner = input.numel() / std::max<std::int64_t>(1, input.size(0) * channels);
    const auto head = tensor_of(group.node, 0);
    const bool joins = group.node->op->fusion(specs_of(group.node->inputs)).epilogue &&
                       FusedEpilogue::possible(*group.kernel, head) &&
                       FusedEpilogue(*group.kernel, head, {}).only_by_channel(channels, inner);
    return joins ? maker->second : none;
  }

  static constexpr std::size_t none = static_cast<std::size_t>(-1);

 private:
  void read(const Tensor& tensor) { ++readers_[key(root_of(tensor).tensor)]; }

  std::span<const Group> groups_;
  std::map<Key, std::size_t> makers_;
  std::map<Key, int> readers_;
};

}  // namespace

Passes::Passes(std::span<const Group> groups, std::span<const Tensor> wanted, const DeviceInfo& device, const Choosing& choosing)
    : inner_(groups.size()) {
  const auto may_end = [](const Group& group) {
    return group.node && !group.before && group.node->op->fusion(specs_of(group.node->inputs)).longest_pass > 1;
  };
  if (!choosing.options.fuses || std::none_of(groups.begin(), groups.end(), may_end)) return;
  const Finder finder(groups, wanted);
  for (std::size_t k = groups.size(); k-- > 0;) {
    if (inner_[k] || !may_end(groups[k])) continue;
    const auto& op = *groups[k].node->op;
    std::vector<std::size_t> chain{k};
    while (chain.size() < op.fusion(specs_of(groups[k].node->inputs)).longest_pass) {
      const auto before = finder.before(chain.front());
      if (before == Finder::none) break;
      chain.insert(chain.begin(), before);
    }
    if (chain.size() == 1) continue;
    std::vector<const Node*> nodes;
    for (auto group : chain) nodes.push_back(groups[group].node.get());
    const auto length = op.pass_length(nodes, device, choosing);
    if (length == 1) continue;
    chain.erase(chain.begin(), chain.end() - static_cast<std::ptrdiff_t>(length));
    for (std::size_t i = 0; i + 1 < length; ++i) inner_[chain[i]] = true;
    passes_.emplace(k, std::move(chain));
  }
}

const std::vector<std::size_t>& Passes::ending_with(std::size_t group) const {
  static const std::vector<std::size_t> nothing;
  const auto found = passes_.find(group);
  return found == passes_.end() ? nothing : found->second;
}

}  // namespace clnet::exec
