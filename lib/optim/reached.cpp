#include "lib/optim/reached.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "clnet/error.h"
#include "lib/graph/node.h"
#include "lib/graph/slot.h"

namespace clnet::optim {

namespace {

/// The values of slots that a gradient of the loss may arrive at, by the slot's id.
std::unordered_map<std::uint64_t, std::vector<Tensor>> leaves_by_slot(const Tensor& loss) {
  std::unordered_map<std::uint64_t, std::vector<Tensor>> result;
  std::unordered_set<const Node*> seen{loss.node().get()};
  std::vector<Tensor> open{loss};
  while (!open.empty()) {
    const auto tensor = std::move(open.back());
    open.pop_back();
    if (const auto slot = tensor.node()->slot; slot != 0) {
      result[slot].push_back(tensor);
      continue;
    }
    if (tensor.node()->op && tensor.node()->op->name() == "stop_gradient") continue;
    for (const auto& input : tensor.node()->inputs)
      if (is_floating(input.dtype()) && seen.insert(input.node().get()).second) open.push_back(input);
  }
  return result;
}

}  // namespace

std::vector<Tensor> reached_leaves(std::string_view optimizer, const Tensor& loss, const nn::NamedParameters& parameters) {
  const auto reached = leaves_by_slot(loss);
  std::vector<Tensor> leaves(parameters.size());
  std::size_t frozen = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, parameter] = parameters[i];
    if (parameter.frozen()) {
      ++frozen;
      continue;
    }
    const auto found = reached.find(parameter.slot()->id);
    if (found == reached.end()) continue;
    if (found->second.size() > 1)
      throw Error(
          fmt::format("{}: the loss was made with {} different values of {}, before and after a change; detach() what the other "
                      "ones gave",
                      optimizer, found->second.size(), name));
    leaves[i] = found->second[0];
  }
  if (std::none_of(leaves.begin(), leaves.end(), [](const Tensor& leaf) { return leaf.defined(); }))
    throw Error(fmt::format("{}: the loss depends on none of its {} parameters{}{}; it may be another model's", optimizer,
                            parameters.size(), parameters.empty() ? "" : fmt::format(" ({} is the first)", parameters[0].first),
                            frozen == 0 ? "" : fmt::format(" but perhaps {} frozen ones", frozen)));
  return leaves;
}

}  // namespace clnet::optim
