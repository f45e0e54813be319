#include "lib/exec/fuse/fusion.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/log.h"
#include "lib/exec/fuse/epilogue.h"
#include "lib/exec/fuse/prologue.h"
#include "lib/exec/record/work.h"

namespace clnet::exec {

namespace {

// Stop rules. Recomputing a value costs at most `cheap` (see cost() in expression.h) for every element that reads it; kernels are
// kept small enough to compile quickly and to read.
constexpr int cheap = 8;
constexpr std::int64_t small_ratio = 16;  // a value with so many times fewer elements than its readers costs nothing to read
constexpr std::size_t most_nodes = 64, most_buffers = 32, most_loops = 4, most_epilogue_buffers = 8;
constexpr std::int64_t most_joined_elements = 1 << 16;

thread_local int disabled_here = 0;

using Index = std::size_t;
constexpr Index none = std::numeric_limits<Index>::max();

class Fusion {
 public:
  Fusion(std::span<const std::shared_ptr<Node>> nodes, std::span<const Tensor> wanted, const DeviceInfo& device)
      : nodes_(nodes),
        wanted_(wanted),
        count_(nodes.size()),
        parameter_limit_(std::min<std::size_t>(device.max_parameter_size, 4096) - 64) {
    for (Index k = 0; k < count_; ++k) index_[nodes[k].get()] = k;
    reads_.resize(count_);
    readers_.resize(count_);
    parts_.resize(count_);
    kept_.resize(count_);
    written_.resize(count_);
    for (Index k = 0; k < count_; ++k) {
      elementwise_.push_back(is_elementwise(*nodes[k]));
      home_.push_back(k);
      members_.emplace_back();
      if (nodes[k]->is_view()) continue;
      members_[k] = {k};
      for (const auto& input : nodes[k]->inputs) {
        const auto source = producer(input);
        if (source == none) continue;
        reads_[k].push_back(source);
        readers_[source].push_back(k);
        if (source_of(input).node() != nodes[source]) parts_[k].push_back(source);
      }
    }
    for (const auto& tensor : wanted)
      if (const auto k = producer(tensor); k != none) kept_[k] = true;
  }

  std::vector<Group> operator()() {
    if (fusion_enabled())
      for (Index k = 0; k < count_; ++k)
        if (elementwise_[k]) join_producers(k);
    for (Index k = 0; k < count_; ++k) written_[k] = is_read_outside(k, home_[k]);
    where_.resize(count_);
    for (Index k = 0; k < count_; ++k) where_[k] = {home_[k]};
    if (fusion_enabled())
      for (Index k = count_; k-- > 0;)
        if (elementwise_[k]) recompute(k);
    head_.resize(count_, none);
    before_.resize(count_);
    if (fusion_enabled()) {
      attach_to_heads();
      attach_to_readers();
      join_results();
    }
    return ordered();
  }

 private:
  /// The operation that computes the tensor's elements; none where they are there.
  Index producer(const Tensor& tensor) const {
    const Tensor root = root_of(tensor).tensor;
    if (value_of(root)) return none;
    const auto found = index_.find(root.node().get());
    return found == index_.end() ? none : found->second;
  }

  std::int64_t elements(Index k) const { return nodes_[k]->outputs[0].shape.numel(); }

  bool is_read_outside(Index k, Index group) const {
    return kept_[k] || std::any_of(readers_[k].begin(), readers_[k].end(), [&](Index reader) { return home_[reader] != group; });
  }

  std::optional<ElementwiseKernel> kernel_of(const std::vector<Index>& members, const std::vector<Index>& outputs) const {
    std::vector<const Node*> nodes, written;
    for (auto k : members) nodes.push_back(nodes_[k].get());
    for (auto k : outputs) written.push_back(nodes_[k].get());
    return assemble(nodes, written);
  }

  /// Whether it is a kernel within the limits.
  bool fits(const std::vector<Index>& members, const std::vector<Index>& outputs) const {
    if (members.size() > most_nodes) return false;
    const auto kernel = kernel_of(members, outputs);
    return kernel && kernel->loops.size() <= most_loops && kernel->buffers.size() + outputs.size() <= most_buffers &&
           kernel->parameter_bytes() <= parameter_limit_;
  }

  /// All groups that compute a node.
  std::span<const Index> groups_of(Index k) const {
    return where_.empty() ? std::span(&home_[k], 1) : std::span<const Index>(where_[k]);
  }

