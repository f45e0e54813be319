// Speculative outputs: not requested, but possibly read later. Where a plan writes them anyway, they are kept until memory is
// short.
#pragma once

#include <cstddef>
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
  SpeculativeOutputs();
  ~SpeculativeOutputs();
  SpeculativeOutputs(const SpeculativeOutputs&) = delete;
  SpeculativeOutputs& operator=(const SpeculativeOutputs&) = delete;
  struct Output {
    Tensor tensor;
    std::shared_ptr<Value> value;
  };
  /// Adds tensors that got values without a request.
  void add(const std::vector<Output>& outputs);
  /// Drops values that nothing reads now, the oldest first, until `bytes` bytes are free, and returns the freed bytes. A later
  /// read computes a value again.
  std::size_t evict(std::size_t bytes);
  /// Drops all of them, whatever still reads them.
  void clear();
  /// The same on all devices.
  static void clear_all();
  /// The number of outputs.
  std::size_t count() const;

 private:
  struct WeakOutput {
    std::weak_ptr<Node> node;
    int output;
    std::weak_ptr<Value> value;
  };
  /// Freed without a lock: that may run the program's functions.
  using Held = std::vector<std::shared_ptr<Node>>;
  /// Whether the value is there and speculative still.
  static bool is_kept(const WeakOutput& entry, Held& held);
  void forget_dead(Held& held);
  /// Freed without a lock: that may free a device.
  struct Taken {
    std::vector<std::shared_ptr<Node>> nodes;
    std::vector<std::shared_ptr<Value>> values;
  };
  /// Takes values away, with `sole` those that nothing reads now, until `bytes` bytes are free.
  std::size_t take_away(std::size_t bytes, bool sole, Taken& taken);

  mutable std::mutex mutex_;
  std::list<WeakOutput> entries_;  ///< the oldest first
  std::size_t sweep_at_ = 64;
};

/// The name of a product, convolution or the like in the work that was computed before, and whose value was not kept: nothing
/// held it, or it was fused away. Empty: there is none, or memory was short.
std::string computed_again(const Work& work);

}  // namespace clnet::exec
