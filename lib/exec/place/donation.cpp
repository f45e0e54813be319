#include "lib/exec/place/donation.h"

#include <algorithm>

namespace clnet::exec {

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
