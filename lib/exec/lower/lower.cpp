#include "lib/exec/lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "clnet/error.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/fuse/epilogue.h"
#include "lib/exec/fuse/fusion.h"
#include "lib/exec/fuse/prologue.h"
#include "lib/exec/lower/readers.h"
#include "lib/exec/lower/rewrite.h"

namespace clnet::exec {

ValueId ValueIds::at(const Tensor& tensor) const {
  const auto id = ids_[Subgraph::number(tensor)];
  if (id < 0)
    throw Error(fmt::format("{}: its value {} is read before it is made; this is a fault of clnet",
                            node_of(tensor)->op ? node_of(tensor)->op->name() : "a leaf", to_string(tensor.spec())));
  return id;
}

namespace {

/// Whether the kernel makes small values from leaves only, such as the scale of a batch normalisation in inference. These are
/// made only twice.
bool is_constant(const ElementwiseKernel& kernel, const Tensors& outputs, const Subgraph& graph) {
  constexpr std::int64_t most_elements = 1 << 16;
  return !kernel.buffers.empty() && outputs[0].numel() <= most_elements &&
         std::all_of(kernel.buffers.begin(), kernel.buffers.end(),
                     [&](const Tensor& buffer) { return graph.is_leaf(graph.root(buffer).value); });
}

/// Whether a command from `first` on writes the value without its epilogue, while others apply it.
bool is_partly_finished(const Recording& recording, std::size_t first, ValueId id) {
  const auto& commands = recording.commands();
  return std::any_of(commands.begin() + static_cast<std::ptrdiff_t>(first), commands.end(), [&](const Command& command) {
    bool writes = false;
    for_each_ref(command, [&](Ref ref, bool written) {
      writes = writes || (written && recording.value(ref.value).root == recording.value(id).root);
    });
    const auto* launch = std::get_if<Launch>(&command);
    return writes && !(launch && launch->program().defines.count("EPILOGUE_BODY"));
  });
}

/// Finds the values that may be computed in the memory of an operation that joins them with others.
class Joined {
 public:
  struct Place {
    std::shared_ptr<Node> node;  ///< the operation; null: none
    std::int64_t offset = 0;     ///< offset of the first element there
  };

  Joined(std::span<const Group> groups, const Subgraph& graph, bool joins) : places_(graph.value_count()) {
    if (!joins) return;
    std::vector<bool> free(graph.value_count());
    for (const auto& group : groups) {
      // An epilogue that its head rejects would be written to two places.
      if (group.kernel && (group.node || is_constant(*group.kernel, group.outputs, graph))) continue;
      for (const auto& output : group.outputs) free[Subgraph::number(output)] = true;
      if (group.node)
        for (std::size_t i = 0; i < group.node->outputs.size(); ++i) free[group.node->number + i] = true;
    }
    for (const auto& tensor : graph.wanted()) free[graph.root(tensor).value] = false;
    // The last one first: its inputs may be joined values themselves.
    for (auto at = groups.rbegin(); at != groups.rend(); ++at) {
      const auto& group = *at;
      if (!group.node || group.kernel || group.before) continue;
      if (!group.node->op->fusion(specs_of(group.node->inputs)).joins_inputs) continue;
      const auto& outer = places_[group.node->number];
      auto place = outer.node ? outer : Place{group.node, 0};
      for (const auto& input : group.node->inputs) {
        const auto source = Subgraph::number(source_of(input));
        const auto bytes = place.offset * static_cast<std::int64_t>(size_of(input.dtype()));
        // Kernels may count on whole cache lines at the beginning of a value.
        constexpr std::int64_t line = 64;
        if (input.numel() > 0 && bytes % line == 0 && free[source]) {
          free[source] = false;
          places_[source] = place;
        }
        place.offset += input.numel();
      }
    }
  }

  const Place& operator[](const Tensor& tensor) const { return places_[Subgraph::number(tensor)]; }

 private:
  std::vector<Place> places_;  ///< by value
};

/// The outputs of a node that nothing reads, wants or keeps.
std::set<std::size_t> unread_outputs(const Subgraph& graph, const Node& node) {
  std::set<std::size_t> result;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const auto value = node.number + static_cast<ValueNumber>(i);
    if (graph.uses(value).empty() && !graph.is_wanted(value) && !graph.is_speculative(value)) result.insert(i);
  }
  return result;
}

/// The fused groups of the operations' rewrites, by the group that records each.
class GroupsToFuse {
 public:
  GroupsToFuse(std::span<const Group> groups, const Subgraph& graph, const DeviceInfo& device, const Choosing& choosing)
      : ending_(groups.size()), inner_(groups.size()) {
    if (!choosing.options.fuses) return;
    for (const auto* rewrite : rewrites_of(graph))
      for (auto& fused : rewrite->fused_groups(groups, graph, device, choosing)) {
        const auto end = fused.groups.back();
        for (const auto group : fused.groups) inner_[group] = group != end;
        ending_[end] = std::move(fused);
      }
  }

