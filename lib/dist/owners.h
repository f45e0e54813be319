// Bytes that one rank each has, on all ranks.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "clnet/dist.h"

namespace clnet::dist {

/// Some bytes, which `owner` of the group has.
struct Owned {
  int owner = 0;
  std::size_t bytes = 0;
  std::function<void(std::byte* to)> read = nullptr;           ///< called on the owner alone
  std::function<void(const std::byte* from)> write = nullptr;  ///< called on the others
};

/// Has all of them on all ranks. All ranks call it with equal owners and sizes. Those of one owner travel together, and while
/// some are written, others are on their way. Throws RankLost.
void from_owners(const std::vector<Owned>& values, const Group& group);

}  // namespace clnet::dist
