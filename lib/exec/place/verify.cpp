#include "lib/exec/place/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "clnet/error.h"
#include "lib/base/env.h"

namespace clnet::exec {

namespace {

/// What some bytes hold: a part of a root value. `origin` is the address that byte 0 of the value has by that.
struct Content {
  ValueId root = -1;
  std::int64_t origin = 0;
  std::size_t writer = 0;  ///< a command
  bool operator==(const Content&) const = default;
};

/// The contents of one buffer by address; neighbours touch, but never overlap.
class Bytes {
 public:
  struct Span {
    std::int64_t end;
    Content content;
  };

  void write(std::int64_t begin, std::int64_t end, const Content& content) {
    if (begin >= end) return;
    split(begin);
    split(end);
    spans_.erase(spans_.lower_bound(begin), spans_.lower_bound(end));
    spans_[begin] = {end, content};
  }

  /// Calls see(begin, end, content or null) for each piece of the range.
  template <class See>
  void read(std::int64_t begin, std::int64_t end, const See& see) const {
    auto at = spans_.upper_bound(begin);
    if (at != spans_.begin() && std::prev(at)->second.end > begin) --at;
    while (begin < end) {
      if (at == spans_.end() || at->first >= end) return see(begin, end, nullptr);
      if (at->first > begin) see(begin, at->first, nullptr);
      const auto from = std::max(begin, at->first), to = std::min(end, at->second.end);
      see(from, to, &at->second.content);
      begin = to;
      ++at;
    }
  }

 private:
  /// Makes a span begin there, where one goes across.
  void split(std::int64_t at) {
    auto span = spans_.upper_bound(at);
    if (span == spans_.begin()) return;
    --span;
    if (span->first == at || span->second.end <= at) return;
    const auto rest = span->second;
    span->second.end = at;
    spans_[at] = rest;
  }

  std::map<std::int64_t, Span> spans_;
};

class Verifier {
 public:
  explicit Verifier(const RunView& run) : run_(run), recording_(*run.recording), placement_(*run.placement) {
    read_.resize(run.places.size());
    unread_.resize(run.places.size());
  }

  void operator()() {
    check_prepacked();
    find_twins();
    find_hand_overs();
    for (std::size_t id = 0; id < run_.places.size(); ++id) {
      const auto value = static_cast<ValueId>(id);
      if (placement_.homes[id] != Home::leaf || !placement_.needs_buffer[id]) continue;
      if (is_given(value))
        contents_[place(value).buffer].write(place(value).begin, place(value).begin + bytes(value),
                                             {value, place(value).begin, no_command});
      else
        protect(value, "an input");
    }
    for (std::size_t k = 0; k < run_.prepacks.size(); ++k)
      if (run_.prepacks[k].there)
        for (auto id : placement_.prepacks[k].values) {
          if (one_of(id) != id) continue;
          check_apart(id);
          protect(id, "a prepacked value");
          contents_[place(id).buffer].write(place(id).begin, place(id).begin + bytes(id), {id, place(id).begin, no_command});
        }
    for (now_ = 0; now_ < run_.commands.size(); ++now_) {
      const auto& command = run_.commands[now_];
      for (const auto& [index, from, to] : hand_overs_)
        if (index == command.command) hand_over(from, to);
      if (command.left_out) continue;
      for (const auto& argument : command.arguments) check_address(argument);
      for (const auto& argument : command.arguments)
        if (argument.writes) check_overlap(command, argument);
      for (const auto& argument : command.arguments) {
        if (!argument.reads) continue;
        check_read(argument, "reads");
        read_[static_cast<std::size_t>(argument.root)].write(argument.begin, argument.end, {argument.root, 0, now_});
        std::erase_if(unread_[static_cast<std::size_t>(argument.root)],
                      [&](const Write& write) { return argument.begin < write.end && write.begin < argument.end; });
      }
      for (const auto& argument : command.arguments)
        if (argument.writes) write(argument);
    }
    now_ = no_command;
    for (const auto& result : run_.results) {
      const auto home = placement_.homes[static_cast<std::size_t>(result.root)];
      if (home != Home::per_run && home != Home::leaf)
        fail(fmt::format("{} is returned, but it is {}", name(result.root),
                         home == Home::prepacked ? "a prepacked value" : "kept for this run only"));
      check_address(result);
      check_read(result, "the caller gets");
    }
    for (std::size_t k = 0; k < run_.prepacks.size(); ++k)
      for (auto id : placement_.prepacks[k].values)
        check_read({id, 0, bytes(id), place(id).buffer, place(id).begin, true, false, false, 1}, "later runs get");
  }

