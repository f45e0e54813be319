#include "lib/exec/fuse/fusion.h"

#include <algorithm>
#include <map>
#include <set>

#include "clnet/error.h"
#include "lib/base/log.h"
#include "lib/base/planning_steps.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/fuse/check.h"
#include "lib/exec/fuse/epilogue.h"
#include "lib/exec/fuse/grouping.h"
#include "lib/exec/fuse/prologue.h"

namespace clnet::exec {

namespace {

// Stop rules. Recomputing a value costs at most `cheap` (see cost() in expression.h) for every element that reads it; kernels are
// kept small enough to compile quickly and to read.
constexpr int cheap = 8;
constexpr std::int64_t small_ratio = 16;  // a value with so many times fewer elements than its readers costs nothing to read
constexpr std::size_t most_nodes = 64, most_buffers = 32, most_loops = 4, most_epilogue_buffers = 8;
// Several functions in another kernel's tile (the gradient of gelu) are no faster than in a separate pass.
constexpr int most_epilogue_cost = 40;
constexpr std::int64_t most_joined_elements = 1 << 16;
// Chains of more sums than the first are cut into pieces of at most the second.
constexpr std::size_t most_whole_sums = 4, most_sums = 16;

class Fusion {
 public:
  Fusion(const Subgraph& graph, const DeviceInfo& device, bool fuses)
      : graph_(graph),
        grouping_(graph),
        fuses_(fuses),
        parameter_limit_(std::min<std::size_t>(device.max_parameter_size, 4096) - 64) {}

  std::vector<Group> operator()() {
    if (fuses_) {
      cut_sums();
      for (Index k = 0; k < grouping_.count(); ++k)
        if (grouping_.elementwise(k)) join_producers(k);
      grouping_.find_written();
      for (Index k = grouping_.count(); k-- > 0;)
        if (grouping_.elementwise(k)) recompute(k);
      attach_to_heads();
      attach_to_readers();
      join_results();
    } else {
      grouping_.find_written();
    }
    grouping_.check();
    std::vector<Group> groups;
    for (auto id : grouping_.ordered()) groups.push_back(finished(id));
    check_groups(groups, graph_);
    return groups;
  }

 private:
  FusionHints hints(Index k) const {
    const auto& node = *grouping_.node(k);
    return node.op->fusion(specs_of(node.inputs));
  }

  std::optional<ElementwiseKernel> kernel_of(const std::vector<Index>& members, const std::vector<Index>& outputs) const {
    std::vector<const Node*> nodes, written;
    for (auto k : members) nodes.push_back(grouping_.node(k).get());
    for (auto k : outputs) written.push_back(grouping_.node(k).get());
    return assemble(nodes, written);
  }

  /// Whether all compute in f64, or none.
  bool alike(const std::vector<Index>& members) const {
    const auto f64 = [&](Index k) { return computes_f64(*grouping_.node(k)); };
    return std::all_of(members.begin(), members.end(), f64) || std::none_of(members.begin(), members.end(), f64);
  }

  /// Whether the members form a kernel within the limits.
  bool fits(const std::vector<Index>& members, const std::vector<Index>& outputs) const {
    if (members.size() > most_nodes || !alike(members)) return false;
    const auto kernel = kernel_of(members, outputs);
    return kernel && kernel->loops.size() <= most_loops && kernel->buffers.size() + outputs.size() <= most_buffers &&
           kernel->parameter_bytes() <= parameter_limit_;
  }

  std::vector<Index> together(const std::vector<Index>& a, const std::vector<Index>& b) const {
    std::vector<Index> result;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
    return result;
  }

  /// Whether it adds two values that are as large as their sum.
  bool is_sum(Index k) const {
    const auto& node = *grouping_.node(k);
    return grouping_.elementwise(k) && node.op->name() == "add" && node.inputs[0].shape() == node.inputs[1].shape();
  }

  /// Finds chains of sums, as of the gradients of many steps, and cuts long ones into 16, 8, 4, 2 and one: any number of steps
  /// has the same few programs.
  void cut_sums() {
    std::vector<Index> sums_before(grouping_.count(), none);
    std::vector<bool> goes_on(grouping_.count(), false);
    for (Index k = 0; k < grouping_.count(); ++k) {
      if (!is_sum(k)) continue;
      const auto& sources = grouping_.reads(k);
      const auto before = std::find_if(sources.begin(), sources.end(), [&](Index source) {
        return is_sum(source) && !grouping_.is_result(source) && grouping_.readers(source).size() == 1 &&
               grouping_.elements(source) == grouping_.elements(k);
      });
      if (before == sources.end()) continue;
      sums_before[k] = *before;
      goes_on[*before] = true;
    }
    std::vector<Index> chain;
    for (Index last = 0; last < grouping_.count(); ++last) {
      if (goes_on[last] || sums_before[last] == none) continue;
      chain.clear();
      for (Index k = last; k != none; k = sums_before[k]) chain.push_back(k);
      count_planning(chain.size());
      if (chain.size() <= most_whole_sums) continue;
      std::size_t left = chain.size();
      for (std::size_t piece = most_sums; left > 0; left -= piece) {
        while (piece > left) piece /= 2;
        if (left != chain.size()) cut_from_[chain[left - 1]] = chain[left];
      }
    }
  }

