// Preferred solvers of nodes: lowering asks for the choice, and reports the one taken.
#pragma once

#include <optional>

#include "lib/exec/launch/recorder.h"
#include "lib/exec/options/config.h"
#include "lib/graph/node.h"

namespace clnet::exec {

class Preferences {
 public:
  Preferences() = default;
  Preferences(const Preferences&) = delete;
  Preferences& operator=(const Preferences&) = delete;
  virtual ~Preferences() = default;

  /// The preferred choice; std::nullopt: the solvers' own order decides.
  virtual std::optional<Choice> choice(const Node& node, Packed packed) const = 0;
  /// Reports that the node was recorded with this choice.
  virtual void note(const Node& node, const Choice& choice, Packed packed) const = 0;
};

}  // namespace clnet::exec
