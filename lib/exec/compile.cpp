// compile(): graphs that are collected once and executed with other leaves each time.
#include "clnet/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "clnet/autocast.h"
#include "clnet/error.h"
#include "lib/cl/compile_watch.h"
#include "lib/exec/collect/effects.h"
#include "lib/exec/evaluate.h"
#include "lib/exec/partitions.h"
#include "lib/graph/capture.h"
#include "lib/graph/slot.h"
#include "lib/graph/slot_scope.h"

namespace clnet {

namespace {

/// What decides about a graph or its plan besides the inputs and what the function asks for.
struct Switches {
  Dtype autocast = Autocast::dtype();
  std::string options = exec::Options::now().key();
  /// Where the graph's constants come to be, which keep it alive.
  const ocl::Context* device = ocl::chosen_device().get();
  /// Graphs read and change the slots of one replica.
  std::uint64_t slots = slots_here();
  bool operator==(const Switches&) const = default;
};

}  // namespace

/// One graph of the function.
struct Built {
  Specs inputs;
  Switches switches;
  Capture capture;
  exec::Work work;  ///< in the leaves that are other ones in each call there is nothing

  /// Those, by their index in the work.
  std::vector<std::pair<std::size_t, std::size_t>> input_leaves;
  std::vector<std::pair<std::size_t, std::shared_ptr<Slot>>> slot_leaves;
  /// In the program's order, with the leaf that it is in the work.
  std::vector<std::pair<std::optional<std::size_t>, std::function<Tensor()>>> draws;

  /// Where a value is found: among the work's results, or among its leaves as it was given.
  struct Source {
    Spec spec;
    bool computed = false;
    std::size_t index = 0;
  };
  std::vector<Source> outputs;
  std::vector<std::pair<std::shared_ptr<Slot>, Source>> changes;

  std::mutex mutex;
  std::vector<std::pair<std::weak_ptr<ocl::Context>, std::shared_ptr<exec::Plan>>> plans;
  std::shared_ptr<exec::Partitions> partitions;  ///< of the last call in which it took more than one plan

  bool serves(const std::vector<Tensor>& given, const Switches& now) const {
    return inputs.size() == given.size() && switches == now &&
           std::equal(inputs.begin(), inputs.end(), given.begin(),
                      [](const Spec& spec, const Tensor& tensor) { return spec == tensor.spec(); }) &&
           std::all_of(capture.conditions.begin(), capture.conditions.end(), [](const auto& holds) { return holds(); });
  }
};

struct CompiledCalls::Impl {
  static constexpr std::size_t most = 64;
  std::mutex mutex;
  std::list<std::shared_ptr<Built>> graphs;  ///< the last used first
  std::atomic<std::size_t> count{0};         ///< of graphs: the function may ask while it is called with the mutex held
  std::mutex turn;                           ///< of calls that change slots

  std::shared_ptr<Built> find(const std::vector<Tensor>& inputs, const Switches& switches) {
    const auto found =
        std::find_if(graphs.begin(), graphs.end(), [&](const auto& graph) { return graph->serves(inputs, switches); });
    if (found == graphs.end()) return nullptr;
    graphs.splice(graphs.begin(), graphs, found);
    return *found;
  }
};

namespace {

std::size_t index_in(const std::vector<Tensor>& list, const Tensor& tensor) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Tensor& other) { return other.same(tensor); });
  return static_cast<std::size_t>(found - list.begin());
}

/// The value as it is, or is once it has been computed: a stand-in's, too.
std::shared_ptr<Value> value_or_evaluated(const Tensor& tensor) {
  auto value = exec::asked_value_of(tensor);
  return value ? std::move(value) : exec::evaluated(tensor);
}

/// What the graph reads and was written down before `first`, or is a slot's value that waits: one value for all calls.
std::vector<Tensor> from_outside(const exec::Work& work, std::uint64_t first) {
  const auto is_outside = [&](const Node& node) { return node.order < first || node.slot != 0; };
  std::vector<Tensor> found;
  const auto look_at = [&](const Tensor& tensor) {
    if (!exec::asked_value_of(tensor) && is_outside(*node_of(tensor))) found.push_back(tensor);
  };
  for (const auto& node : work.nodes)
    if (!is_outside(*node))
      for (const auto& input : node->inputs) look_at(input);
  for (const auto& tensor : work.wanted) look_at(tensor);
  return found;
}

void require_results(const std::vector<Tensor>& results) {
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!results[i].defined()) throw Error(fmt::format("compile: result {} of the function is an undefined tensor", i));
}

