// A group of ranks, as collectives see it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clnet/dist.h"

namespace clnet::dist {

class Engine;

struct Members {
  int id = 0;              ///< no other group's on any of its ranks
  int rank = 0;            ///< this process, among `ranks`
  std::vector<int> ranks;  ///< those of the whole job
  std::vector<std::string> hosts;
  int local_rank = 0;
  Engine* engine = nullptr;  ///< null where the job is one process

  int size() const { return static_cast<int>(ranks.size()); }
};

struct GroupAccess {
  static Group make(std::shared_ptr<const Members> members) { return Group(std::move(members)); }
  static const std::shared_ptr<const Members>& members(const Group& group) { return group.members_; }
};

inline const std::shared_ptr<const Members>& members_of(const Group& group) { return GroupAccess::members(group); }

}  // namespace clnet::dist
