#include "lib/base/renames.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string>

#include "clnet/error.h"

namespace clnet::renames {

/// The lines of renames.txt about solvers, variables and their values. The build makes it.
std::string_view embedded_renames();

namespace {

/// Calls use(words) for each line; as soon as it returns true, no more.
template <class Use>
void for_each_rename(const Use& use) {
  for (auto text = embedded_renames(); !text.empty();) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::array<std::string_view, 4> words;
    for (auto& word : words) {
      const auto blank = line.find(' ');
      word = line.substr(0, blank);
      line.remove_prefix(blank == std::string_view::npos ? line.size() : blank + 1);
    }
    if (use(words)) return;
  }
}

/// The new name behind a kind of line and one or two words; nothing where no line begins so.
std::optional<std::string_view> renamed(std::string_view kind, std::string_view of, std::string_view old) {
  std::optional<std::string_view> result;
  for_each_rename([&](const auto& words) {
    if (words[0] == kind && words[1] == of && words[2] == old) result = words[3];
    return result.has_value();
  });
  return result;
}

}  // namespace

std::optional<std::string_view> solver(std::string_view list, std::string_view old) { return renamed("solver", list, old); }

std::optional<std::string_view> value(std::string_view variable, std::string_view old) { return renamed("value", variable, old); }

void check_variables() {
  for_each_rename([](const auto& words) {
    if (words[0] != "variable") return false;
    const std::string old(words[1]);
    const char* set = std::getenv(old.c_str());
    if (!set || !*set) return false;
    bool has_renamed_values = false;
    for_each_rename([&](const auto& others) { return has_renamed_values = others[0] == "value" && others[1] == words[2]; });
    const auto now = has_renamed_values ? value(words[2], set) : std::string_view(set);
    throw Error(fmt::format("{}={}: the variable is called {} now{}", old, set, words[2],
                            now ? fmt::format(": {}={}", words[2], *now) : ""));
  });
}

}  // namespace clnet::renames
