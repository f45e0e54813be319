// Early host calls: gradients are on their way to other ranks while the backward pass goes on.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lib/exec/launch/recorder.h"

namespace clnet::exec {

namespace {

bool is_early(const Command& command) {
  const auto* call = std::get_if<HostCall>(&command);
  return call && call->early;
}

bool ends_early(const Command& command) {
  const auto* call = std::get_if<HostCall>(&command);
  return call && call->ends_early;
}

/// Who reads a root value behind the command in question.
struct ReadBy {
  bool early_call = false, other = false;
  std::optional<std::size_t> group = {};  ///< the one whose moved launches read it
};

/// Which commands move: early calls, and launches whose results only they read. Of a group of several launches, all do that serve
/// its last one alone. A cast of a gradient is such a launch.
std::vector<bool> moved_commands(const Recording& recording) {
  const auto& commands = recording.commands();
  std::vector<ReadBy> readers(recording.value_count());
  const auto readers_of = [&](Ref ref) -> ReadBy& { return readers[static_cast<std::size_t>(recording.value(ref.value).root)]; };
  std::vector<bool> moves(commands.size());
  for (auto i = commands.size(); i-- > 0;) {
    const auto* launch = std::get_if<Launch>(&commands[i]);
    const auto group = launch ? std::optional(launch->maker().group) : std::nullopt;
    bool serves = launch != nullptr, writes = false;
    for_each_ref(commands[i], [&](Ref ref, bool written) {
      if (!written) return;
      writes = true;
      const auto& by = readers_of(ref);
      serves = serves && !by.other && (by.group ? by.group == group : by.early_call);
    });
    moves[i] = is_early(commands[i]) || (serves && writes);
    if (ends_early(commands[i])) continue;
    for_each_ref(commands[i], [&](Ref ref, bool) {
      auto& by = readers_of(ref);
      if (is_early(commands[i]))
        by.early_call = true;
      else if (moves[i] && (!by.group || by.group == group))
        by.group = group;
      else
        by.other = true;
    });
  }
  return moves;
}

}  // namespace

void Recording::move_early_calls() {
  if (std::none_of(commands_.begin(), commands_.end(), is_early)) return;
  const auto moves = moved_commands(*this);
  // A command that stays has its index and 0. One that moves has the place that it comes behind, and its index after that.
  using Place = std::pair<std::int64_t, std::size_t>;
  const Place start{-1, 0};
  std::vector<Place> places, written(values_.size(), start), used(values_.size(), start);
  Place last_call = start;
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    Place place{static_cast<std::int64_t>(i), 0};
    const auto root = [&](Ref ref) { return static_cast<std::size_t>(value(ref.value).root); };
    if (moves[i]) {
      auto behind = is_early(commands_[i]) ? last_call : start;
      for_each_ref(commands_[i], [&](Ref ref, bool writes) { behind = std::max(behind, (writes ? used : written)[root(ref)]); });
      place = {behind.first, i + 1};
    }
    if (is_early(commands_[i])) last_call = place;
    for_each_ref(commands_[i], [&](Ref ref, bool writes) {
      used[root(ref)] = std::max(used[root(ref)], place);
      if (writes) written[root(ref)] = std::max(written[root(ref)], place);
    });
    places.push_back(place);
  }
  std::vector<std::size_t> order(commands_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
  std::vector<Command> moved;
  moved.reserve(commands_.size());
  for (const auto i : order) moved.push_back(std::move(commands_[i]));
  commands_ = std::move(moved);
}

}  // namespace clnet::exec
