#include "lib/exec/lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "clnet/error.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/fuse/epilogue.h"
#include "lib/exec/fuse/fusion.h"
#include "lib/exec/fuse/passes.h"
#include "lib/exec/fuse/prologue.h"
#include "lib/exec/lower/readers.h"

namespace clnet::exec {

ValueId ValueIds::find(const Tensor& tensor) const {
  const auto found = ids_.find(node_of(tensor).get());
  return found == ids_.end() ? -1 : found->second[static_cast<std::size_t>(output_of(tensor))];
}

ValueId ValueIds::at(const Tensor& tensor) const {
  const auto id = find(tensor);
  if (id < 0)
    throw Error(fmt::format("{}: its value {} is read before it is made; this is a fault of clnet",
                            node_of(tensor)->op ? node_of(tensor)->op->name() : "a leaf", to_string(tensor.spec())));
  return id;
}

void ValueIds::set(const Tensor& tensor, ValueId id) {
  auto& outputs = ids_[node_of(tensor).get()];
  outputs.resize(node_of(tensor)->outputs.size(), -1);
  outputs[static_cast<std::size_t>(output_of(tensor))] = id;
}

namespace {

/// What a small part of a larger value is returned as, so that it does not keep all of that.
class Copy : public Op {
 public:
  std::string_view name() const override { return "copy"; }
  Specs infer(const Specs& inputs) const override { return inputs; }
  Expression expr(const Specs&) const override { return {"a"}; }
};

/// The nodes to compute and the results to keep; in the place of returned views of less than a quarter of their memory, copies.
struct Returned {
  std::vector<std::shared_ptr<Node>> nodes;
  Tensors wanted;
};

Returned with_copies(const Work& work) {
  Returned result;
  std::map<std::pair<const Node*, int>, Tensor> copies;
  for (const auto& tensor : work.wanted) {
    result.wanted.push_back(tensor);
    if (4 * tensor.spec().bytes() >= root_of(tensor).tensor.spec().bytes()) continue;
    auto& copy = copies[{node_of(tensor).get(), output_of(tensor)}];
    if (!copy.defined())
      copy = tensor_of(std::make_shared<Node>(std::make_shared<Copy>(), Tensors{tensor}, Specs{tensor.spec()}), 0);
    result.wanted.back() = copy;
  }
  for (const auto& node : work.nodes) {
    result.nodes.push_back(node);
    for (auto copy = copies.lower_bound({node.get(), 0}); copy != copies.end() && copy->first.first == node.get(); ++copy)
      result.nodes.push_back(node_of(copy->second));
  }
  return result;
}

/// Small values that are made from leaves only, such as the scale of a batch normalisation in inference, are made but twice.
bool is_constant(const ElementwiseKernel& kernel, const Tensors& outputs) {
  constexpr std::int64_t most_elements = 1 << 16;
  return !kernel.buffers.empty() && outputs[0].numel() <= most_elements &&
         std::all_of(kernel.buffers.begin(), kernel.buffers.end(),
                     [](const Tensor& buffer) { return value_of(root_of(buffer).tensor) != nullptr; });
}

/// Whether a command from `first` on writes the value without finishing it by the operations that others finish it by.
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

/// Finds what may be computed in the memory of an operation that joins it with other values. By node and output: the operation
/// and the place of the first element.
class Joined {
 public:
  struct Place {
    std::shared_ptr<Node> node;
    std::int64_t offset;
  };

  Joined(std::span<const Group> groups, std::span<const Tensor> wanted, bool joins) {
    if (!joins) return;
    std::set<Key> free;
    for (const auto& group : groups) {
      // What ends a kernel with a head is written to two places where the head does not take it.
      if (group.kernel && (group.node || is_constant(*group.kernel, group.outputs))) continue;
      for (const auto& output : group.outputs) free.insert(key(output));
      if (group.node)
        for (std::size_t i = 0; i < group.node->outputs.size(); ++i) free.insert({group.node.get(), static_cast<int>(i)});
    }
    for (const auto& tensor : wanted) free.erase(key(root_of(tensor).tensor));
    // The last first: what it joins may be joined of others in turn.
    for (auto at = groups.rbegin(); at != groups.rend(); ++at) {
      const auto& group = *at;
      if (!group.node || group.kernel || group.before) continue;
      if (!group.node->op->fusion(specs_of(group.node->inputs)).joins_inputs) continue;
      const auto* outer = find(tensor_of(group.node, 0));
      auto place = outer ? *outer : Place{group.node, 0};
      for (const auto& input : group.node->inputs) {
        const auto source = source_of(input);
        const auto bytes = place.offset * static_cast<std::int64_t>(size_of(input.dtype()));
        // Kernels may count on whole cache lines at the beginning of a value.
        constexpr std::int64_t line = 64;
        if (input.numel() > 0 && bytes % line == 0 && free.erase(key(source)) != 0) places_[key(source)] = place;
        place.offset += input.numel();
      }
    }
  }

