#include "lib/exec/lower/rewrite.h"

#include <algorithm>
#include <utility>

namespace clnet::exec {

std::optional<Subgraph> Rewrite::nodes(const Subgraph&) const { return std::nullopt; }

std::vector<Rewrite::FusedGroups> Rewrite::fused_groups(std::span<const Group>, const Subgraph&, const DeviceInfo&,
                                                        const Choosing&) const {
  return {};
}

std::vector<const Rewrite*> rewrites_of(const Subgraph& graph) {
  std::vector<const Rewrite*> all;
  for (const auto& node : graph.nodes())
    if (const auto* rewrite = node->op->rewrite(); rewrite && std::find(all.begin(), all.end(), rewrite) == all.end())
      all.push_back(rewrite);
  return all;
}

Subgraph rewritten(Subgraph graph, const Options& options) {
  if (!options.fuses) return graph;
  for (const auto* rewrite : rewrites_of(graph))
    if (auto other = rewrite->nodes(graph)) graph = std::move(*other);
  return graph;
}

}  // namespace clnet::exec
