// Values that nobody asked for and somebody may read later: where a plan writes them anyway, they are kept until memory is short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/exec/collect/work.h"
#include "lib/graph/node.h"

namespace clnet::exec {

/// One per device. Any thread may call it.
class KeptValues {
 public:
  struct Choice {
    std::uint32_t structure = 0;  ///< a number for what the key of the plan says
    std::vector<Work::Result> kept;
  };
  /// Learns from what of the work was computed before and let go. Chooses `work.kept` and what works of the same structure turned
  /// out to need later: a loss that is read before its gradients are asked for keeps, from the second time on, what these read.
  Choice choose(const Work& work, const std::string& key);
  /// The work has been computed; `written` are the nodes, by index, whose values its plan had in memory, if only for a while.
  void computed(const Work& work, std::uint32_t structure, const std::vector<bool>& written);

  struct Kept {
    Tensor tensor;
    std::shared_ptr<Value> value;
  };
  /// The tensors were given these values without being asked for, the last `learned` of them since works of this structure turned
  /// out to need them later. Of those a structure's last few runs keep theirs: who collects the losses of all steps does not hold
  /// all their activations.
  void add(std::uint32_t structure, const std::vector<Kept>& kept, std::size_t learned);
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
  using Entries = std::list<Entry>;
  static constexpr std::size_t most_runs = 4;
  void forget_dead();
  /// Takes the value away unless somebody uses it, and hands over what is to be freed without the lock. Returns whether it is
  /// gone.
  static bool take_away(const Entry& entry, std::vector<std::shared_ptr<Node>>& nodes,
                        std::vector<std::shared_ptr<Value>>& values);

  mutable std::mutex mutex_;
  Entries entries_;                                                         ///< the oldest first
  std::unordered_map<std::uint32_t, std::deque<std::vector<Entry>>> runs_;  ///< by structure: what was learned to be kept
  std::size_t sweep_at_ = 64;
  std::unordered_map<std::uint32_t, std::set<std::uint32_t>> needed_;  ///< by structure: nodes, by index
};

}  // namespace clnet::exec