  bool reads_part(Index reader, Index source) const {
    return std::find(parts_[reader].begin(), parts_[reader].end(), source) != parts_[reader].end();
  }

  /// Whether group `to` needs, by way of other groups or at other places, what group `from` computes.
  bool path_between(Index from, Index to) const {
    std::vector<bool> seen(count_, false);
    std::vector<Index> open{from};
    seen[from] = true;
    while (!open.empty()) {
      const Index group = open.back();
      open.pop_back();
      for (auto k : members_[group])
        for (auto reader : readers_[k])
          for (auto next : groups_of(reader)) {
            if (next == to && (group != from || reads_part(reader, k))) return true;
            if (next == to || seen[next]) continue;
            seen[next] = true;
            open.push_back(next);
          }
    }
    return false;
  }

  /// Makes one group of an operation's and those of the operations that it reads, where that is possible.
  void join_producers(Index k) {
    if (elements(k) == 0) return;
    for (auto source : reads_[k]) {
      const Index mine = home_[k], other = home_[source];
      if (mine == other || !elementwise_[source] || elements(source) != elements(k) || path_between(other, mine)) continue;
      std::vector<Index> together, outputs;
      std::merge(members_[mine].begin(), members_[mine].end(), members_[other].begin(), members_[other].end(),
                 std::back_inserter(together));
      const auto theirs = members_[other];
      for (auto member : theirs) home_[member] = mine;
      for (auto member : together)
        if (is_read_outside(member, mine)) outputs.push_back(member);
      if (fits(together, outputs)) {
        members_[mine] = std::move(together);
        members_[other].clear();
      } else {
        for (auto member : theirs) home_[member] = other;
      }
    }
  }

  bool computes(Index group, Index k) const { return std::binary_search(members_[group].begin(), members_[group].end(), k); }

  std::vector<Index> outputs_of(Index group) const {
    std::vector<Index> result;
    for (auto k : members_[group])
      if (home_[k] == group && written_[k] && elementwise_[k]) result.push_back(k);
    return result;
  }

  /// Computes a value again in all kernels that read it, if that is cheaper than writing it.
  void recompute(Index k) {
    const Index home = home_[k];
    if (!written_[k] || kept_[k] || elements(k) == 0) return;
    std::set<Index> targets;
    for (auto reader : readers_[k]) {
      if (!elementwise_[reader] || reads_part(reader, k)) return;
      for (auto group : where_[reader])
        if (group != home) targets.insert(group);
    }
    // What it is made of, as far as that is not written anyway.
    std::vector<Index> tree{k};
    for (std::size_t next = 0; next < tree.size(); ++next)
      for (auto source : reads_[tree[next]])
        if (computes(home, source) && !written_[source] && std::find(tree.begin(), tree.end(), source) == tree.end())
          tree.push_back(source);
    std::sort(tree.begin(), tree.end());
    const auto alone = kernel_of(tree, {k});
    if (!alone || alone->cost() > cheap) return;
    const auto large = std::count_if(alone->buffers.begin(), alone->buffers.end(),
                                     [&](const Tensor& buffer) { return buffer.numel() >= elements(k); });
    const bool small = std::all_of(targets.begin(), targets.end(),
                                   [&](Index group) { return elements(k) * small_ratio <= elements(outputs_of(group).front()); });
    if (large > 1 && !small) return;

    std::vector<std::vector<Index>> merged;
    for (auto group : targets) {
      std::vector<Index> with;
      std::set_union(members_[group].begin(), members_[group].end(), tree.begin(), tree.end(), std::back_inserter(with));
      if (!fits(with, outputs_of(group))) return;
      merged.push_back(std::move(with));
    }
    written_[k] = false;
    auto with = merged.begin();
    for (auto group : targets) {
      for (auto member : tree)
        if (!computes(group, member)) where_[member].push_back(group);
      members_[group] = std::move(*with++);
    }
    // At home goes what nothing there needs any more.
    for (auto member = tree.rbegin(); member != tree.rend(); ++member) {
      const auto& readers = readers_[*member];
      if (std::any_of(readers.begin(), readers.end(), [&](Index reader) { return computes(home, reader); })) continue;
      std::erase(members_[home], *member);
      std::erase(where_[*member], home);
    }
  }

  /// Whether the node reads elements of the tensor.
  bool reads(Index reader, const Tensor& tensor) const {
    const auto& inputs = nodes_[reader]->inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& input) { return root_of(input).tensor.same(tensor); });
  }

