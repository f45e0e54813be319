#include "lib/exec/record.h"

#include "lib/exec/fusion.h"
#include "lib/exec/value.h"

namespace clnet::exec {

void ValueIds::set(const Tensor& tensor, ValueId id) {
  auto& outputs = ids_[tensor.node().get()];
  outputs.resize(tensor.node()->outputs.size(), -1);
  outputs[static_cast<std::size_t>(tensor.output())] = id;
}

ValueIds record(const Work& work, std::span<const Tensor> wanted, const DeviceInfo& device, Recording& recording) {
  ValueIds ids;
  for (const auto& leaf : work.leaves)
    ids.set(leaf, recording.add_leaf(leaf.spec(), is_host_scalar(leaf.spec(), value_of(leaf).get())));
  for (const auto& group : fuse(work.nodes, wanted, device)) {
    Tensors inputs, outputs = group.outputs;
    const auto& node = group.nodes.front();
    if (group.kernel) {
      inputs = group.kernel->buffers;
      inputs.insert(inputs.end(), group.kernel->scalars.begin(), group.kernel->scalars.end());
    } else {
      inputs = node->inputs;
      for (std::size_t i = 0; i < node->outputs.size(); ++i) outputs.emplace_back(node, static_cast<int>(i));
    }
    std::vector<ValueId> in, out;
    for (const auto& input : inputs) in.push_back(ids.at(input));
    for (const auto& output : outputs) {
      out.push_back(recording.add_value(output.spec()));
      ids.set(output, out.back());
    }
    Recorder recorder(recording, device, std::move(in), std::move(out));
    if (group.kernel)
      lower_elementwise(*group.kernel, recorder);
    else
      node->op->lower(recorder);
  }
  return ids;
}

}  // namespace clnet::exec
