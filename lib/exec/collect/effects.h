// What an evaluation does besides computing what was asked for: slots take new values, and values of slots that were waiting are
// computed along the way.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "clnet/tensor.h"
#include "lib/exec/collect/walk.h"
#include "lib/exec/collect/work.h"
#include "lib/graph/capture.h"
#include "lib/graph/slot.h"

namespace clnet::exec {

/// Nothing is changed before commit(): an evaluation that fails leaves slots and effects as they were. Several threads may
/// evaluate nodes that they share: each effect is done by the first that commits it.
class Effects {
 public:
  struct Change {
    std::shared_ptr<Slot> slot;
    Tensor value;   ///< uncounted, as are all tensors here
    Tensor before;  ///< the slot's value that it begins with, held so that no other takes its address
  };

  /// It lives as long as the evaluation.
  explicit Effects(std::span<const Tensor> asked);
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;

  /// What was asked for and all that effects on it bring; `more` effects come besides.
  Work collect(const Giving& giving = {}, std::span<const CallEffect> more = {});
  /// Takes up what the nodes bring, which come in the program's order, `more` effects, and no earlier call has seen, and builds
  /// the new values as graph, which may bring more. False: nothing new.
  bool add(std::span<const std::shared_ptr<Node>> nodes, std::span<const CallEffect> more = {});
  /// What was asked for, then the values of slots.
  std::vector<Tensor> wanted() const;
  /// To be called once all of wanted() is computed; `value_of` gives the values of what has none (yet, or any more). To be called
  /// before others can find what was asked for: who finds that has its effects, too. Returns what remains to be done, by another
  /// evaluation: all effects on slots, if another thread has changed one of them meanwhile.
  [[nodiscard]] std::vector<CallEffect> commit(const std::function<std::shared_ptr<Value>(const Tensor&)>& value_of);
  /// The slots that change, and their new values.
  const std::vector<Change>& changes() const { return changes_; }

 private:
  struct Applied {
    std::shared_ptr<Effect> effect;
    std::shared_ptr<Node> node;
    std::shared_ptr<const Effect::Update> update;
    std::optional<std::size_t> change;  ///< nothing where the slot is gone
  };
  void apply(Applied effect);

  Walk walk_;
  std::vector<Tensor> asked_;
  std::vector<Applied> effects_;
  std::unordered_set<const void*> seen_;  ///< effects and nodes
  std::vector<Change> changes_;
  std::unordered_map<const Slot*, std::size_t> change_of_;
  std::vector<std::shared_ptr<Node>> waiting_;  ///< values of slots
};

}  // namespace clnet::exec