  /// Makes the kernels that alone read a convolution's (or the like's) first output a part of it.
  void attach_to_heads() {
    for (Index k = count_; k-- > 0;) {
      const Tensor head(nodes_[k], 0);
      const bool wanted =
          std::any_of(wanted_.begin(), wanted_.end(), [&](const Tensor& tensor) { return root_of(tensor).tensor.same(head); });
      if (elementwise_[k] || nodes_[k]->is_view() || !nodes_[k]->op->takes_epilogue() || value_of(head) || wanted ||
          elements(k) == 0)
        continue;
      std::vector<Index> readers;
      for (auto reader : readers_[k])
        if (reads(reader, head)) readers.push_back(reader);
      if (readers.empty()) continue;
      const Index group = home_[readers.front()];
      const bool alone = std::all_of(readers.begin(), readers.end(), [&](Index reader) {
        return elementwise_[reader] && where_[reader].size() == 1 && where_[reader][0] == group;
      });
      if (!alone || head_[group] != none || path_between(k, group)) continue;
      const auto kernel = kernel_of(members_[group], outputs_of(group));
      if (!FusedEpilogue::possible(*kernel, head) || elements(outputs_of(group)[0]) != elements(k)) continue;
      if (kernel->parameter_bytes() > parameter_limit_ / 2 || kernel->buffers.size() > most_epilogue_buffers) continue;
      head_[group] = k;
      members_[k].clear();
      auto& members = members_[group];
      members.insert(std::upper_bound(members.begin(), members.end(), k), k);
      home_[k] = group;
      where_[k] = {group};
    }
  }

  /// Makes a cheap kernel whose result one reduction (or the like) alone reads a part of that operation's.
  void attach_to_readers() {
    for (Index k = 0; k < count_; ++k) {
      const auto input = nodes_[k]->op->prologue_input();
      if (elementwise_[k] || nodes_[k]->is_view() || !input) continue;
      const Tensor& made = nodes_[k]->inputs.at(*input);
      const Index source = producer(made);
      if (source == none || made.node() != nodes_[source] || !elementwise_[source] || kept_[source] || elements(source) == 0)
        continue;
      const auto& inputs = nodes_[k]->inputs;
      const bool once =
          std::count_if(inputs.begin(), inputs.end(), [&](const Tensor& other) { return producer(other) == source; }) == 1;
      const bool alone = std::all_of(readers_[source].begin(), readers_[source].end(), [&](Index reader) { return reader == k; });
      const Index group = home_[source], target = home_[k];
      if (!once || !alone || group == target || head_[group] != none || outputs_of(group) != std::vector{source}) continue;
      const auto kernel = kernel_of(members_[group], {source});
      if (!kernel || !FusedPrologue::possible(*kernel) || kernel->cost() > cheap ||
          kernel->buffers.size() > most_epilogue_buffers || kernel->parameter_bytes() > parameter_limit_ / 2)
        continue;
      for (auto member : members_[group]) {
        if (home_[member] == group) home_[member] = target;
        std::replace(where_[member].begin(), where_[member].end(), group, target);
      }
      before_[target] = {std::move(members_[group]), source};
      members_[group].clear();
    }
  }

  /// Results that nothing here depends on (new running statistics, say) are made by few kernels instead of one each.
  void join_results() {
    std::map<std::int64_t, Index> open;  // by number of elements, the group that takes in more
    for (Index k = 0; k < count_; ++k) {
      const Index id = home_[k];
      if (!elementwise_[k] || id != k || members_[id].empty() || head_[id] != none) continue;
      const auto outputs = outputs_of(id);
      const bool last = std::all_of(members_[id].begin(), members_[id].end(), [&](Index member) {
        const auto here = [&](Index other) { return where_[other].size() == 1 && where_[other][0] == id; };
        return here(member) && std::all_of(readers_[member].begin(), readers_[member].end(), here);
      });
      if (!last || outputs.empty() || elements(k) == 0 || elements(k) > most_joined_elements) continue;
      const auto [found, fresh] = open.try_emplace(elements(k), id);
      if (fresh) continue;
      const Index other = found->second;
      std::vector<Index> together, written = outputs_of(other);
      std::merge(members_[other].begin(), members_[other].end(), members_[id].begin(), members_[id].end(),
                 std::back_inserter(together));
      written.insert(written.end(), outputs.begin(), outputs.end());
      if (!fits(together, written)) {
        found->second = id;
        continue;
      }
      for (auto member : members_[id]) {
        home_[member] = other;
        where_[member] = {other};
      }
      members_[id].clear();
      members_[other] = std::move(together);
    }
  }

