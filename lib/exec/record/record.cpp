#include "lib/exec/record/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <set>

#include "clnet/error.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/fuse/epilogue.h"
#include "lib/exec/fuse/fusion.h"
#include "lib/exec/fuse/passes.h"
#include "lib/exec/fuse/prologue.h"
#include "lib/exec/record/readers.h"
#include "lib/exec/record/value.h"

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
  std::string expr(const Specs&) const override { return "a"; }
};

/// The nodes to compute and the results to keep; in the place of returned views of less than a quarter of their memory, copies.
struct Returned {
  std::vector<std::shared_ptr<Node>> nodes;
  Tensors wanted;
};

Returned with_copies(const Work& work, std::span<const Tensor> wanted) {
  Returned result;
  std::map<std::pair<const Node*, int>, Tensor> copies;
  for (const auto& tensor : wanted) {
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

  Joined(std::span<const Group> groups, std::span<const Tensor> wanted) {
    if (!fusion_enabled()) return;
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
      if (!group.node->op->joins_inputs(specs_of(group.node->inputs))) continue;
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

}  // namespace

ValueIds record(const Work& work, std::span<const Tensor> wanted, const DeviceInfo& device, Recording& recording,
                const Tuning* tuning) {
  ValueIds ids;
  const auto to_return = with_copies(work, wanted);
  for (const auto& leaf : work.leaves) ids.set(leaf, recording.add_leaf(leaf.spec(), is_host_scalar(leaf, value_of(leaf).get())));
  const auto groups = fuse(to_return.nodes, to_return.wanted, device);
  const Joined joined(groups, to_return.wanted);
  const Passes passes(groups, to_return.wanted, device);
  const Read read(work, to_return);
  Readers readers(to_return.nodes);
  const std::function<ValueId(const Tensor&)> id_of_made = [&](const Tensor& output) {
    if (ids.contains(output)) return ids.at(output);  // its memory was needed for what it joins
    const auto id = recording.add_value(output.spec());
    ids.set(output, id);
    if (const auto* place = joined.find(output)) recording.alias(id, {id_of_made(tensor_of(place->node, 0)), place->offset});
    return id;
  };
  const auto add = [&](const Tensors& outputs) {
    std::vector<ValueId> added;
    for (const auto& output : outputs) added.push_back(id_of_made(output));
    return added;
  };
  /// A view gets its id when it is needed first.
  const auto id_of = [&](const Tensor& tensor) {
    if (!ids.contains(tensor)) {
      const auto root = root_of(tensor);
      const auto id = recording.add_value(tensor.spec());
      recording.alias(id, {ids.at(root.tensor), root.offset});
      ids.set(tensor, id);
    }
    return ids.at(tensor);
  };
  /// `hidden`: whose results are no values, but stay within a kernel.
  const auto inputs_of = [&](const std::optional<ElementwiseKernel>& kernel, const Node* hidden = nullptr) {
    std::vector<ValueId> inputs;
    if (kernel)
      for (const auto* tensors : {&kernel->buffers, &kernel->scalars})
        for (const auto& tensor : *tensors) inputs.push_back(node_of(tensor).get() == hidden ? -1 : id_of(tensor));
    return inputs;
  };
  for (std::size_t k = 0; k < groups.size(); ++k) {
    if (passes.before_end(k)) continue;
    const auto& group = groups[k];
    Tensors heads;
    recording.enter((group.node ? group.node : node_of(group.outputs[0]))->scope);
    recording.enter_part(k);
    const InPart in_part(k);
    if (group.node)
      for (std::size_t i = 0; i < group.node->outputs.size(); ++i) heads.push_back(tensor_of(group.node, static_cast<int>(i)));
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
      // What comes before it in its pass, if it is one.
      std::deque<FusedEpilogue> inner;
      std::vector<Epilogue*> inner_epilogues;
      std::vector<const Node*> chain;
      for (auto member : passes.ending_with(k)) {
        const auto& part = groups[member];
        chain.push_back(part.node.get());
        for (std::size_t i = 0; i < part.node->inputs.size(); ++i)
          node_in.push_back(i == 0 && chain.size() > 1 ? -1 : id_of(part.node->inputs[i]));
        if (member == k) continue;
        if (part.kernel)
          inner.emplace_back(*part.kernel, tensor_of(part.node, 0), whole(inputs_of(part.kernel, part.node.get())));
        inner_epilogues.push_back(part.kernel ? &inner.back() : nullptr);
      }
      if (chain.empty())
        for (const auto& input : group.node->inputs) node_in.push_back(id_of(input));
      const ReusesOf reuses(readers, *group.node);
      Recorder recorder(recording, device, std::move(node_in), head_ids, epilogue ? &*epilogue : nullptr,
                        prologue ? &*prologue : nullptr, &reuses);
      recorder.set_inner_epilogues(std::move(inner_epilogues));
      recorder.set_unread(read.unread(*group.node));
      std::optional<PreferSolver> prefer;
      const auto packed = tuning ? readers.packed(*group.node) : Packed::once;
      if (auto solver = tuning && chain.empty() ? tuning->choice(*group.node, packed) : std::nullopt)
        prefer.emplace(std::string(group.node->op->solver_list()), std::move(*solver));
      if (chain.empty())
        group.node->op->lower(recorder);
      else
        group.node->op->lower_pass(chain, recorder);
      prefer.reset();
      if (tuning)
        for (const auto& [op, choice] : recorder.chosen())
          if (op == group.node->op->solver_list()) tuning->note(*group.node, choice, packed);
      if (recorder.leaves_unanswered())
        throw Error(
            fmt::format("{}: takes an epilogue or a prologue, but neither joins nor declines it; this is a fault of clnet",
                        group.node->op->name()));
      if (group.before && recording.uses(start, made_ids[0])) {
        const auto middle = recording.commands().size();
        Recorder first(recording, device, before_in, made_ids);
        lower_elementwise(*group.before, first);
        recording.move_before(start, middle);
      }
      if (recorder.epilogue_joined()) {
        if (is_partly_finished(recording, start, head_ids[0]))
          throw Error(fmt::format("{}: only some of the launches that store its output finish it; this is a fault of clnet",
                                  group.node->op->name()));
        recording.alias(out[0], {head_ids[0], 0});
        ids.remove(heads[0]);
        continue;
      }
    }
    if (group.kernel) {
      if (is_constant(*group.kernel, group.outputs))
        for (auto id : out) recording.keep_small(id);
      Recorder recorder(recording, device, in, out);
      lower_elementwise(*group.kernel, recorder);
    }
  }
  recording.share_forms();
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!value_of(wanted[i])) ids.set(wanted[i], id_of(to_return.wanted[i]));
  return ids;
}

}  // namespace clnet::exec
