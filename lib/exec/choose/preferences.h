// Which solver to take for a node: whoever lowers a graph asks, and tells what was taken.
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

  /// Nothing where the solvers' own order decides.
  virtual std::optional<Choice> choice(const Node& node, Packed packed) const = 0;
  /// The node was recorded with this choice.
  virtual void note(const Node& node, const Choice& choice, Packed packed) const = 0;
};

}  // namespace clnet::exec
