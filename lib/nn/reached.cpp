#include "lib/nn/reached.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "clnet/error.h"
#include "lib/graph/node.h"
#include "lib/graph/op.h"
#include "lib/nn/parameter.h"

namespace clnet::nn {

namespace {

/// The values of slots that a gradient of the loss may reach, by the slot's id.
std::unordered_map<std::uint64_t, std::vector<Tensor>> leaves_by_slot(const Tensor& loss) {
  std::unordered_map<std::uint64_t, std::vector<Tensor>> result;
  std::unordered_set<const Node*> seen{node_of(loss).get()};
  std::vector<const Tensor*> open{&loss};  // the loss keeps them
  while (!open.empty()) {
    const auto& tensor = *open.back();
    open.pop_back();
    if (const auto slot = node_of(tensor)->slot; slot != 0) {
      result[slot].push_back(tensor);
      continue;
    }
    if (!node_of(tensor)->op) continue;
    for (const auto& input : differentiated(*node_of(tensor)))
      if (is_floating(input.dtype()) && seen.insert(node_of(input).get()).second) open.push_back(&input);
  }
  return result;
}

}  // namespace

std::vector<Tensor> leaves_of(std::string_view who, const Tensor& loss, const NamedParameters& parameters) {
  const auto reached = leaves_by_slot(loss);
  std::vector<Tensor> leaves;
  for (const auto& [name, parameter] : parameters) {
    auto& leaf = leaves.emplace_back();
    const auto found = reached.find(slot_of(parameter)->id);
    if (found == reached.end()) continue;
    if (found->second.size() > 1)
      throw Error(
          fmt::format("{}: the loss was made with {} different values of {}, before and after a change; detach() what the other "
                      "ones gave",
                      who, found->second.size(), name));
    leaf = found->second[0];
  }
  return leaves;
}

std::vector<Tensor> reached_leaves(std::string_view optimizer, const Tensor& loss, const NamedParameters& parameters) {
  NamedParameters moving;
  moving.reserve(parameters.size());
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].second.frozen()) continue;
    moving.push_back(parameters[i]);
    places.push_back(i);
  }
  auto leaves = leaves_of(optimizer, loss, moving);
  if (std::none_of(leaves.begin(), leaves.end(), [](const Tensor& leaf) { return leaf.defined(); })) {
    if (moving.empty() && !parameters.empty())
      throw Error(fmt::format("{}: all of its {} parameters are frozen ({} is the first)", optimizer, parameters.size(),
                              parameters[0].first));
    const auto frozen = parameters.size() - moving.size();
    throw Error(fmt::format(
        "{}: the loss depends on none of its {} parameters{}{}; it may be another model's, or come from a compiled function, "
        "through which no gradient flows",
        optimizer, parameters.size(), parameters.empty() ? "" : fmt::format(" ({} is the first)", parameters[0].first),
        frozen == 0 ? "" : fmt::format(" but perhaps {} frozen ones", frozen)));
  }
  std::vector<Tensor> result(parameters.size());
  for (std::size_t i = 0; i < places.size(); ++i) result[places[i]] = std::move(leaves[i]);
  return result;
}

}  // namespace clnet::nn