  const Place* find(const Tensor& tensor) const {
    const auto found = places_.find(key(tensor));
    return found == places_.end() ? nullptr : &found->second;
  }

 private:
  using Key = std::pair<const Node*, int>;
  static Key key(const Tensor& tensor) { return {node_of(tensor).get(), output_of(tensor)}; }

  std::map<Key, Place> places_;
};

/// Which outputs of nodes are read, asked for, or to be kept where they are written.
class Read {
 public:
  Read(const Work& work, const Returned& returned) {
    for (const auto& node : returned.nodes)
      for (const auto& input : node->inputs) add(input);
    for (const auto& tensor : returned.wanted) add(tensor);
    for (const auto& result : work.kept) add(work.tensor(result));
  }
  std::set<std::size_t> unread(const Node& node) const {
    std::set<std::size_t> result;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (read_.count({&node, static_cast<int>(i)}) == 0) result.insert(i);
    return result;
  }

 private:
  void add(const Tensor& tensor) { read_.emplace(node_of(tensor).get(), output_of(tensor)); }
  std::set<std::pair<const Node*, int>> read_;
};

class ReusesOf : public Reuses {
 public:
  ReusesOf(Readers& readers, const Node& node) : readers_(readers), node_(node) {}
  Reuse of(std::size_t input) const override { return readers_.of(node_, input); }

 private:
  Readers& readers_;
  const Node& node_;
};

std::vector<Ref> whole(const std::vector<ValueId>& values) {
  std::vector<Ref> refs;
  for (auto value : values) refs.push_back({value, 0});
  return refs;
}

class WorkLowering {
 public:
  WorkLowering(const Work& work, const DeviceInfo& device, Lowering how)
      : work_(work),
        device_(device),
        preferences_(how.preferences),
        choosing_{.options = std::move(how.options), .avoided = std::move(how.avoided), .list = how.list},
        to_return_(with_copies(work)),
        groups_(fuse(to_return_.nodes, to_return_.wanted, device, choosing_.options.fuses)),
        joined_(groups_, to_return_.wanted, choosing_.options.fuses),
        passes_(groups_, to_return_.wanted, device, choosing_),
        read_(work, to_return_),
        readers_(to_return_.nodes) {
    recording_.set_lengths(std::move(how.lengths));
  }

  Lowered operator()() && {
    for (const auto& leaf : work_.leaves)
      ids_.set(leaf, recording_.add_leaf(leaf.spec(), is_host_scalar(leaf, value_of(leaf).get())));
    for (std::size_t k = 0; k < groups_.size(); ++k)
      if (!passes_.before_end(k)) add_group(k);
    recording_.share_forms();
    std::vector<ValueId> results;
    for (std::size_t i = 0; i < work_.wanted.size(); ++i) {
      results.push_back(id_of(to_return_.wanted[i]));
      ids_.set(work_.wanted[i], results.back());
    }
    return {std::move(recording_), std::move(ids_), std::move(results)};
  }

 private:
  /// Of what a launch is about to make.
  ValueId new_id(const Tensor& output) {
    if (ids_.contains(output)) return ids_.at(output);  // its memory was needed for what it joins
    const auto id = recording_.add_value(output.spec());
    ids_.set(output, id);
    if (const auto* place = joined_.find(output)) recording_.alias(id, {new_id(tensor_of(place->node, 0)), place->offset});
    return id;
  }

  std::vector<ValueId> new_ids(const Tensors& outputs) {
    std::vector<ValueId> ids;
    for (const auto& output : outputs) ids.push_back(new_id(output));
    return ids;
  }

  /// Of what is there; a view gets its id when it is needed first.
  ValueId id_of(const Tensor& tensor) {
    if (!ids_.contains(tensor)) {
      const auto root = root_of(tensor);
      const auto id = recording_.add_value(tensor.spec());
      recording_.alias(id, {ids_.at(root.tensor), root.offset});
      ids_.set(tensor, id);
    }
    return ids_.at(tensor);
  }

