#include "lib/exec/fuse/check.h"

#include <fmt/format.h>

#include <set>

#include "clnet/error.h"
#include "lib/exec/collect/work.h"

namespace clnet::exec {

namespace {

class Check {
 public:
  explicit Check(std::span<const Group> groups) : groups_(groups) {}

  void operator()(std::span<const Tensor> wanted) {
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
    for (const auto& tensor : wanted)
      if (!is_there(tensor)) fail(tensor, "is asked for and written by none");
  }

 private:
  bool is_there(const Tensor& tensor) const {
    const auto root = root_of(tensor).tensor;
    return value_of(root) || written_.count({node_of(root).get(), output_of(root)}) != 0;
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
    if (!written_.insert({node_of(tensor).get(), output_of(tensor)}).second) fail(tensor, "is written twice");
  }
  [[noreturn]] void fail(const Tensor& tensor, std::string_view what) const {
    throw Error(fmt::format("fusion: output {} of {}, {}, {} (group {} of {})", output_of(tensor), node_of(tensor)->op->name(),
                            to_string(tensor.spec()), what, number_, groups_.size()));
  }

  std::span<const Group> groups_;
  std::size_t number_ = 0;
  std::set<std::pair<const Node*, int>> written_;
};

}  // namespace

void check_groups(std::span<const Group> groups, std::span<const Tensor> wanted) { Check{groups}(wanted); }

}  // namespace clnet::exec