 private:
  static constexpr auto no_command = ~std::size_t{0};

  const RunPlace& place(ValueId id) const { return run_.places[static_cast<std::size_t>(id)]; }
  std::int64_t bytes(ValueId id) const { return recording_.value(id).spec.bytes(); }
  std::string name(ValueId id) const { return fmt::format("value {} ({})", id, to_string(recording_.value(id).spec)); }

  void protect(ValueId id, std::string_view what) {
    if (bytes(id) > 0) protected_[place(id).buffer].push_back({place(id).begin, place(id).begin + bytes(id), id, what});
  }

  /// Inputs may share memory with one another, a prepacked value with nothing.
  void check_apart(ValueId id) {
    for (const auto& range : protected_[place(id).buffer])
      if (place(id).begin < range.end && range.begin < place(id).begin + bytes(id))
        fail(fmt::format("{} is prepacked where {} lies, {}", name(id), name(range.root), range.what));
  }

  /// Prepacks that compute the same of the same values, as of a weight that two convolutions read, are one Prepacked.
  void find_twins() {
    std::map<std::pair<std::string_view, std::vector<std::uint64_t>>, std::size_t> firsts;
    for (std::size_t k = 0; k < run_.prepacks.size(); ++k) {
      if (!run_.prepacks[k].there) continue;
      const auto& values = placement_.prepacks[k].values;
      const auto first = firsts.try_emplace({*placement_.prepacks[k].text, run_.prepacks[k].made_from}, k).first->second;
      for (std::size_t i = 0; first != k && i < values.size(); ++i) {
        const auto other = placement_.prepacks[first].values[i];
        if (place(values[i]).buffer == place(other).buffer && place(values[i]).begin == place(other).begin)
          twins_[values[i]] = other;
      }
    }
  }
  ValueId one_of(ValueId id) const {
    const auto found = twins_.find(id);
    return found == twins_.end() ? id : found->second;
  }

  bool is_given(ValueId leaf) const {
    return std::any_of(run_.donations.begin(), run_.donations.end(), [&](const Donation& given) { return given.from == leaf; });
  }

  /// Where a launch is left out because what it would copy lies there already: that is another value from here on.
  void find_hand_overs() {
    const auto add = [&](std::size_t command, ValueId from, ValueId to) {
      if (const auto* launch = std::get_if<Launch>(&recording_.commands()[command]);
          launch && launch->when() == Launch::When::apart)
        hand_overs_.push_back({command, from, to});
    };
    for (const auto& grant : placement_.grants) add(grant.command, grant.from, grant.to);
    for (const auto& given : run_.donations) add(given.command, given.from, given.to);
  }

  void hand_over(ValueId from, ValueId to) {
    if (bytes(to) == 0) return;
    check_read({from, 0, bytes(from), place(from).buffer, place(from).begin, true, false, false, 1}, "hands on");
    if (place(from).buffer != place(to).buffer || place(from).begin != place(to).begin || bytes(from) != bytes(to))
      fail(fmt::format("leaves {} as it is for {}, which lies elsewhere", name(from), name(to)));
    read_[static_cast<std::size_t>(from)].write(0, bytes(from), {from, 0, now_});
    unread_[static_cast<std::size_t>(from)].clear();
    contents_[place(to).buffer].write(place(to).begin, place(to).begin + bytes(to), {to, place(to).begin, now_});
  }

