// Speculative outputs: not requested, but possibly read later. Where a plan writes them anyway, they are kept until memory is
// short.
#pragma once

#include <cstddef>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/exec/collect/work.h"
#include "lib/graph/node.h"

namespace clnet::exec {

/// One per device. Any thread may call it.
class SpeculativeOutputs {
 public:
  struct Output {
    Tensor tensor;
    std::shared_ptr<Value> value;
  };
  /// Adds tensors that got values without a request.
  void add(const std::vector<Output>& outputs);
  /// Drops values without holders, the oldest first, until `bytes` bytes are free, and returns the freed bytes. A later read
  /// computes a value again.
  std::size_t evict(std::size_t bytes);
  /// Drops all of them.
  void clear() { evict(std::numeric_limits<std::size_t>::max()); }
  /// The number of outputs.
  std::size_t count() const;

 private:
  struct WeakOutput {
    std::weak_ptr<Node> node;
    int output;
    std::weak_ptr<Value> value;
  };
  void forget_dead();
  /// Takes the value away unless something holds or uses it. Free the result, and the additions to `nodes`, without the lock.
  static std::shared_ptr<Value> take_away(const WeakOutput& entry, std::vector<std::shared_ptr<Node>>& nodes);

  mutable std::mutex mutex_;
  std::list<WeakOutput> entries_;  ///< the oldest first
  std::size_t sweep_at_ = 64;
};

/// The name of a product, convolution or the like in the work that was computed before and dropped without a holder. Empty: there
/// is none, or memory was short.
std::string computed_again(const Work& work);

}  // namespace clnet::exec
