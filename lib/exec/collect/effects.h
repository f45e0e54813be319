// The effects of an evaluation: slots take new values, and pending values of slots are computed along the way.
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

/// A slot's new value by an update. It is built as graph, in f32 whatever the Autocast; evaluating and setting parameters are
/// errors in it. Throws Error where it gives no tensor or one of another spec.
Tensor updated(const Effect::Update& update, const Tensor& now, const Tensor& value);

/// Nothing changes before commit(): a failed evaluation leaves slots and effects as before. Several threads may evaluate shared
/// nodes; the first one that commits an effect applies it.
class Effects {
 public:
  struct Change {
    std::shared_ptr<Slot> slot;
    Tensor value;   ///< uncounted, as all tensors here
    Tensor before;  ///< the slot's first value, held so that no other gets its address
  };

  /// It lives as long as the evaluation.
  explicit Effects(std::span<const Tensor> asked);
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;

  /// The work of the wanted tensors and of all their effects, and of `more` effects.
  Work collect(const DonationOffer& offer = {}, std::span<const CallEffect> more = {});
  /// Adds the effects of the nodes, given in the program's order, and `more` effects, except those of earlier calls. Builds their
  /// new values as graph, which may have further effects. Returns false where nothing is new.
  bool add(std::span<const std::shared_ptr<Node>> nodes, std::span<const CallEffect> more = {});
  /// The wanted tensors, then the values of slots.
  std::vector<Tensor> wanted() const;
  /// Applies the effects. Call it once all of wanted() is computed; `value_of` returns the values of tensors without one (yet, or
  /// any more). Call it before other threads can find the wanted values: a reader of these relies on their effects. Returns the
  /// rest for another evaluation: all effects on slots, if another thread has changed one of them meanwhile.
  [[nodiscard]] std::vector<CallEffect> commit(const std::function<std::shared_ptr<Value>(const Tensor&)>& value_of);
  /// The changed slots and their new values.
  const std::vector<Change>& changes() const { return changes_; }

 private:
  struct Applied {
    std::shared_ptr<Effect> effect;
    std::shared_ptr<Node> node;
    std::shared_ptr<const Effect::Update> update;
    std::optional<std::size_t> change;  ///< std::nullopt where the slot is gone
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