  std::string names(const std::vector<Index>& members) const {
    std::string result;
    for (auto k : members) result += fmt::format("{}{}", result.empty() ? "" : ", ", nodes_[k]->op->name());
    return result;
  }

  Group finished(Index id) const {
    std::vector<Index> generated;
    for (auto k : members_[id])
      if (elementwise_[k]) generated.push_back(k);
    Group group;
    if (head_[id] != none) group.node = nodes_[head_[id]];
    if (const auto& before = before_[id]; !before.members.empty()) {
      group.before = kernel_of(before.members, {before.output});
      group.before_output = Tensor(nodes_[before.output], 0);
      logging::print(logging::Level::solver, "fusion: {} into {}", names(before.members), names(members_[id]));
    }
    if (generated.empty()) {
      group.node = nodes_[id];
      return group;
    }
    const auto outputs = outputs_of(id);
    for (auto k : outputs) group.outputs.emplace_back(nodes_[k], 0);
    group.kernel = kernel_of(generated, outputs);
    if (members_[id].size() > 1)
      logging::print(logging::Level::solver, "fusion: {} over {}, {} to write", names(members_[id]),
                     to_string(group.outputs[0].shape()), outputs.size());
    return group;
  }

  /// The groups, each after those that it reads from, else as their last members were asked for.
  std::vector<Group> ordered() const {
    std::vector<std::set<Index>> after(count_);
    std::vector<std::size_t> waits(count_, 0);
    for (Index id = 0; id < count_; ++id) {
      std::vector<Index> all = members_[id];
      all.insert(all.end(), before_[id].members.begin(), before_[id].members.end());
      for (auto k : all)
        for (auto source : reads_[k])
          if (std::find(all.begin(), all.end(), source) == all.end() && after[home_[source]].insert(id).second) ++waits[id];
    }
    const auto later = [&](Index a, Index b) { return members_[a].back() > members_[b].back(); };
    std::priority_queue<Index, std::vector<Index>, decltype(later)> ready(later);
    for (Index id = 0; id < count_; ++id)
      if (!members_[id].empty() && waits[id] == 0) ready.push(id);
    std::vector<Group> result;
    while (!ready.empty()) {
      const Index id = ready.top();
      ready.pop();
      result.push_back(finished(id));
      for (auto next : after[id])
        if (--waits[next] == 0) ready.push(next);
    }
    if (std::any_of(waits.begin(), waits.end(), [](auto count) { return count != 0; }))
      throw Error("fusion: a group of operations depends on itself; this is a fault of clnet (CLNET_FUSION=0 avoids it)");
    return result;
  }

  std::span<const std::shared_ptr<Node>> nodes_;
  std::span<const Tensor> wanted_;
  const Index count_;
  const std::size_t parameter_limit_;
  std::unordered_map<const Node*, Index> index_;
  // By node:
  std::vector<bool> elementwise_, kept_;
  std::vector<bool> written_;  ///< its home writes it, because others read it
  std::vector<std::vector<Index>> reads_, readers_;
  std::vector<std::vector<Index>> parts_;  ///< those of reads_ whose elements are at other places, which one kernel cannot have
  std::vector<Index> home_;                ///< the group that it belongs to
  std::vector<std::vector<Index>> where_;  ///< all groups that compute it
  // By group:
  std::vector<std::vector<Index>> members_;  ///< in order
  std::vector<Index> head_;                  ///< an operation whose kernel ends with what the group computes
  struct Before {
    std::vector<Index> members;
    Index output = none;
  };
  std::vector<Before> before_;  ///< what the operation's kernel begins with
};

}  // namespace

NoFusion::NoFusion() { ++disabled_here; }
NoFusion::~NoFusion() { --disabled_here; }

bool fusion_enabled() {
  static const bool enabled = env::flag("CLNET_FUSION", true);
  return enabled && disabled_here == 0;
}

std::vector<Group> fuse(std::span<const std::shared_ptr<Node>> nodes, std::span<const Tensor> wanted, const DeviceInfo& device) {
  return Fusion(nodes, wanted, device)();
}

}  // namespace clnet::exec
