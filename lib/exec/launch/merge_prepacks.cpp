// Values that are prepacked once: equal launches over the same values become one, like the packing of a weight by each step that
// reads it.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "lib/exec/launch/recorder.h"

namespace clnet::exec {

namespace {

/// Of a launch, with root values for what they refer to: kind, and what tells them apart.
using Arguments = std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>>;

/// A prepacked value that one launch makes alone.
struct PrepackLaunch {
  ValueId prepacked;
  Arguments arguments;
};

}  // namespace

void Recording::merge_prepacks() {
  const auto root = [&](ValueId id) { return value(id).root; };
  std::vector<std::size_t> writers(values_.size(), 0), last_write(values_.size(), 0);
  for (std::size_t i = 0; i < commands_.size(); ++i)
    for_each_ref(commands_[i], [&](Ref ref, bool writes) {
      if (!writes) return;
      ++writers[static_cast<std::size_t>(root(ref.value))];
      last_write[static_cast<std::size_t>(root(ref.value))] = i;
    });
  const auto made = [&](const Launch& launch) -> std::optional<PrepackLaunch> {
    PrepackLaunch result{-1, {}};
    for (const auto& arg : launch.arguments()) {
      if (const auto* integer = std::get_if<std::int32_t>(&arg)) {
        result.arguments.emplace_back(0, *integer, 0, 0);
      } else if (const auto* buffer = std::get_if<BufferArg>(&arg)) {
        const auto& info = value(buffer->ref.value);
        if (buffer->writes) {
          const bool whole = info.root == buffer->ref.value && buffer->ref.offset == 0;
          if (result.prepacked >= 0 || buffer->reads || !whole || !info.prepacked ||
              writers[static_cast<std::size_t>(info.root)] != 1)
            return std::nullopt;
          result.prepacked = info.root;
          result.arguments.emplace_back(1, info.spec.shape.numel(), static_cast<std::int64_t>(info.spec.dtype), buffer->count);
        } else {
          result.arguments.emplace_back(2, info.root, info.offset + buffer->ref.offset, buffer->count);
        }
      } else {
        return std::nullopt;
      }
    }
    return result.prepacked >= 0 ? std::optional(std::move(result)) : std::nullopt;
  };
  struct First {
    const Launch* launch;
    std::size_t command;
    ValueId prepacked;
  };
  std::map<Arguments, std::vector<First>> firsts;
  std::map<ValueId, ValueId> instead;
  std::vector<bool> gone(commands_.size(), false);
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    const auto* launch = std::get_if<Launch>(&commands_[i]);
    auto found = launch ? made(*launch) : std::nullopt;
    if (!found) continue;
    bool unchanged = true;
    auto& same = firsts[std::move(found->arguments)];
    const auto equal = std::find_if(same.begin(), same.end(), [&](const First& first) {
      const auto &a = first.launch->program(), &b = launch->program();
      return a.name == b.name && a.source == b.source && a.defines == b.defines &&
             first.launch->function() == launch->function() && first.launch->global() == launch->global() &&
             first.launch->local() == launch->local();
    });
    if (equal == same.end()) {
      same.push_back({launch, i, found->prepacked});
      continue;
    }
    for_each_ref(commands_[i], [&](Ref ref, bool writes) {
      unchanged = unchanged && (writes || last_write[static_cast<std::size_t>(root(ref.value))] <= equal->command);
    });
    if (!unchanged) {
      *equal = {launch, i, found->prepacked};
      continue;
    }
    gone[i] = true;
    instead[found->prepacked] = equal->prepacked;
  }
  if (instead.empty()) return;
  for (auto& info : values_)
    if (const auto other = instead.find(info.root); other != instead.end()) info.root = other->second;
  std::size_t at = 0;
  std::erase_if(commands_, [&](const Command&) { return gone[at++]; });
}

}  // namespace clnet::exec