  void check_prepacked() {
    for (std::size_t k = 0; k < run_.prepacks.size(); ++k) {
      const auto& prepack = run_.prepacks[k];
      const auto& first = placement_.prepacks[k].values.front();
      if (prepack.sources != prepack.made_from)
        fail(fmt::format("{} is prepacked, but it was made from other values than this run's", name(first)));
      if (!prepack.there && !prepack.kept) continue;
      if (prepack.imported) fail(fmt::format("{} is prepacked, but made from memory that a caller may write to", name(first)));
      for (auto leaf : placement_.prepacks[k].leaves)
        for (auto changing : recording_.changing())
          if (changing == leaf) fail(fmt::format("{} is prepacked, but made from {}, which changes", name(first), name(leaf)));
    }
    for (std::size_t i = 0; i < run_.commands.size(); ++i) {
      const auto prepack = placement_.prepack_of[i];
      if (prepack == Placement::none || !run_.prepacks[prepack].there || run_.commands[i].left_out) continue;
      now_ = i;
      fail("makes prepacked values that are there");
    }
  }

  void check_address(const RunArgument& argument) const {
    const auto& home = place(argument.root);
    if (argument.begin < 0 || argument.end > bytes(argument.root))
      fail(fmt::format("means bytes {} to {} of {}, which has {}", argument.begin, argument.end, name(argument.root),
                       bytes(argument.root)));
    if (argument.begin >= argument.end) return;
    if (argument.buffer != home.buffer || argument.address != home.begin + argument.begin)
      fail(fmt::format("{} is at {} of buffer {}, but the argument points to {} of buffer {}", name(argument.root),
                       home.begin + argument.begin, home.buffer, argument.address, argument.buffer));
    if (argument.address < 0 || argument.address + argument.end - argument.begin > home.capacity)
      fail(fmt::format("{} at {} exceeds its buffer of {} bytes", name(argument.root), argument.address, home.capacity));
  }

  static std::int64_t end_of(const RunArgument& argument) { return argument.address + argument.end - argument.begin; }

  /// Of a written argument with the others of its launch.
  void check_overlap(const RunCommand& command, const RunArgument& out) const {
    for (const auto& other : command.arguments) {
      if (&other == &out || other.buffer != out.buffer || other.begin >= other.end || out.begin >= out.end) continue;
      if (end_of(other) <= out.address || end_of(out) <= other.address) continue;
      const auto what = fmt::format("writes {} where {} lies", name(out.root), name(other.root));
      if (other.writes || out.reads) fail(what + ", which it writes, too");
      if (!other.same_element || (other.taker >= 0 && other.taker != out.root))
        fail(what + ", of which it reads other elements than it writes");
      const auto whole = [&](const RunArgument& a) { return a.begin == 0 && a.end == bytes(a.root); };
      if (!whole(other) || !whole(out) || other.address != out.address || end_of(other) != end_of(out) ||
          other.element != out.element || other.root == out.root)
        fail(what + ", which is not the same elements");
      const auto touches = std::count_if(command.arguments.begin(), command.arguments.end(),
                                         [&](const RunArgument& a) { return a.root == other.root || a.root == out.root; });
      if (touches != 2) fail(what + ", which another argument reads, too");
    }
  }

  void check_read(const RunArgument& argument, std::string_view who) const {
    const auto home = placement_.homes[static_cast<std::size_t>(argument.root)];
    if (home == Home::leaf && !is_given(argument.root)) return;  // nothing writes there
    const auto found = contents_.find(argument.buffer);
    const Bytes empty;
    const auto& buffer = found == contents_.end() ? empty : found->second;
    buffer.read(argument.address, end_of(argument), [&](std::int64_t begin, std::int64_t end, const Content* content) {
      const auto origin = argument.address - argument.begin;
      if (content && content->root == one_of(argument.root) && content->origin == origin) return;
      fail(fmt::format("{} bytes {} to {} of {}, but finds {}", who, begin - origin, end - origin, name(argument.root),
                       !content ? std::string("nothing written there")
                       : content->root != argument.root
                           ? fmt::format("{} there, which {} wrote", name(content->root), command(content->writer))
                           : "other bytes of it there"));
    });
  }

