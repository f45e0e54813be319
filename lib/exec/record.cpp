#include "lib/exec/record.h"

#include "lib/exec/elementwise.h"
#include "lib/exec/value.h"

namespace clnet::exec {

void ValueIds::set(const Tensor& tensor, ValueId id) {
  auto& outputs = ids_[tensor.node().get()];
  outputs.resize(tensor.node()->outputs.size(), -1);
  outputs[static_cast<std::size_t>(tensor.output())] = id;
}

ValueIds record(const Work& work, const DeviceInfo& device, Recording& recording) {
  ValueIds ids;
  for (const auto& leaf : work.leaves)
    ids.set(leaf, recording.add_leaf(leaf.spec(), is_host_scalar(leaf.spec(), value_of(leaf).get())));
  for (const auto& node : work.nodes) {
    std::vector<ValueId> in, out;
    Specs specs;
    for (const auto& input : node->inputs) {
      in.push_back(ids.at(input));
      specs.push_back(input.spec());
    }
    for (std::size_t i = 0; i < node->outputs.size(); ++i) {
      out.push_back(recording.add_value(node->outputs[i]));
      ids.set(Tensor(node, static_cast<int>(i)), out.back());
    }
    Recorder recorder(recording, device, std::move(in), std::move(out));
    if (!node->op->expr(specs).empty())
      lower_elementwise(*node->op, recorder);
    else
      node->op->lower(recorder);
  }
  return ids;
}

}  // namespace clnet::exec
