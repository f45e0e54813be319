#include "lib/exec/fuse/check.h"

#include <fmt/format.h>

#include <vector>

#include "clnet/error.h"

namespace clnet::exec {

namespace {

class Check {
 public:
  Check(std::span<const Group> groups, const Subgraph& graph) : groups_(groups), graph_(graph), written_(graph.value_count()) {}

  void operator()() {
    for (number_ = 0; number_ < groups_.size(); ++number_) {
      const auto& group = groups_[number_];
      if (group.before) reads(*group.before, {});
      if (group.node)
        for (const auto& input : group.node->inputs)
          if (!group.before || !input.same(group.before_output)) reads(input);
      const Tensor head = group.node && group.kernel ? tensor_of(group.node, 0) : Tensor();
      if (group.node)
        for (std::size_t i = group.kernel ? 1 : 0; i < group.node->outputs.size(); ++i)
          writes(tensor_of(group.node, static_cast<int>(i)));
      if (group.kernel) reads(*group.kernel, head);
      for (const auto& output : group.outputs) writes(output);
    }
    for (const auto& tensor : graph_.wanted())
      if (!is_there(tensor)) fail(tensor, "is asked for and written by none");
  }

 private:
  bool is_there(const Tensor& tensor) const {
    const auto root = graph_.root(tensor).value;
    return graph_.is_leaf(root) || written_[root];
  }
  void reads(const Tensor& tensor) const {
    if (!is_there(tensor)) fail(tensor, "is read before it is written");
  }
  void reads(const ElementwiseKernel& kernel, const Tensor& head) const {
    for (const auto& load : kernel.loads) {
      const auto& buffer = kernel.buffers[load.buffer];
      if (!head.defined() || !buffer.same(head))
        reads(buffer);
      else if (!load.at.linear)
        fail(buffer, "is read at other places than it is computed at");
    }
  }
  void writes(const Tensor& tensor) {
    const auto value = Subgraph::number(tensor);
    if (written_[value]) fail(tensor, "is written twice");
    written_[value] = true;
  }
  [[noreturn]] void fail(const Tensor& tensor, std::string_view what) const {
    throw Error(fmt::format("fusion: output {} of {}, {}, {} (group {} of {})", output_of(tensor), node_of(tensor)->op->name(),
                            to_string(tensor.spec()), what, number_, groups_.size()));
  }

  std::span<const Group> groups_;
  const Subgraph& graph_;
  std::size_t number_ = 0;
  std::vector<bool> written_;  ///< by value
};

}  // namespace

void check_groups(std::span<const Group> groups, const Subgraph& graph) { Check(groups, graph)(); }

}  // namespace clnet::exec