  /// `hidden`: whose results are no values, but stay within a kernel.
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
    recording_.enter_part(k);
    choosing_.part = k;
    Tensors heads;
    if (group.node)
      for (std::size_t i = 0; i < group.node->outputs.size(); ++i) heads.push_back(tensor_of(group.node, static_cast<int>(i)));
    const auto start = recording_.commands().size();
    const Made made{.before = group.before ? std::optional(new_id(group.before_output)) : std::nullopt,
                    .heads = new_ids(heads),
                    .outputs = new_ids(group.outputs)};
    const auto inputs = inputs_of(group.kernel);
    if (group.node && add_node(k, start, made, inputs)) {
      recording_.alias(made.outputs[0], {made.heads[0], 0});
      ids_.remove(heads[0]);
      return;
    }
    if (!group.kernel) return;
    if (is_constant(*group.kernel, group.outputs))
      for (auto id : made.outputs) recording_.keep_small(id);
    Recorder recorder(recording_, device_, choosing_, inputs, made.outputs);
    lower_elementwise(*group.kernel, recorder);
  }

  /// What a group makes.
  struct Made {
    std::optional<ValueId> before;  ///< by its elementwise kernel in front of the node
    std::vector<ValueId> heads;     ///< by its node
    std::vector<ValueId> outputs;   ///< by its elementwise kernel
  };

  /// The group's node, with what comes before it in its pass, if it is one's end. Whether its launches finish their elements by
  /// the group's elementwise kernel, whose inputs are given.
  bool add_node(std::size_t k, std::size_t start, const Made& made, const std::vector<ValueId>& kernel_inputs) {
    const auto& group = groups_[k];
    const auto before_inputs = inputs_of(group.before);
    std::optional<FusedEpilogue> epilogue;
    std::optional<FusedPrologue> prologue;
    if (group.kernel) epilogue.emplace(*group.kernel, tensor_of(group.node, 0), whole(kernel_inputs));
    if (group.before) prologue.emplace(*group.before, *made.before, whole(before_inputs));

    std::vector<ValueId> inputs;
    std::deque<FusedEpilogue> inner;
    std::vector<Epilogue*> inner_epilogues;
    std::vector<const Node*> pass;
    for (auto member : passes_.ending_with(k)) {
      const auto& part = groups_[member];
      pass.push_back(part.node.get());
      for (std::size_t i = 0; i < part.node->inputs.size(); ++i)
        inputs.push_back(i == 0 && pass.size() > 1 ? -1 : id_of(part.node->inputs[i]));
      if (member == k) continue;
      if (part.kernel) inner.emplace_back(*part.kernel, tensor_of(part.node, 0), whole(inputs_of(part.kernel, part.node.get())));
      inner_epilogues.push_back(part.kernel ? &inner.back() : nullptr);
    }
    if (pass.empty())
      for (const auto& input : group.node->inputs) inputs.push_back(id_of(input));

    const ReusesOf reuses(readers_, *group.node);
    Recorder recorder(recording_, device_, choosing_, std::move(inputs), made.heads, epilogue ? &*epilogue : nullptr,
                      prologue ? &*prologue : nullptr, &reuses);
    recorder.set_inner_epilogues(std::move(inner_epilogues));
    recorder.set_unread(read_.unread(*group.node));
    record(*group.node, pass, recorder);
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

  /// By the solver that is preferred; `pass`: the operations that one kernel makes, of which the node is the last, or none.
  void record(const Node& node, const std::vector<const Node*>& pass, Recorder& recorder) {
    const auto packed = preferences_ ? readers_.packed(node) : Packed::once;
    const std::string list(solver_list(node));
    if (auto choice = preferences_ && pass.empty() ? preferences_->choice(node, packed) : std::nullopt)
      choosing_.preferred.emplace(list, std::move(*choice));
    if (pass.empty())
      node.op->lower(recorder);
    else
      node.op->lower_pass(pass, recorder);
    choosing_.preferred.reset();
    // What is forced is a test or a trial.
    if (!preferences_ || choosing_.options.solver(list)) return;
    for (const auto& [op, choice] : recorder.chosen())
      if (op == list) preferences_->note(node, choice, packed);
  }

  const Work& work_;
  const DeviceInfo& device_;
  const Preferences* preferences_;
  Choosing choosing_;
  Returned to_return_;
  std::vector<Group> groups_;
  Joined joined_;
  Passes passes_;
  Read read_;
  Readers readers_;
  Recording recording_;
  ValueIds ids_;
};

}  // namespace

Lowered lower(const Work& work, const DeviceInfo& device, Lowering how) { return WorkLowering(work, device, std::move(how))(); }

}  // namespace clnet::exec
