#include "lib/exec/plan/recompute.h"

#include <algorithm>
#include <unordered_map>

#include "lib/exec/generate/elementwise.h"

namespace clnet::exec {

namespace {

using NodePtr = std::shared_ptr<Node>;

class Rewriter {
 public:
  explicit Rewriter(const Work& work) : work_(work), count_(work.nodes.size()) {
    for (std::size_t k = 0; k < count_; ++k) index_[work.nodes[k].get()] = k;
    last_.assign(count_, 0);
    const auto read = [&](const Tensor& tensor, std::size_t reader) {
      if (const auto source = producer(tensor); source < count_ && tensor.output() == 0) last_[source] = reader;
    };
    for (std::size_t k = 0; k < count_; ++k)
      for (const auto& input : work.nodes[k]->inputs) read(input, k);
    for (const auto& tensor : work.wanted) read(tensor, count_ + distance());
    repeated_.assign(count_, false);
    for (std::size_t k = 0; k < count_; ++k)
      repeated_[k] = last_[k] < count_ && last_[k] - std::min(k, last_[k]) > distance() && is_obtainable(k, last_[k]);
    early_.resize(count_);
    late_.resize(count_);
  }

  Recomputing operator()() {
    for (std::size_t k = 0; k < count_; ++k) early_[k] = copy(k, k);
    for (const auto& tensor : work_.wanted) {
      const auto k = producer(tensor);
      result_.work.wanted.push_back(k < count_ ? Tensor(early_[k], tensor.output()) : tensor);
    }
    result_.work.leaves = work_.leaves;
    result_.work.values = work_.values;
    return std::move(result_);
  }

 private:
  /// Reads that come so much later than the value are late.
  std::size_t distance() const { return std::max<std::size_t>(8, count_ / 8); }

  /// `count_` for leaves.
  std::size_t producer(const Tensor& tensor) const {
    if (value_of(tensor)) return count_;
    return index_.at(tensor.node().get());
  }

  /// Whether the value is there at that place without doing anything.
  bool is_alive(std::size_t k, std::size_t place) const {
    return k >= count_ || (!repeated_[k] && last_[k] + distance() > place);
  }

  /// Whether it is cheap, and made of one large value that is alive or obtainable at that place.
  bool is_obtainable(std::size_t k, std::size_t place) const {
    const auto& node = *work_.nodes[k];
    if (!is_elementwise(node) && !node.op->is_cheap()) return false;
    const Tensor* large = nullptr;
    for (const auto& input : node.inputs) {
      if (input.spec().bytes() * 4 < node.outputs[0].bytes()) continue;
      if (large) return false;
      large = &input;
    }
    if (!large || large->output() != 0) return false;
    const auto source = producer(*large);
    return is_alive(source, place) || is_obtainable(source, place);
  }

  /// A copy of node k for the place of node `place`; what it reads from far before is computed again, if it is not there.
  NodePtr copy(std::size_t k, std::size_t place) {
    const auto& node = *work_.nodes[k];
    Tensors inputs;
    for (const auto& input : node.inputs) {
      const auto source = producer(input);
      if (source >= count_) {
        inputs.push_back(input);
      } else if (input.output() == 0 && place - source > distance() && !is_alive(source, place) && is_obtainable(source, place)) {
        if (!late_[source]) {
          late_[source] = copy(source, place);
          ++result_.repeated;
        }
        inputs.emplace_back(late_[source], input.output());
      } else {
        inputs.emplace_back(early_[source], input.output());
      }
    }
    result_.work.nodes.push_back(std::make_shared<Node>(node.op, std::move(inputs), node.outputs));
    return result_.work.nodes.back();
  }

  const Work& work_;
  const std::size_t count_;
  std::unordered_map<const Node*, std::size_t> index_;
  std::vector<std::size_t> last_;  ///< by node: the last reader of its first output; beyond all of them: it is wanted
  std::vector<bool> repeated_;     ///< by node: readers far behind it get a copy
  std::vector<NodePtr> early_, late_;
  Recomputing result_;
};

}  // namespace

Recomputing recompute(const Work& work) { return Rewriter(work)(); }

}  // namespace clnet::exec
