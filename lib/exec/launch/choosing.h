// The facts that decide on an operation's solver, besides the problem and the device.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/exec/options/options.h"

namespace clnet::exec {

/// The origin of a launch: its group of operations, and the solver that recorded it, if any.
struct Maker {
  std::size_t group = 0;
  std::string op = {}, solver = {};

  bool operator==(const Maker&) const = default;
};

class ListChoices;

struct Choosing {
  Options options = {};
  /// Solvers to avoid, as their kernels crash the driver's compiler: each in its group, or outside of all groups.
  std::vector<Maker> avoided = {};
  /// Receives the possible choices; may be null.
  ListChoices* list = nullptr;
  /// The group in recording; std::nullopt: none yet.
  std::optional<std::size_t> group = std::nullopt;
  /// The measured or followed solver of an operation: taken unless another is forced.
  std::optional<std::pair<std::string, Choice>> preferred = std::nullopt;
};

}  // namespace clnet::exec