  void write(const RunArgument& argument) {
    if (argument.begin >= argument.end) return;
    if (const auto found = protected_.find(argument.buffer); found != protected_.end())
      for (const auto& range : found->second)
        if (argument.address < range.end && range.begin < end_of(argument))
          fail(fmt::format("writes {} over {}, {}", name(argument.root), name(range.root), range.what));
    if (!argument.reads)
      read_[static_cast<std::size_t>(argument.root)].read(
          argument.begin, argument.end, [&](std::int64_t begin, std::int64_t end, const Content* content) {
            if (content)
              fail(fmt::format("writes bytes {} to {} of {}, which {} has read before", begin, end, name(argument.root),
                               command(content->writer)));
          });
    // Parts of a value may lie among each other, as the inputs of a concatenation do: only what covers all of an earlier part
    // makes that one useless.
    auto& unread = unread_[static_cast<std::size_t>(argument.root)];
    for (const auto& earlier : unread)
      if (!argument.adds && argument.begin <= earlier.begin && earlier.end <= argument.end)
        fail(fmt::format("writes bytes {} to {} of {} again, which {} wrote and nothing has read", earlier.begin, earlier.end,
                         name(argument.root), command(earlier.writer)));
    unread.push_back({argument.begin, argument.end, now_});
    contents_[argument.buffer].write(argument.address, end_of(argument),
                                     {argument.root, argument.address - argument.begin, now_});
  }

  std::string command(std::size_t index) const {
    if (index == no_command) return "an earlier run";
    return fmt::format("command {} ({})", run_.commands[index].command, run_.commands[index].name);
  }

  [[noreturn]] void fail(const std::string& what) const {
    constexpr std::size_t around = 3;
    auto text = fmt::format("plan verifier: {} {}", now_ == no_command ? std::string("after the run:") : command(now_), what);
    const auto middle = std::min(now_, run_.commands.size());
    for (auto i = middle - std::min(middle, around); i < std::min(middle + around + 1, run_.commands.size()); ++i) {
      const auto& launch = run_.commands[i];
      text +=
          fmt::format("\n{} {}: {}{}", i == now_ ? '>' : ' ', launch.command, launch.name, launch.left_out ? ", left out" : "");
      for (const auto& a : launch.arguments)
        text +=
            fmt::format("\n      {}{} value {} bytes {} to {} at {} of buffer {}{}", a.reads ? "in" : "", a.writes ? "out" : "",
                        a.root, a.begin, a.end, a.address, a.buffer, a.same_element ? ", same element" : "");
    }
    throw Error(text);
  }

  /// What an argument wrote.
  struct Write {
    std::int64_t begin, end;
    std::size_t writer;
  };
  struct Protected {
    std::int64_t begin, end;
    ValueId root;
    std::string_view what;
  };

  struct HandOver {
    std::size_t command;
    ValueId from, to;
  };