std::shared_ptr<Built> build(const CompiledCalls::Function& f, const std::vector<Tensor>& inputs, const Switches& switches) {
  auto built = std::make_shared<Built>();
  built->switches = switches;
  const auto nothing = std::make_shared<InputValue>();
  std::vector<Tensor> given;
  for (const auto& input : inputs) {
    built->inputs.push_back(input.spec());
    given.push_back(make_leaf(input.spec(), nothing));
  }
  const Capturing here(&built->capture);
  const auto outputs = f(given);
  require_results(outputs);
  const auto drawn_by_f = built->capture.drawn.size();

  exec::Work work;
  std::vector<exec::Effects::Change> changes;
  for (;;) {
    // A value that came along unasked while the function evaluated is no constant: what it is made of may be drawn anew.
    exec::forget_speculative();
    exec::Effects effects(outputs);
    work = effects.collect({}, built->capture.effects);
    changes = effects.changes();
    const auto outside = from_outside(work, built->capture.first);
    // A slot's value that another thread has computed since is no value of this work yet.
    const auto waits = [](const auto& node) { return node->slot != 0; };
    if (outside.empty() && std::none_of(work.nodes.begin(), work.nodes.end(), waits)) break;
    // The next round builds the updates anew.
    auto& drawn = built->capture.drawn;
    drawn.erase(drawn.begin() + static_cast<std::ptrdiff_t>(drawn_by_f), drawn.end());
    const Capturing none(nullptr);
    eval(outside);
  }

  const auto source_of = [&](const Tensor& tensor) {
    const auto result = index_in(work.wanted, tensor);
    if (result < work.wanted.size()) return Built::Source{tensor.spec(), true, result};
    const auto leaf = index_in(work.leaves, tensor);
    if (leaf == work.leaves.size()) {
      work.leaves.push_back(tensor);
      work.values.push_back(value_or_evaluated(tensor));
    }
    return Built::Source{tensor.spec(), false, leaf};
  };
  for (const auto& output : outputs) built->outputs.push_back(source_of(output));
  for (const auto& [slot, value, before] : changes) built->changes.emplace_back(slot, source_of(value));
  auto& slots = built->capture.slots;
  auto& drawn = built->capture.drawn;
  for (std::size_t i = 0; i < work.leaves.size(); ++i) {
    const auto* node = node_of(work.leaves[i]).get();
    if (const auto input = index_in(given, work.leaves[i]); input < given.size()) {
      built->input_leaves.emplace_back(i, input);
    } else if (const auto slot = slots.find(node); slot != slots.end()) {
      built->slot_leaves.emplace_back(i, slot->second.from);
      work.values[i] = nothing;
    }
  }
  // Those that nothing reads are drawn, too: whoever draws next gets what it would get without compile().
  for (const auto& draw : drawn) {
    const auto leaf = index_in(work.leaves, draw.leaf);
    built->draws.emplace_back(leaf < work.leaves.size() ? std::optional(leaf) : std::nullopt, draw.from);
  }
  work.number();  // there are more leaves
  // Nodes of its own: the others hold the first call's values, and effects.
  built->work = exec::private_copy(work);
  slots.clear();
  built->capture.stand_ins.clear();
  drawn.clear();
  built->capture.effects.clear();
  return built;
}

/// One call of a graph: the leaves that are other ones in each, and its results.
class Call {
 public:
  /// `first`: the random numbers are those that were drawn while the graph was built.
  Call(Built& built, const std::vector<Tensor>& inputs, bool first)
      : built_(built), leaves_(built.work.leaves), values_(built.work.values) {
    evaluate_waiting(inputs);
    for (const auto& [leaf, input] : built.input_leaves) set(leaf, inputs[input]);
    if (first) return;
    for (const auto& [leaf, draw] : built.draws) {
      const Tensor next = draw();
      if (leaf) set(*leaf, next);
    }
  }

  /// Under `turn` where slots change: calls of one function, which may have several graphs, go one after the other.
  void run(std::mutex& turn) {
    std::unique_lock lock(turn, std::defer_lock);
    if (!built_.changes.empty()) lock.lock();
    while (!run_once()) {
    }
  }

  std::vector<Tensor> outputs() const {
    std::vector<Tensor> outputs;
    for (const auto& source : built_.outputs) outputs.push_back(make_leaf(source.spec, value_at(source)));
    return outputs;
  }

 private:
  /// Returns whether the slots have their new values. False: another thread has changed one of them since it was read.
  bool run_once() {
    read_slots();
    if (built_.work.nodes.empty()) {
      change_slots();
    } else if (exec::Partitions::are_needed(built_.work, values_, nullptr)) {
      run_parts();
    } else {
      run_plan();
    }
    return changed_;
  }

  static void evaluate_waiting(const std::vector<Tensor>& tensors) {
    std::vector<Tensor> waiting;
    for (const auto& tensor : tensors)
      if (!exec::asked_value_of(tensor)) waiting.push_back(tensor);
    if (!waiting.empty()) eval(waiting);
  }

  void set(std::size_t leaf, const Tensor& tensor) {
    leaves_[leaf] = tensor;
    // Evaluating others, here or in another thread, may have taken it away where memory is short.
    values_[leaf] = value_or_evaluated(tensor);
  }

  void read_slots() {
    std::vector<Tensor> now;
    {
      std::vector<Slot*> slots;
      for (const auto& [leaf, slot] : built_.slot_leaves) slots.push_back(slot.get());
      const SlotsLock lock(std::move(slots));
      for (const auto& [leaf, slot] : built_.slot_leaves) now.push_back(slot->now());
    }
    evaluate_waiting(now);
    for (std::size_t i = 0; i < now.size(); ++i) set(built_.slot_leaves[i].first, now[i]);
  }

