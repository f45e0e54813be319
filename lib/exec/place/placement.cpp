#include "lib/exec/place/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace clnet::exec {

PlacementOptions PlacementOptions::of(const DeviceInfo& device, const Options& options) {
  return {.shares = device.reuses_buffers && options.shares, .caches = options.shares, .max_allocation = device.max_allocation};
}

namespace {

class Placer {
 public:
  Placer(const Recording& recording, const std::vector<ValueId>& keep, const PlacementOptions& options)
      : recording_(recording), commands_(recording.commands()), keep_(keep), options_(options), count_(recording.value_count()) {}

  Placement operator()() {
    find_prepacks(prepacked_values());
    find_homes();
    lay_out_arena();
    if (options_.shares) find_donations();
    return std::move(result_);
  }

 private:
  std::size_t root(ValueId id) const { return static_cast<std::size_t>(recording_.value(id).root); }
  const Recording::ValueInfo& info(std::size_t id) const { return recording_.value(static_cast<ValueId>(id)); }

  /// By root value: whether it is prepacked. A command's outputs are prepacked when all its inputs stay the same while the leaves
  /// do, and all its outputs may be prepacked. A command that also writes other values takes its outputs from all.
  std::vector<bool> prepacked_values() const {
    std::vector<bool> prepacked(count_, false), changing(count_, false);
    if (!options_.caches) return prepacked;
    for (std::size_t id = 0; id < count_; ++id)
      if (const auto at = root(static_cast<ValueId>(id)); info(id).from_leaves && !info(at).leaf) prepacked[at] = true;
    for (auto id : keep_) prepacked[root(id)] = false;
    for (auto leaf : recording_.changing()) changing[root(leaf)] = true;
    for (bool again = true; again;) {
      again = false;
      for (const auto& command : commands_) {
        bool stays = std::holds_alternative<Launch>(command);
        for_each_ref(command, [&](Ref ref, bool writes) {
          const auto id = root(ref.value);
          stays = stays && (prepacked[id] || (!writes && info(id).leaf && !changing[id]));
        });
        if (stays) continue;
        for_each_ref(command, [&](Ref ref, bool writes) {
          const auto id = root(ref.value);
          again = again || (writes && prepacked[id]);
          if (writes) prepacked[id] = false;
        });
      }
    }
    return prepacked;
  }

  /// Joins prepacked values that one command touches into one prepack.
  void find_prepacks(const std::vector<bool>& prepacked) {
    std::vector<std::size_t> group(count_);
    std::iota(group.begin(), group.end(), std::size_t{0});
    const auto representative = [&](std::size_t id) {
      while (group[id] != id) id = group[id] = group[group[id]];
      return id;
    };
    const auto makes = [&](const Command& command) {
      std::size_t made = Placement::none;
      for_each_ref(command, [&](Ref ref, bool writes) {
        if (writes && prepacked[root(ref.value)]) made = root(ref.value);
      });
      return made;
    };
    for (const auto& command : commands_) {
      const auto made = makes(command);
      if (made == Placement::none) continue;
      for_each_ref(command, [&](Ref ref, bool) {
        if (prepacked[root(ref.value)]) group[representative(root(ref.value))] = representative(made);
      });
    }
    std::vector<std::size_t> prepack(count_, Placement::none);
    result_.prepack_of.assign(commands_.size(), Placement::none);
    for (std::size_t i = 0; i < commands_.size(); ++i) {
      const auto made = makes(commands_[i]);
      if (made == Placement::none) continue;
      auto& which = prepack[representative(made)];
      if (which == Placement::none) {
        which = result_.prepacks.size();
        result_.prepacks.emplace_back();
      }
      result_.prepack_of[i] = which;
      result_.prepacks[which].commands.push_back(i);
    }
    for (auto& found : result_.prepacks) describe(found, prepacked);
  }