  const RunView& run_;
  const Recording& recording_;
  const Placement& placement_;
  std::size_t now_ = no_command;
  std::unordered_map<ValueId, ValueId> twins_;                           ///< prepacked values that are one with another
  std::unordered_map<std::uint64_t, Bytes> contents_;                    ///< by buffer: what the run has written
  std::unordered_map<std::uint64_t, std::vector<Protected>> protected_;  ///< by buffer: what it must not write
  std::vector<HandOver> hand_overs_;
  std::vector<Bytes> read_;                 ///< by root value: its bytes that were read, and by whom
  std::vector<std::vector<Write>> unread_;  ///< by root value: writes of which nothing was read yet
};

RunArgument argument(const Recording& recording, const std::vector<RunPlace>& places, Ref ref, std::int64_t count) {
  const auto& value = recording.value(ref.value);
  const auto element = static_cast<std::int64_t>(size_of(value.spec.dtype));
  RunArgument result;
  result.root = value.root;
  result.begin = (value.offset + ref.offset) * element;
  result.end = result.begin + (count < 0 ? value.spec.shape.numel() - ref.offset : count) * element;
  result.element = element;
  const auto& place = places[static_cast<std::size_t>(value.root)];
  result.buffer = place.buffer;
  result.address = place.begin + result.begin;
  return result;
}

}  // namespace

RunView view(const Recording& recording, const Placement& placement, const std::vector<ValueId>& keep,
             std::vector<RunPlace> places, std::vector<RunPrepack> prepacks, std::vector<Donation> donations) {
  RunView run{&recording, &placement, std::move(places), std::move(prepacks), {}, {}, std::move(donations)};
  for (std::size_t i = 0; i < recording.commands().size(); ++i) {
    RunCommand command;
    command.command = i;
    const auto prepack = placement.prepack_of[i];
    command.left_out = prepack != Placement::none && run.prepacks[prepack].there;
    if (const auto* launch = std::get_if<Launch>(&recording.commands()[i])) {
      command.name = launch->function();
      command.left_out = command.left_out || std::count(launch->global().begin(), launch->global().end(), std::size_t{0}) > 0;
      if (launch->when() != Launch::When::always)
        command.left_out = command.left_out || (launch->when() == Launch::When::in_place) !=
                                                   lies_in_place(recording, placement, run.donations, *launch);
      for (const auto& arg : launch->arguments())
        if (const auto* buffer = std::get_if<BufferArg>(&arg)) {
          command.arguments.push_back(argument(recording, run.places, buffer->ref, buffer->count));
          command.arguments.back().reads = buffer->reads;
          command.arguments.back().writes = buffer->writes;
          command.arguments.back().same_element = buffer->access == Access::same_element;
          command.arguments.back().adds = buffer->scattered;
          if (buffer->taker >= 0) command.arguments.back().taker = recording.value(buffer->taker).root;
        }
    } else {
      const auto& call = std::get<HostCall>(recording.commands()[i]);
      command.name = call.name;
      for (auto ref : call.writes) {
        command.arguments.push_back(argument(recording, run.places, ref, -1));
        command.arguments.back().writes = true;
      }
      for (auto ref : call.reads) {
        const auto read = argument(recording, run.places, ref, -1);
        const auto same = std::find_if(command.arguments.begin(), command.arguments.end(), [&](const RunArgument& other) {
          return other.writes && other.root == read.root && other.begin == read.begin && other.end == read.end;
        });
        // Of what it both reads and writes, a call does not say how much: it counts as written only.
        if (same != command.arguments.end()) {
          same->adds = true;
          continue;
        }
        command.arguments.push_back(read);
        command.arguments.back().reads = true;
      }
    }
    run.commands.push_back(std::move(command));
  }
  for (auto id : keep) {
    run.results.push_back(argument(recording, run.places, {id, 0}, -1));
    run.results.back().reads = true;
  }
  return run;
}

bool lies_in_place(const Recording& recording, const Placement& placement, const std::vector<Donation>& granted,
                   const Launch& launch) {
  const auto root = recording.value(launch.in_question()).root;
  const auto takes = [&](const auto& grant) { return grant.to == root; };
  return std::any_of(placement.grants.begin(), placement.grants.end(), takes) ||
         std::any_of(granted.begin(), granted.end(), takes);
}

void verify(const RunView& run) { Verifier{run}(); }

void verify_set(std::size_t command, std::string_view function, std::uint32_t argument, const Pointed& set,
                const Pointed& value) {
  if (set == value) return;
  throw Error(fmt::format(
      "plan verifier: argument {} of command {} ({}) is buffer {} from element {}, but its value is in buffer {} from "
      "element {}",
      argument, command, function, set.buffer, set.element, value.buffer, value.element));
}

bool verify_enabled() {
#ifdef NDEBUG
  static const bool enabled = env::flag("CLNET_VERIFY");
#else
  static const bool enabled = env::flag("CLNET_VERIFY", true);
#endif
  return enabled;
}

}  // namespace clnet::exec
