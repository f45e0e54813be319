#include "lib/exec/place/in_place.h"

#include <algorithm>
#include <limits>

namespace clnet::exec {

namespace {

constexpr auto never = std::numeric_limits<std::size_t>::max();

class Granting {
 public:
  Granting(const Recording& recording, const std::vector<bool>& givers, const std::vector<bool>& takers)
      : recording_(recording),
        givers_(givers),
        takers_(takers),
        first_(recording.value_count(), never),
        last_(recording.value_count(), 0) {
    for (std::size_t i = 0; i < recording.commands().size(); ++i)
      for_each_ref(recording.commands()[i], [&](Ref ref, bool) {
        const auto id = root(ref);
        first_[id] = std::min(first_[id], i);
        last_[id] = i;
      });
  }

  std::vector<Grant> operator()() {
    std::vector<bool> lent(recording_.value_count(), false);
    for (std::size_t i = 0; i < recording_.commands().size(); ++i) {
      const auto* launch = std::get_if<Launch>(&recording_.commands()[i]);
      if (!launch) continue;
      for (const auto& arg : launch->arguments()) {
        const auto* out = std::get_if<BufferArg>(&arg);
        if (!out || !out->writes || out->reads) continue;
        const auto to = root(out->ref);
        if (!takers_[to] || first_[to] != i || !is_whole(*out)) continue;
        if (touches(*launch, to) != 1) continue;
        for (const auto& other : launch->arguments()) {
          const auto* in = std::get_if<BufferArg>(&other);
          if (!in || !in->reads || in->writes || !may_take(*launch, i, *in, to)) continue;
          const auto from = root(in->ref);
          if (lent[from]) continue;
          lent[from] = true;
          grants_.push_back({i, static_cast<ValueId>(from), static_cast<ValueId>(to)});
          break;
        }
      }
    }
    return std::move(grants_);
  }

 private:
  std::size_t root(Ref ref) const { return static_cast<std::size_t>(recording_.value(ref.value).root); }
  const Spec& spec(std::size_t id) const { return recording_.value(static_cast<ValueId>(id)).spec; }

  bool is_whole(const BufferArg& arg) const {
    const auto& value = recording_.value(arg.ref.value);
    const auto all = spec(root(arg.ref)).bytes() / static_cast<std::int64_t>(size_of(value.spec.dtype));
    return value.offset + arg.ref.offset == 0 && (arg.count < 0 ? value.spec.shape.numel() : arg.count) == all;
  }

  std::ptrdiff_t touches(const Launch& launch, std::size_t id) const {
    return std::count_if(launch.arguments().begin(), launch.arguments().end(), [&](const Arg& arg) {
      const auto* buffer = std::get_if<BufferArg>(&arg);
      return buffer && root(buffer->ref) == id;
    });
  }

  bool may_take(const Launch& launch, std::size_t command, const BufferArg& in, std::size_t to) const {
    const auto from = root(in.ref);
    if (!givers_[from] || from == to) return false;
    if (in.access != Access::same_element || (in.taker >= 0 && root({in.taker, 0}) != to)) return false;
    const bool same_size = spec(from).bytes() == spec(to).bytes() && size_of(spec(from).dtype) == size_of(spec(to).dtype);
    return is_whole(in) && same_size && touches(launch, from) == 1 && last_[from] == command;
  }

  const Recording& recording_;
  const std::vector<bool>&givers_, &takers_;
  std::vector<std::size_t> first_, last_;  ///< by root: the commands that use it
  std::vector<Grant> grants_;
};

}  // namespace

std::vector<Grant> grant_in_place(const Recording& recording, const std::vector<bool>& givers, const std::vector<bool>& takers) {
  return Granting(recording, givers, takers)();
}

std::vector<Donation> find_donations(const Recording& recording, const std::vector<bool>& givers,
                                     const std::vector<bool>& takers) {
  const auto& commands = recording.commands();
  std::vector<std::size_t> readers(recording.value_count());
  for (const auto& command : commands)
    for_each_ref(command, [&](Ref ref, bool) { ++readers[static_cast<std::size_t>(recording.value(ref.value).root)]; });
  const auto last_call = std::find_if(commands.rbegin(), commands.rend(),
                                      [](const Command& command) { return std::holds_alternative<HostCall>(command); });
  const auto tail = static_cast<std::size_t>(commands.rend() - last_call);
  std::vector<Donation> donations;
  for (const auto& [command, from, to] : grant_in_place(recording, givers, takers)) {
    const auto& launch = std::get<Launch>(commands[command]);
    const bool repeatable = launch.when() == Launch::When::apart && recording.value(launch.in_question()).root == to;
    if (repeatable ? readers[static_cast<std::size_t>(from)] == 1 : command >= tail)
      donations.push_back({command, from, to, repeatable});
  }
  return donations;
}

}  // namespace clnet::exec