  /// Lists the sources of a prepack, and its text.
  void describe(Prepack& prepack, const std::vector<bool>& prepacked) const {
    std::string text;
    const auto add = [&](std::string_view part) { text += fmt::format("{}:{};", part.size(), part); };
    const auto number_in = [](std::vector<ValueId>& list, ValueId id) {
      const auto at = std::find(list.begin(), list.end(), id);
      if (at != list.end()) return at - list.begin();
      list.push_back(id);
      return static_cast<std::ptrdiff_t>(list.size()) - 1;
    };
    for (auto index : prepack.commands) {
      const auto& launch = std::get<Launch>(commands_[index]);
      add(launch.program().name);
      add(launch.program().source);
      for (const auto& [name, value] : launch.program().defines) {
        add(name);
        add(value);
      }
      add(launch.function());
      for (const auto& arg : launch.arguments()) {
        if (const auto* buffer = std::get_if<BufferArg>(&arg)) {
          const auto id = root(buffer->ref.value);
          const bool leaf = !prepacked[id];
          const auto number = number_in(leaf ? prepack.leaves : prepack.values, static_cast<ValueId>(id));
          const auto offset = recording_.value(buffer->ref.value).offset + buffer->ref.offset;
          text += fmt::format("{}{}+{}x{},{}{};", leaf ? "leaf" : "value", number, offset, buffer->count,
                              to_string(recording_.value(buffer->ref.value).spec),
                              buffer->writes ? (buffer->reads ? "rw" : "w") : "r");
        } else if (const auto* scalar = std::get_if<ScalarArg>(&arg)) {
          prepack.scalars.push_back(scalar->value);
          text += "scalar;";
        } else if (const auto* local = std::get_if<LocalArg>(&arg)) {
          text += fmt::format("local{};", local->bytes);
        } else if (const auto* integer = std::get_if<std::int32_t>(&arg)) {
          text += fmt::format("{};", *integer);
        } else {
          text += fmt::format("f{:x};", std::bit_cast<std::uint64_t>(std::get<double>(arg)));
        }
      }
      text += fmt::format("({})({})", fmt::join(launch.global(), ","), fmt::join(launch.local(), ","));
    }
    for (auto id : prepack.values) text += fmt::format("[{}]", recording_.value(id).spec.bytes());
    prepack.small =
        std::all_of(prepack.values.begin(), prepack.values.end(), [&](ValueId id) { return recording_.value(id).small; });
    prepack.text = std::make_shared<const std::string>(std::move(text));
  }

  void find_homes() {
    result_.homes.assign(count_, Home::nowhere);
    result_.needs_buffer.assign(count_, false);
    result_.first_uses.resize(commands_.size());
    std::vector<bool> seen(count_, false);
    for (std::size_t i = 0; i < commands_.size(); ++i)
      for_each_ref(commands_[i], [&](Ref ref, bool) {
        const auto id = root(ref.value);
        if (seen[id]) return;
        seen[id] = true;
        if (info(id).leaf)
          set_leaf(id);
        else
          result_.homes[id] = options_.shares ? Home::arena : Home::per_run;
        result_.first_uses[i].push_back(static_cast<ValueId>(id));
      });
    for (auto id : keep_) {
      if (info(root(id)).leaf)
        set_leaf(root(id));
      else
        result_.homes[root(id)] = Home::per_run;
    }
    for (const auto& prepack : result_.prepacks)
      for (auto id : prepack.values) result_.homes[static_cast<std::size_t>(id)] = Home::prepacked;
  }

  void set_leaf(std::size_t id) {
    result_.homes[id] = Home::leaf;
    result_.needs_buffer[id] = true;
  }

  void lay_out_arena() {
    constexpr auto never = std::numeric_limits<std::size_t>::max();
    std::vector<Lifetime> lives(count_, Lifetime{0, never, 0});
    for (std::size_t i = 0; i < commands_.size(); ++i)
      for_each_ref(commands_[i], [&](Ref ref, bool) {
        auto& life = lives[root(ref.value)];
        life.first = std::min(life.first, i);
        life.last = i;
      });
    std::vector<bool> movable(count_);
    for (std::size_t id = 0; id < count_; ++id) movable[id] = result_.homes[id] == Home::arena;
    result_.grants = grant_in_place(recording_, movable);
    std::vector<std::size_t> owner(count_);
    std::iota(owner.begin(), owner.end(), std::size_t{0});
    for (const auto& grant : result_.grants) {
      const auto from = static_cast<std::size_t>(grant.from), to = static_cast<std::size_t>(grant.to);
      owner[to] = owner[from];
      lives[owner[to]].last = std::max(lives[owner[to]].last, lives[to].last);
      std::erase(result_.first_uses[grant.command], grant.to);  // the memory holds a value: no poison
    }

    std::vector<Lifetime> values;
    std::vector<std::size_t> index(count_, never);
    for (std::size_t id = 0; id < count_; ++id) {
      if (!movable[id]) continue;
      const auto bytes = stored_bytes(info(id).spec);
      result_.naive_bytes += bytes;
      if (owner[id] != id) continue;
      index[id] = values.size();
      values.push_back({bytes, lives[id].first, lives[id].last});
    }
    result_.layout = lay_out(values, options_.max_allocation);
    result_.places.resize(count_);
    for (std::size_t id = 0; id < count_; ++id)
      if (movable[id]) result_.places[id] = result_.layout.places[index[owner[id]]];
  }

  void find_donations() {
    std::vector<bool> givers(count_), takers(count_);
    for (std::size_t id = 0; id < count_; ++id) {
      givers[id] = result_.homes[id] == Home::leaf;
      takers[id] = result_.homes[id] == Home::per_run;
    }
    for (auto id : keep_) givers[root(id)] = false;
    result_.donations = exec::find_donations(recording_, givers, takers);
  }

  const Recording& recording_;
  const std::vector<Command>& commands_;
  const std::vector<ValueId>& keep_;
  const PlacementOptions& options_;
  const std::size_t count_;
  Placement result_;
};

}  // namespace

Placement place(const Recording& recording, const std::vector<ValueId>& keep, const PlacementOptions& options) {
  return Placer(recording, keep, options)();
}

}  // namespace clnet::exec
