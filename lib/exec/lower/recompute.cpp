#include "lib/exec/lower/recompute.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "lib/base/planning_steps.h"
#include "lib/exec/fuse/elementwise.h"

namespace clnet::exec {

namespace {

using NodePtr = std::shared_ptr<Node>;

class Rewriter {
 public:
  explicit Rewriter(const Work& work) : work_(work), count_(work.nodes.size()) {
    for (std::size_t k = 0; k < count_; ++k) index_[work.nodes[k].get()] = k;
    last_.assign(count_, 0);
    const auto read = [&](const Tensor& tensor, std::size_t reader) {
      if (const auto source = producer(tensor); source < count_ && output_of(tensor) == 0) last_[source] = reader;
    };
    for (std::size_t k = 0; k < count_; ++k)
      for (const auto& input : work.nodes[k]->inputs) read(input, k);
    for (const auto& tensor : work.wanted) read(tensor, count_ + distance());
    repeated_.assign(count_, false);
    obtainable_.assign(count_, 0);
    // A value's source comes before it, and is decided.
    for (std::size_t k = 0; k < count_; ++k) {
      obtainable_[k] = obtainable_before(k);
      repeated_[k] = last_[k] < count_ && last_[k] - std::min(k, last_[k]) > distance() && is_obtainable(k, last_[k]);
    }
    early_.resize(count_);
    late_.resize(count_);
  }

  Recomputing operator()() {
    for (std::size_t k = 0; k < count_; ++k) {
      make_late_inputs(k);
      early_[k] = copy(k, k);
    }
    for (const auto& tensor : work_.wanted) {
      const auto k = producer(tensor);
      result_.work.wanted.push_back(k < count_ ? tensor_of(early_[k], output_of(tensor)) : tensor);
    }
    result_.work.leaves = work_.leaves;
    result_.work.values = work_.values;
    return std::move(result_);
  }

 private:
  static constexpr std::size_t always = std::numeric_limits<std::size_t>::max();

  /// Reads that come so much later than the value are late.
  std::size_t distance() const { return std::max<std::size_t>(8, count_ / 8); }

  /// `count_` for leaves.
  std::size_t producer(const Tensor& tensor) const {
    if (value_of(tensor)) return count_;
    return index_.at(node_of(tensor).get());
  }

  /// The value is there, without doing anything, at all places before this one.
  std::size_t alive_before(std::size_t k) const {
    if (k >= count_) return always;
    return repeated_[k] ? 0 : last_[k] + distance();
  }

  /// It can be had again at all places before this one: it is cheap, and made of one large value that is alive or obtainable
  /// there.
  std::size_t obtainable_before(std::size_t k) const {
    const auto& node = *work_.nodes[k];
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
    return source < count_ ? std::max(alive_before(source), obtainable_[source]) : always;
  }
  bool is_obtainable(std::size_t k, std::size_t place) const { return place < obtainable_[k]; }

  /// Whether who reads the value at that place gets a copy of it.
  bool is_late(const Tensor& input, std::size_t source, std::size_t place) const {
    return source < count_ && output_of(input) == 0 && place - source > distance() && place >= alive_before(source) &&
           is_obtainable(source, place);
  }

  /// Makes the copies that node k reads and that nobody made before, and what those read: chains may be too long for recursion.
  void make_late_inputs(std::size_t k) {
    std::vector<std::size_t> open;
    const auto enter = [&](std::size_t reader) {
      const auto before = open.size();
      for (const auto& input : work_.nodes[reader]->inputs)
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
        ++result_.repeated;
        open.pop_back();
      }
    }
  }

  /// A copy of node k for the place of node `place`, over the copies of what it reads late.
  NodePtr copy(std::size_t k, std::size_t place) {
    const auto& node = *work_.nodes[k];
    Tensors inputs;
    for (const auto& input : node.inputs) {
      const auto source = producer(input);
      if (source >= count_)
        inputs.push_back(input);
      else
        inputs.push_back(tensor_of(is_late(input, source, place) ? late_[source] : early_[source], output_of(input)));
    }
    result_.work.nodes.push_back(std::make_shared<Node>(node, std::move(inputs)));
    return result_.work.nodes.back();
  }

  const Work& work_;
  const std::size_t count_;
  std::unordered_map<const Node*, std::size_t> index_;
  std::vector<std::size_t> last_;        ///< by node: the last reader of its first output; beyond all of them: it is wanted
  std::vector<bool> repeated_;           ///< by node: readers far behind it get a copy
  std::vector<std::size_t> obtainable_;  ///< by node: see obtainable_before()
  std::vector<NodePtr> early_, late_;
  Recomputing result_;
};

}  // namespace

Recomputing recompute(const Work& work) { return Rewriter(work)(); }

}  // namespace clnet::exec
