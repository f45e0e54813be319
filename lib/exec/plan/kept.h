// Values that nobody asked for and somebody may read later: where a plan writes them anyway, they are kept until memory is short.
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
class KeptValues {
 public:
  struct Kept {
    Tensor tensor;
    std::shared_ptr<Value> value;
  };
  /// The tensors were given these values without being asked for.
  void add(const std::vector<Kept>& kept);
  /// Takes values away again that nobody holds, the oldest first, until so many bytes are free. Returns how many are: a value
  /// that is read after that is computed again.
  std::size_t evict(std::size_t bytes);
  /// How many are there.
  std::size_t count() const;

 private:
  struct Entry {
    std::weak_ptr<Node> node;
    int output;
    std::weak_ptr<Value> value;
  };
  void forget_dead();
  /// Takes the value away unless somebody holds or uses it. It and what is added to `nodes` are to be freed without the lock.
  static std::shared_ptr<Value> take_away(const Entry& entry, std::vector<std::shared_ptr<Node>>& nodes);

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  ///< the oldest first
  std::size_t sweep_at_ = 64;
};

/// A product, convolution or the like of the work that was computed before and let go, as nobody held its value; empty: there is
/// none, or memory was short.
std::string computed_again(const Work& work);

}  // namespace clnet::exec
