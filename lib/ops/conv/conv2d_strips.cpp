#include "lib/ops/conv/conv2d_strips.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "lib/exec/fuse/epilogue.h"
#include "lib/graph/op.h"

namespace clnet::ops {

namespace {

/// The last one stands for the three by solvers of their own: it is asked before anything is recorded.
const exec::SolverList<Conv2dStrips> strips_solvers{
    "conv2d_strips",
    {{"cpu", conv2d_strips_cpu_rejects, conv2d_strips_cpu, conv2d_strips_cpu_declines, conv2d_strips_cpu_configs},
     {"apart", exec::accepts_everything<Conv2dStrips>, [](const Conv2dStrips&, exec::Recorder&) {}}}};

bool is_conv2d(const exec::Group& group) { return group.node && !group.before && conv2d_problem(*group.node).has_value(); }

/// Which groups alone read what others make.
class Neighbours {
 public:
  Neighbours(std::span<const exec::Group> groups, const exec::Subgraph& graph)
      : groups_(groups), graph_(graph), makers_(graph.value_count(), exec::none), readers_(graph.value_count()) {
    for (std::size_t k = 0; k < groups.size(); ++k) {
      const auto& group = groups[k];
      if (const auto output = only_output(group); output.defined()) makers_[exec::Subgraph::number(output)] = k;
      // Its own kernel reads the result of the node within it.
      if (group.node)
        for (const auto& input : group.node->inputs) read(input);
      for (const auto* kernel : {&group.kernel, &group.before})
        if (*kernel)
          for (const auto& buffer : (*kernel)->buffers)
            if (!group.node || node_of(buffer) != group.node) read(buffer);
    }
    for (const auto& tensor : graph.wanted()) read(tensor);
  }

  /// The group that makes what this one's node reads first, if nothing else reads that, and it may be kept within a kernel.
  std::size_t before(std::size_t k) const {
    const auto& input = groups_[k].node->inputs[0];
    const auto value = exec::Subgraph::number(input);
    const auto maker = makers_[value];
    if (maker == exec::none || readers_[value] != 1) return exec::none;
    const auto& group = groups_[maker];
    if (!is_conv2d(group)) return exec::none;
    if (!group.kernel) return maker;
    const auto channels = input.size(1), inner = input.numel() / std::max<std::int64_t>(1, input.size(0) * channels);
    const auto head = tensor_of(group.node, 0);
    const bool joins = exec::FusedEpilogue::possible(*group.kernel, head) &&
                       exec::FusedEpilogue(*group.kernel, head, {}).only_by_channel(channels, inner);
    return joins ? maker : exec::none;
  }

 private:
  /// What a group leaves behind, if that is one value which it alone makes.
  static Tensor only_output(const exec::Group& group) {
    if (!group.node || group.before || group.node->outputs.size() != 1) return {};
    if (!group.kernel) return tensor_of(group.node, 0);
    return group.outputs.size() == 1 ? group.outputs[0] : Tensor();
  }
  void read(const Tensor& tensor) { ++readers_[graph_.root(tensor).value]; }

  std::span<const exec::Group> groups_;
  const exec::Subgraph& graph_;
  std::vector<std::size_t> makers_;  ///< by value
  std::vector<int> readers_;         ///< by value
};

class Conv2dInStrips : public exec::Rewrite {
 public:
  std::vector<FusedGroups> fused_groups(std::span<const exec::Group> groups, const exec::Subgraph& graph,
                                        const DeviceInfo& device, const exec::Choosing& choosing) const override {
    std::vector<FusedGroups> found;
    // Who forces a solver of convolutions means each of them.
    const auto forced = exec::forced_solver("conv2d", choosing);
    if (forced && !forced->measured) return found;
    const Neighbours neighbours(groups, graph);
    std::vector<bool> taken(groups.size());
    for (std::size_t k = groups.size(); k-- > 0;) {
      if (taken[k] || !is_conv2d(groups[k])) continue;
      const auto second = neighbours.before(k);
      const auto first = second == exec::none ? exec::none : neighbours.before(second);
      if (first == exec::none) continue;
      Conv2dStrips strips{problem_of(groups[first]), problem_of(groups[second]), problem_of(groups[k])};
      if (strips_solvers.leaves(strips, device, choosing)) continue;
      taken[first] = taken[second] = true;
      found.push_back({{first, second, k}, [strips](exec::Recorder& recorder) { record(strips, recorder); }});
    }
    return found;
  }

 private:
  static Conv2dProblem problem_of(const exec::Group& group) { return conv2d_problem(*group.node).value(); }

  static void record(Conv2dStrips strips, exec::Recorder& recorder) {
    std::size_t next = 0;
    for (auto* part : strips.parts()) {
      part->x = recorder.input(next++);
      part->weight = recorder.input(next++);
      if (part->has_bias()) part->bias = recorder.input(next++);
    }
    strips.projection.y = recorder.output();
    strips_solvers.lower(strips, recorder.device(), recorder);
  }
};

}  // namespace

const exec::Rewrite& conv2d_in_strips() {
  static const Conv2dInStrips rewrite;
  return rewrite;
}

}  // namespace clnet::ops
