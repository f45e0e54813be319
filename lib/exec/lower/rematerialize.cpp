#include "lib/exec/lower/rematerialize.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "lib/base/planning_steps.h"
#include "lib/exec/fuse/elementwise.h"

namespace clnet::exec {

namespace {

class Rematerialization {
 public:
  explicit Rematerialization(const Subgraph& graph) : graph_(graph), count_(graph.nodes().size()), result_(graph) {
    last_.assign(count_, 0);
    for (NodeNumber k = 0; k < count_; ++k) {
      const auto first = graph.nodes()[k]->number;
      if (graph.is_wanted(first))
        last_[k] = count_ + distance();
      else if (const auto uses = graph.uses(first); !uses.empty())
        last_[k] = uses.back().node;
    }
    repeated_.assign(count_, false);
    obtainable_.assign(count_, 0);
    // A value's source comes before it, and is decided.
    for (NodeNumber k = 0; k < count_; ++k) {
      obtainable_[k] = obtainable_before(k);
      repeated_[k] = last_[k] < count_ && last_[k] - std::min(k, last_[k]) > distance() && is_obtainable(k, last_[k]);
    }
    late_.resize(count_);
  }

  std::optional<Subgraph> operator()() && {
    for (NodeNumber k = 0; k < count_; ++k) {
      make_late_inputs(k);
      result_.put(k, copy(k, k));
    }
    if (!repeats_) return std::nullopt;
    return std::move(result_).finish();
  }

 private:
  static constexpr std::size_t always = std::numeric_limits<std::size_t>::max();

  /// Reads that come so much later than the value are late.
  std::size_t distance() const { return std::max<std::size_t>(8, count_ / 8); }

  NodeNumber producer(const Tensor& tensor) const { return graph_.producer(Subgraph::number(tensor)); }

  /// The value is there, without doing anything, at all places before this one.
  std::size_t alive_before(std::size_t k) const {
    if (k == none) return always;
    return repeated_[k] ? 0 : last_[k] + distance();
  }

  /// It can be had again at all places before this one: it is cheap, and made of one large value that is alive or obtainable
  /// there.
  std::size_t obtainable_before(std::size_t k) const {
    const auto& node = *graph_.nodes()[k];
    count_planning(1 + node.inputs.size());
    if (!is_elementwise(node) && !node.op->fusion(specs_of(node.inputs)).cheap) return 0;
    const Tensor* large = nullptr;
    for (const auto& input : node.inputs) {
      if (input.spec().bytes() * 4 < node.outputs[0].bytes()) continue;
      if (large) return 0;
      large = &input;
    }
    if (!large || output_of(*large) != 0) return 0;
    const auto source = producer(*large);
    return source != none ? std::max(alive_before(source), obtainable_[source]) : always;
  }
  bool is_obtainable(std::size_t k, std::size_t place) const { return place < obtainable_[k]; }

  /// Whether who reads the value at that place gets a copy of it.
  bool is_late(const Tensor& input, std::size_t source, std::size_t place) const {
    return source != none && output_of(input) == 0 && place - source > distance() && place >= alive_before(source) &&
           is_obtainable(source, place);
  }

  /// Makes the copies that node k reads and that nobody made before, and what those read: chains may be too long for recursion.
  void make_late_inputs(std::size_t k) {
    std::vector<std::size_t> open;
    const auto enter = [&](std::size_t reader) {
      const auto before = open.size();
      for (const auto& input : graph_.nodes()[reader]->inputs)
        if (const auto source = producer(input); is_late(input, source, k) && !late_[source]) open.push_back(source);
      count_planning(1 + open.size() - before);
      return open.size() != before;
    };
    enter(k);
    while (!open.empty()) {
      const auto source = open.back();
      if (late_[source]) {
        open.pop_back();
      } else if (!enter(source)) {
        late_[source] = copy(source, k);
        result_.add(late_[source]);
        repeats_ = true;
        open.pop_back();
      }
    }
  }

  /// A copy of node k for the place of node `place`, over the copies of what it reads late.
  std::shared_ptr<Node> copy(NodeNumber k, NodeNumber place) {
    const auto& node = *graph_.nodes()[k];
    Tensors inputs;
    for (const auto& input : node.inputs) {
      const auto source = producer(input);
      inputs.push_back(is_late(input, source, place) ? tensor_of(late_[source], 0) : result_.now(input));
    }
    return std::make_shared<Node>(node, std::move(inputs));
  }

  const Subgraph& graph_;
  const std::size_t count_;
  std::vector<std::size_t> last_;        ///< by node: the last reader of its first output; beyond all of them: it is wanted
  std::vector<bool> repeated_;           ///< by node: readers far behind it get a copy
  std::vector<std::size_t> obtainable_;  ///< by node: see obtainable_before()
  std::vector<std::shared_ptr<Node>> late_;
  Rebuilding result_;
  bool repeats_ = false;
};

}  // namespace

std::optional<Subgraph> rematerialized(const Subgraph& graph) { return Rematerialization(graph)(); }

}  // namespace clnet::exec
