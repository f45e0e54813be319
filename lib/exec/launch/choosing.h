// What decides about an operation's solver besides the problem and the device.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/exec/options/options.h"

namespace clnet::exec {

/// Whose a launch is: the part of the recording that it belongs to, and the solver that recorded it, if any did.
struct Maker {
  std::size_t part = 0;
  std::string op = {}, solver = {};

  bool operator==(const Maker&) const = default;
};

class ListChoices;

struct Choosing {
  Options options = {};
  /// Solvers to be left out, as their kernels crash the driver's compiler: each in its part, and outside of all parts.
  std::vector<Maker> avoided = {};
  /// Is told what could be chosen; may be null.
  ListChoices* list = nullptr;
  /// The part that is being recorded; nothing: none yet.
  std::optional<std::size_t> part = std::nullopt;
  /// The solver of an operation that was measured or followed: taken unless another is forced.
  std::optional<std::pair<std::string, Choice>> preferred = std::nullopt;
};

}  // namespace clnet::exec
