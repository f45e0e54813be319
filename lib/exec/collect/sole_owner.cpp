#include "lib/exec/collect/sole_owner.h"

namespace clnet::exec {

bool sole_owner(const Node& node, const Holders::Counts& own) {
  Holders::Counts all;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const auto [handles, inputs] = node.values[i].holders.now();
    all.handles += handles;
    all.inputs += inputs;
  }
  return all.handles <= own.handles && all.inputs <= own.inputs;
}

bool sole_owner(const Node& node, std::uint32_t own_inputs, const std::vector<bool>& asked) {
  std::uint32_t readers = 0;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const auto [handles, inputs] = node.values[i].holders.now();
    if (handles > 0 && (asked.empty() || !asked[i])) return false;
    readers += inputs;
  }
  return readers <= own_inputs;
}

bool sole_owner(const DeviceValue& value) { return value.buffer->holders() == 1 && !value.buffer->imported(); }

}  // namespace clnet::exec