  std::shared_ptr<Value> value_at(const Built::Source& source) const {
    return source.computed ? std::shared_ptr<Value>(results_[source.index]) : values_[source.index];
  }

  void change_slots() {
    std::vector<Tensor> next;
    for (const auto& [slot, source] : built_.changes) next.push_back(make_leaf(*slot, source.spec, value_at(source)));
    const auto is_as_read = [&](const auto& slot_leaf) {
      const auto& [leaf, slot] = slot_leaf;
      const auto changes = [&slot = slot](const auto& change) { return change.first == slot; };
      return std::none_of(built_.changes.begin(), built_.changes.end(), changes) || slot->now().same(leaves_[leaf]);
    };
    // What the slots held is freed without the lock.
    std::vector<Slot*> slots;
    for (const auto& [slot, source] : built_.changes) slots.push_back(slot.get());
    const SlotsLock lock(std::move(slots));
    changed_ = std::all_of(built_.slot_leaves.begin(), built_.slot_leaves.end(), is_as_read);
    for (std::size_t i = 0; changed_ && i < next.size(); ++i) built_.changes[i].first->swap(next[i]);
  }

  void run_parts() {
    std::shared_ptr<exec::Partitions> partitions;
    {
      const std::lock_guard lock(built_.mutex);
      if (!built_.partitions || !built_.partitions->serves(values_))
        built_.partitions = std::make_shared<exec::Partitions>(built_.work, values_, nullptr, std::span<const Tensor>());
      partitions = built_.partitions;
    }
    exec::Placements placements;
    partitions->run(leaves_, values_, options_, placements, [&](const exec::Results& made, std::span<const exec::Work::Result>) {
      results_ = made;
      change_slots();
      placements.keep();
    });
  }

  void run_plan() {
    const auto device = exec::device_of(values_, nullptr);
    const auto is_here = [&](const auto& entry) { return entry.first.lock() == device; };
    std::shared_ptr<exec::Plan> known;
    {
      const std::lock_guard lock(built_.mutex);
      const auto found = std::find_if(built_.plans.begin(), built_.plans.end(), is_here);
      if (found != built_.plans.end()) known = found->second;
    }
    auto plan = known;
    exec::Placements placements;
    exec::execute(built_.work, leaves_, values_, device, options_, plan, placements, [&](const exec::Results& made) {
      results_ = made;
      change_slots();
      placements.keep();
    });
    if (plan == known) return;
    const std::lock_guard lock(built_.mutex);
    std::erase_if(built_.plans, [&](const auto& entry) { return entry.first.expired() || is_here(entry); });
    built_.plans.emplace_back(device, plan);
  }

  Built& built_;
  const exec::Options options_ = exec::Options::now();  ///< a copy: a function of the program may end the scope that has them
  std::vector<Tensor> leaves_;
  std::vector<std::shared_ptr<Value>> values_;
  exec::Results results_;
  bool changed_ = false;
};

}  // namespace

CompiledCalls::CompiledCalls() : impl_(std::make_shared<Impl>()) {}

std::vector<Tensor> CompiledCalls::call(const Function& f, const std::vector<Tensor>& inputs) const {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].defined()) throw Error(fmt::format("compile: input {} is an undefined tensor", i));
  if (capturing()) return f(inputs);
  if (const auto refusal = exec::Options::now().refusal; !refusal.empty()) throw Error(std::string(refusal));
  ocl::require_not_telling();
  exec::apply_overdue();
  if (exec::Options::now().anomaly) {
    Capture capture;
    capture.keeps_values = true;
    const auto results = [&] {
      const Capturing here(&capture);
      return f(inputs);
    }();
    require_results(results);
    exec::evaluate_checked(results, nullptr, {}, capture.effects);
    std::vector<Tensor> values;
    for (const auto& result : results) values.push_back(result.detach());
    return values;
  }
  const Switches switches;
  std::shared_ptr<Built> built, oldest;  // what goes is freed without the lock
  bool first = false;
  {
    const std::lock_guard lock(impl_->mutex);
    built = impl_->find(inputs, switches);
    first = !built;
    if (first) {
      built = build(f, inputs, switches);
      impl_->graphs.push_front(built);
      if (impl_->graphs.size() > Impl::most) {
        oldest = std::move(impl_->graphs.back());
        impl_->graphs.pop_back();
      }
      impl_->count = impl_->graphs.size();
    } else {
      for (const auto& [what, set] : built->capture.settings) set();
    }
  }
  Call call(*built, inputs, first);
  call.run(impl_->turn);
  return call.outputs();
}

std::size_t CompiledCalls::graphs() const { return impl_->count; }

void on_compile(std::function<bool(std::size_t done, std::size_t total)> told) { ocl::watch_compiling(std::move(told)); }

}  // namespace clnet