  /// Whether a later group records this one.
  bool is_inner(std::size_t group) const { return inner_[group]; }
  /// The fused groups that end with this one; std::nullopt: the group is computed alone.
  const std::optional<Rewrite::FusedGroups>& ending_with(std::size_t group) const { return ending_[group]; }

 private:
  std::vector<std::optional<Rewrite::FusedGroups>> ending_;
  std::vector<bool> inner_;
};

class ReaderCountsOf : public ReaderCounts {
 public:
  ReaderCountsOf(Readers& readers, const Node& node) : readers_(readers), node_(node) {}
  EqualReaders of(std::size_t input) const override { return readers_.of(node_, input); }

 private:
  Readers& readers_;
  const Node& node_;
};

std::vector<Ref> whole(const std::vector<ValueId>& values) {
  std::vector<Ref> refs;
  for (auto value : values) refs.push_back({value, 0});
  return refs;
}

class SubgraphLowering {
 public:
  SubgraphLowering(const Subgraph& graph, const DeviceInfo& device, Lowering how)
      : graph_(graph),
        device_(device),
        preferences_(how.preferences),
        choosing_{.options = std::move(how.options), .avoided = std::move(how.avoided), .list = how.list},
        groups_(fuse(graph, device, choosing_.options.fuses)),
        joined_(groups_, graph, choosing_.options.fuses),
        fused_groups_(groups_, graph, device, choosing_),
        readers_(graph),
        ids_(graph) {
    recording_.set_lengths(std::move(how.lengths));
  }

  Lowered operator()() && {
    if (!device_.fp64)
      for (const auto& node : graph_.nodes())
        if (computes_f64(*node))
          throw Unsupported(fmt::format("{}: {} has no doubles (cl_khr_fp64) for f64", node->op->name(), device_.name));
    for (const auto& leaf : graph_.leaves())
      ids_.set(leaf, recording_.add_leaf(leaf.spec(), is_host_scalar(leaf, value_of(leaf).get())));
    for (std::size_t k = 0; k < groups_.size(); ++k)
      if (!fused_groups_.is_inner(k)) add_group(k);
    recording_.merge_prepacks();
    recording_.move_early_calls();
    std::vector<ValueId> results;
    for (const auto& tensor : graph_.wanted()) results.push_back(id_of(tensor));
    return {std::move(recording_), std::move(ids_), std::move(results)};
  }

 private:
  /// The id of a value that a launch is about to make.
  ValueId new_id(const Tensor& output) {
    if (ids_.contains(output)) return ids_.at(output);  // its inputs needed its memory already
    const auto id = recording_.add_value(output.spec());
    ids_.set(output, id);
    if (const auto& place = joined_[output]; place.node) recording_.alias(id, {new_id(tensor_of(place.node, 0)), place.offset});
    return id;
  }

  std::vector<ValueId> new_ids(const Tensors& outputs) {
    std::vector<ValueId> ids;
    for (const auto& output : outputs) ids.push_back(new_id(output));
    return ids;
  }

  /// The id of an existing value; a view gets its id when first needed.
  ValueId id_of(const Tensor& tensor) {
    if (!ids_.contains(tensor)) {
      const auto root = root_of(tensor);
      const auto id = recording_.add_value(tensor.spec());
      recording_.alias(id, {ids_.at(root.tensor), root.offset});
      ids_.set(tensor, id);
    }
    return ids_.at(tensor);
  }

  /// `hidden`: a node whose results stay within a kernel and have no ids.
  std::vector<ValueId> inputs_of(const std::optional<ElementwiseKernel>& kernel, const Node* hidden = nullptr) {
    std::vector<ValueId> inputs;
    if (kernel)
      for (const auto* tensors : {&kernel->buffers, &kernel->scalars})
        for (const auto& tensor : *tensors) inputs.push_back(node_of(tensor).get() == hidden ? -1 : id_of(tensor));
    return inputs;
  }

  void add_group(std::size_t k) {
    const auto& group = groups_[k];
    recording_.enter((group.node ? group.node : node_of(group.outputs[0]))->scope);
    recording_.enter_group(k);
    choosing_.group = k;
    Tensors heads;
    if (group.node)
      for (std::size_t i = 0; i < group.node->outputs.size(); ++i) heads.push_back(tensor_of(group.node, static_cast<int>(i)));
    const auto start = recording_.commands().size();
    const GroupValues made{.before = group.before ? std::optional(new_id(group.before_output)) : std::nullopt,
                           .heads = new_ids(heads),
                           .outputs = new_ids(group.outputs)};
    const auto inputs = inputs_of(group.kernel);
    if (group.node && add_node(k, start, made, inputs)) {
      recording_.alias(made.outputs[0], {made.heads[0], 0});
      ids_.remove(heads[0]);
      return;
    }
    if (!group.kernel) return;
    if (is_constant(*group.kernel, group.outputs, graph_))
      for (auto id : made.outputs) recording_.keep_small(id);
    Recorder recorder(recording_, device_, choosing_, inputs, made.outputs);
    lower_elementwise(*group.kernel, recorder);
  }

