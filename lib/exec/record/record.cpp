#include "lib/exec/record/record.h"

#include <algorithm>

#include "lib/exec/choose/solver.h"
#include "lib/exec/fuse/epilogue.h"
#include "lib/exec/fuse/fusion.h"
#include "lib/exec/fuse/prologue.h"
#include "lib/exec/record/value.h"

namespace clnet::exec {

void ValueIds::set(const Tensor& tensor, ValueId id) {
  auto& outputs = ids_[tensor.node().get()];
  outputs.resize(tensor.node()->outputs.size(), -1);
  outputs[static_cast<std::size_t>(tensor.output())] = id;
}

namespace {

/// Small values that are made from leaves only, such as the scale of a batch normalisation in inference, are made once.
bool is_constant(const ElementwiseKernel& kernel, const Tensors& outputs, std::span<const Tensor> wanted) {
  constexpr std::int64_t most_elements = 1 << 16;
  return !kernel.buffers.empty() && outputs[0].numel() <= most_elements &&
         std::all_of(kernel.buffers.begin(), kernel.buffers.end(), [](const Tensor& t) { return value_of(t) != nullptr; }) &&
         std::none_of(outputs.begin(), outputs.end(), [&](const Tensor& output) {
           return std::any_of(wanted.begin(), wanted.end(), [&](const Tensor& t) { return source_of(t).same(output); });
         });
}

std::vector<Ref> whole(const std::vector<ValueId>& values) {
  std::vector<Ref> refs;
  for (auto value : values) refs.push_back({value, 0});
  return refs;
}

}  // namespace

ValueIds record(const Work& work, std::span<const Tensor> wanted, const DeviceInfo& device, Recording& recording,
                const Tuning* tuning) {
  ValueIds ids;
  for (const auto& leaf : work.leaves)
    ids.set(leaf, recording.add_leaf(leaf.spec(), is_host_scalar(leaf.spec(), value_of(leaf).get())));
  const auto add = [&](const Tensors& outputs) {
    std::vector<ValueId> added;
    for (const auto& output : outputs) {
      added.push_back(recording.add_value(output.spec()));
      ids.set(output, added.back());
    }
    return added;
  };
  const auto inputs_of = [&](const std::optional<ElementwiseKernel>& kernel) {
    std::vector<ValueId> inputs;
    if (kernel)
      for (const auto* tensors : {&kernel->buffers, &kernel->scalars})
        for (const auto& tensor : *tensors) inputs.push_back(ids.at(tensor));
    return inputs;
  };
  for (const auto& group : fuse(work.nodes, wanted, device)) {
    Tensors heads;
    if (group.node)
      for (std::size_t i = 0; i < group.node->outputs.size(); ++i) heads.emplace_back(group.node, static_cast<int>(i));
    const auto start = recording.commands().size();
    Tensors made;
    if (group.before) made.push_back(group.before_output);
    const auto made_ids = add(made), head_ids = add(heads), out = add(group.outputs);

    const auto in = inputs_of(group.kernel), before_in = inputs_of(group.before);
    std::optional<FusedEpilogue> epilogue;
    std::optional<FusedPrologue> prologue;
    if (group.kernel && group.node) epilogue.emplace(*group.kernel, heads[0], whole(in));
    if (group.before) prologue.emplace(*group.before, made_ids[0], whole(before_in));
    if (group.node) {
      std::vector<ValueId> node_in;
      for (const auto& input : group.node->inputs) node_in.push_back(ids.at(input));
      Recorder recorder(recording, device, std::move(node_in), head_ids, epilogue ? &*epilogue : nullptr,
                        prologue ? &*prologue : nullptr);
      std::optional<PreferSolver> prefer;
      if (auto solver = tuning ? tuning->choice(*group.node) : std::nullopt)
        prefer.emplace(std::string(group.node->op->name()), std::move(*solver));
      group.node->op->lower(recorder);
      prefer.reset();
      const auto aliased = std::any_of(head_ids.begin(), head_ids.end(),
                                       [&](ValueId id) { return group.before && recording.value(id).root == made_ids[0]; });
      if (group.before && (aliased || recording.uses(start, made_ids[0]))) {
        const auto middle = recording.commands().size();
        Recorder first(recording, device, before_in, made_ids);
        lower_elementwise(*group.before, first);
        recording.move_before(start, middle);
      }
      if (recorder.epilogue_joined()) {
        recording.alias(out[0], {head_ids[0], 0});
        continue;
      }
    }
    if (group.kernel) {
      if (is_constant(*group.kernel, group.outputs, wanted))
        for (auto id : out) recording.keep_packed(id);
      Recorder recorder(recording, device, in, out);
      lower_elementwise(*group.kernel, recorder);
    }
  }
  return ids;
}

}  // namespace clnet::exec