  /// Merges an operation's group with those of its inputs where possible.
  void join_producers(Index k) {
    const auto elements = grouping_.elements(k);
    if (elements == 0) return;
    for (auto source : grouping_.reads(k)) {
      const Index mine = grouping_.writer(k), other = grouping_.writer(source);
      if (const auto cut = cut_from_.find(k); cut != cut_from_.end() && cut->second == source) continue;
      if (mine == other || !grouping_.elementwise(source) || grouping_.elements(source) != elements) continue;
      if (grouping_.group(mine).members.size() + grouping_.group(other).members.size() > most_nodes) continue;
      const auto joint = grouping_.joint(other, mine);
      if (!joint) continue;
      const auto members = together(grouping_.group(mine).members, grouping_.group(other).members);
      std::vector<Index> outputs;
      for (auto member : members)
        if (grouping_.is_read_outside(member, mine, other)) outputs.push_back(member);
      if (fits(members, outputs)) grouping_.join(other, mine, *joint);
    }
  }

  /// Computes a value again in all kernels that read it, if that is cheaper than writing it.
  void recompute(Index k) {
    const Index writer = grouping_.writer(k);
    if (!grouping_.written(k) || grouping_.is_result(k) || grouping_.elements(k) == 0) return;
    std::set<Index> found;
    for (auto reader : grouping_.readers(k)) {
      count_planning(1);
      if (!grouping_.elementwise(reader) || grouping_.reads_elsewhere(reader, k)) return;
      for (auto group : grouping_.where(reader))
        if (group != writer) found.insert(group);
    }
    const std::vector<Index> targets(found.begin(), found.end());
    // The nodes behind it that are not written anyway.
    std::vector<Index> tree{k};
    for (std::size_t next = 0; next < tree.size(); ++next)
      for (auto source : grouping_.reads(tree[next]))
        if (grouping_.computes(writer, source) && !grouping_.written(source) &&
            std::find(tree.begin(), tree.end(), source) == tree.end())
          tree.push_back(source);
    std::sort(tree.begin(), tree.end());
    const auto alone = kernel_of(tree, {k});
    if (!alone || alone->cost() > cheap) return;
    const auto large = std::count_if(alone->buffers.begin(), alone->buffers.end(),
                                     [&](const Tensor& buffer) { return buffer.numel() >= grouping_.elements(k); });
    const bool small = std::all_of(targets.begin(), targets.end(), [&](Index group) {
      return grouping_.elements(k) * small_ratio <= grouping_.elements(grouping_.outputs(group).front());
    });
    if (large > 1 && !small) return;
    const bool fit = std::all_of(targets.begin(), targets.end(), [&](Index group) {
      return fits(together(grouping_.group(group).members, tree), grouping_.outputs(group));
    });
    if (!fit) return;
    // The remaining nodes may need other loops than the moved ones.
    const auto rest = grouping_.remaining(writer, tree);
    auto outputs = grouping_.outputs(writer);
    std::erase(outputs, k);
    if (!rest.empty() && (outputs.empty() || !fits(rest, outputs))) return;
    grouping_.compute_in(targets, tree, k);
  }

  /// Attaches kernels that are the only readers of a head's first output, as a convolution's, to the head.
  void attach_to_heads() {
    for (Index k = grouping_.count(); k-- > 0;) {
      if (grouping_.elementwise(k) || grouping_.is_view(k) || !hints(k).epilogue) continue;
      const auto head = tensor_of(grouping_.node(k), 0);
      // Epilogues compute in floating point.
      if (!is_floating(head.dtype()) || grouping_.is_first_result(k) || grouping_.elements(k) == 0) continue;
      std::vector<Index> readers;
      for (auto reader : grouping_.readers(k))
        if (reads(reader, head)) readers.push_back(reader);
      if (readers.empty()) continue;
      const Index group = grouping_.writer(readers.front());
      const bool alone = std::all_of(readers.begin(), readers.end(), [&](Index reader) {
        return grouping_.elementwise(reader) && grouping_.where(reader) == std::vector{group};
      });
      if (!alone || grouping_.group(group).head != none) continue;
      const auto joint = grouping_.joint(k, group);
      if (!joint) continue;
      const auto outputs = grouping_.outputs(group);
      const auto kernel = kernel_of(grouping_.group(group).members, outputs);
      const bool f64 = head.dtype() == Dtype::f64;
      if (!kernel || kernel->f64 != f64 || computes_f64(*grouping_.node(k)) != f64 || !FusedEpilogue::possible(*kernel, head) ||
          grouping_.elements(outputs[0]) != grouping_.elements(k))
        continue;
      if (kernel->parameter_bytes() > parameter_limit_ / 2 || kernel->buffers.size() > most_epilogue_buffers ||
          kernel->cost() > most_epilogue_cost)
        continue;
      grouping_.join(k, group, *joint);
      grouping_.set_head(group, k);
    }
  }