  /// The values that a group makes.
  struct GroupValues {
    std::optional<ValueId> before;  ///< by its elementwise kernel in front of the node
    std::vector<ValueId> heads;     ///< by its node
    std::vector<ValueId> outputs;   ///< by its elementwise kernel
  };

  /// Records the group's node, with the groups fused before it, if it ends them. Returns whether its launches apply the group's
  /// elementwise kernel, whose inputs are given.
  bool add_node(std::size_t k, std::size_t start, const GroupValues& made, const std::vector<ValueId>& kernel_inputs) {
    const auto& group = groups_[k];
    const auto before_inputs = inputs_of(group.before);
    std::optional<FusedEpilogue> epilogue;
    std::optional<FusedPrologue> prologue;
    if (group.kernel) epilogue.emplace(*group.kernel, tensor_of(group.node, 0), whole(kernel_inputs));
    if (group.before) prologue.emplace(*group.before, *made.before, whole(before_inputs));

    std::vector<ValueId> inputs;
    std::deque<FusedEpilogue> inner;
    std::vector<Epilogue*> inner_epilogues;
    const auto& fused = fused_groups_.ending_with(k);
    for (auto member : fused ? fused->groups : std::vector{k}) {
      const auto& part = groups_[member];
      for (std::size_t i = 0; i < part.node->inputs.size(); ++i)
        inputs.push_back(i == 0 && !inputs.empty() ? -1 : id_of(part.node->inputs[i]));
      if (member == k) continue;
      if (part.kernel) inner.emplace_back(*part.kernel, tensor_of(part.node, 0), whole(inputs_of(part.kernel, part.node.get())));
      inner_epilogues.push_back(part.kernel ? &inner.back() : nullptr);
    }

    const ReaderCountsOf counts(readers_, *group.node);
    Recorder recorder(recording_, device_, choosing_, std::move(inputs), made.heads, epilogue ? &*epilogue : nullptr,
                      prologue ? &*prologue : nullptr, &counts);
    recorder.set_inner_epilogues(std::move(inner_epilogues));
    recorder.set_unread(unread_outputs(graph_, *group.node));
    record(*group.node, fused, recorder);
    if (recorder.leaves_unanswered())
      throw Error(fmt::format("{}: takes an epilogue or a prologue, but neither joins nor declines it; this is a fault of clnet",
                              group.node->op->name()));
    if (made.before && recording_.uses(start, *made.before)) {
      const auto middle = recording_.commands().size();
      Recorder first(recording_, device_, choosing_, before_inputs, {*made.before});
      lower_elementwise(*group.before, first);
      recording_.move_before(start, middle);
    }
    if (recorder.epilogue_joined() && is_partly_finished(recording_, start, made.heads[0]))
      throw Error(fmt::format("{}: only some of the launches that store its output finish it; this is a fault of clnet",
                              group.node->op->name()));
    return recorder.epilogue_joined();
  }

  /// Records by the preferred solver, or as the end of fused groups.
  void record(const Node& node, const std::optional<Rewrite::FusedGroups>& fused, Recorder& recorder) {
    const auto packed = preferences_ ? readers_.packed(node) : Packed::once;
    const std::string list(solver_list(node));
    if (auto choice = preferences_ && !fused ? preferences_->choice(node, packed) : std::nullopt)
      choosing_.preferred.emplace(list, std::move(*choice));
    if (fused)
      fused->lower(recorder);
    else
      node.op->lower(recorder);
    choosing_.preferred.reset();
    // A forced solver is a test or a trial.
    if (!preferences_ || choosing_.options.solver(list)) return;
    for (const auto& [op, choice] : recorder.chosen())
      if (op == list) preferences_->note(node, choice, packed);
  }

  const Subgraph& graph_;
  const DeviceInfo& device_;
  const Preferences* preferences_;
  Choosing choosing_;
  std::vector<Group> groups_;
  Joined joined_;
  GroupsToFuse fused_groups_;
  Readers readers_;
  Recording recording_;
  ValueIds ids_;
};

}  // namespace

Lowered lower(const Subgraph& graph, const DeviceInfo& device, Lowering how) {
  return SubgraphLowering(graph, device, std::move(how))();
}

}  // namespace clnet::exec