  /// Whether the node reads elements of the tensor.
  bool reads(Index reader, const Tensor& tensor) const {
    const auto& inputs = grouping_.node(reader)->inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const Tensor& input) { return graph_.root(input).value == Subgraph::number(tensor); });
  }

  /// Attaches a cheap kernel whose result only one reduction (or the like) reads to that operation.
  void attach_to_readers() {
    for (Index k = 0; k < grouping_.count(); ++k) {
      if (grouping_.elementwise(k) || grouping_.is_view(k)) continue;
      const auto input = hints(k).prologue;
      if (!input) continue;
      const Tensor& made = grouping_.node(k)->inputs.at(*input);
      const Index source = graph_.source(made);
      if (!is_floating(made.dtype()) || source == none || node_of(made) != grouping_.node(source) ||
          !grouping_.elementwise(source) || grouping_.is_result(source) || grouping_.elements(source) == 0)
        continue;
      const bool once = std::count(grouping_.reads(k).begin(), grouping_.reads(k).end(), source) == 1;
      const Index group = grouping_.writer(source);
      if (!once || grouping_.readers(source) != std::vector{k} || group == grouping_.writer(k) ||
          grouping_.group(group).head != none || grouping_.outputs(group) != std::vector{source})
        continue;
      const auto kernel = kernel_of(grouping_.group(group).members, {source});
      const bool f64 = made.dtype() == Dtype::f64;
      if (!kernel || kernel->f64 != f64 || computes_f64(*grouping_.node(k)) != f64 || !FusedPrologue::possible(*kernel) ||
          kernel->cost() > cheap || kernel->buffers.size() > most_epilogue_buffers ||
          kernel->parameter_bytes() > parameter_limit_ / 2)
        continue;
      grouping_.put_first(group, source, k);
    }
  }

  /// Merges results that nothing here depends on, as new running statistics, into few kernels instead of one each.
  void join_results() {
    std::map<std::int64_t, Index> open;  // by number of elements: the group that takes more
    for (Index k = 0; k < grouping_.count(); ++k) {
      const Index id = grouping_.writer(k);
      const auto& members = grouping_.group(id).members;
      if (!grouping_.elementwise(k) || id != k || members.empty() || grouping_.group(id).head != none) continue;
      const auto outputs = grouping_.outputs(id);
      // Values that moved to other kernels, or are computed there as well, may be read from here.
      const auto only_here = [&](Index member) { return grouping_.where(member) == std::vector{id}; };
      const bool last = std::all_of(members.begin(), members.end(), [&](Index member) {
        const auto& readers = grouping_.readers(member);
        return only_here(member) && std::all_of(readers.begin(), readers.end(), only_here);
      });
      const auto elements = grouping_.elements(k);
      if (!last || outputs.empty() || elements == 0 || elements > most_joined_elements) continue;
      const auto [found, fresh] = open.try_emplace(elements, id);
      if (fresh) continue;
      const Index other = found->second;
      auto written = grouping_.outputs(other);
      written.insert(written.end(), outputs.begin(), outputs.end());
      if (fits(together(grouping_.group(other).members, members), written))
        grouping_.join_results(id, other);
      else
        found->second = id;
    }
  }

  std::string names(const std::vector<Index>& members) const {
    std::string result;
    for (auto k : members) result += fmt::format("{}{}", result.empty() ? "" : ", ", grouping_.node(k)->op->name());
    return result;
  }

  Group finished(Index id) const {
    const auto& drafted = grouping_.group(id);
    std::vector<Index> generated;
    for (auto k : drafted.members)
      if (grouping_.elementwise(k)) generated.push_back(k);
    Group group;
    if (drafted.head != none) group.node = grouping_.node(drafted.head);
    if (drafted.first_output != none) {
      group.before = kernel_of(drafted.first, {drafted.first_output});
      group.before_output = tensor_of(grouping_.node(drafted.first_output), 0);
      logging::print(logging::Level::solver, "fusion: {} into {}", names(drafted.first), names(drafted.members));
    }
    if (generated.empty()) {
      group.node = grouping_.node(drafted.members.front());
      return group;
    }
    const auto outputs = grouping_.outputs(id);
    for (auto k : outputs) group.outputs.push_back(tensor_of(grouping_.node(k), 0));
    group.kernel = kernel_of(generated, outputs);
    if (!group.kernel)
      throw Error(fmt::format("fusion: {} cannot be one kernel; this is a fault of clnet (CLNET_FUSION=0 avoids it)",
                              names(drafted.members)));
    if (drafted.members.size() > 1)
      logging::print(logging::Level::solver, "fusion: {} over {}, {} to write", names(drafted.members),
                     to_string(group.outputs[0].shape()), outputs.size());
    return group;
  }

  const Subgraph& graph_;
  Grouping grouping_;
  const bool fuses_;
  const std::size_t parameter_limit_;
  std::map<Index, Index> cut_from_;  ///< the first sum of a piece and the last of the one before
};

}  // namespace

std::vector<Group> fuse(const Subgraph& graph, const DeviceInfo& device, bool fuses) { return Fusion(graph, device, fuses)(); }

}  // namespace clnet::exec
