// What is said of options that a program does not have.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace clnet::tools {

/// How many letters to change, add or leave out make one text the other.
inline std::size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto changed = corner + (a[i] == b[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// The shortest option that begins with `given`, of three letters at least, or the one that is fewest letters apart: at most two,
/// and a third of them. Empty where there is none.
inline std::string similar_option(const CLI::App& app, const std::string& given) {
  const std::size_t dashes = 2, letters = given.size() - std::min(given.size(), dashes);
  std::string longer, nearest;
  std::size_t least = std::min<std::size_t>(letters / 3, 2) + 1;
  for (const auto* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const auto& name : option->get_lnames()) {
      const auto full = "--" + name;
      if (letters >= 3 && full.starts_with(given) && (longer.empty() || full.size() < longer.size())) longer = full;
      if (const auto apart = letters_apart(full, given); apart < least) {
        least = apart;
        nearest = full;
      }
    }
  }
  return longer.empty() ? nearest : longer;
}

/// The fault in one line: it names an option that there is not, and the one that may have been meant.
inline std::string fault_of(const CLI::App& app, const CLI::ParseError& error) {
  if (!dynamic_cast<const CLI::ExtrasError*>(&error)) return error.what();
  const auto left = app.remaining();
  const auto option = std::find_if(left.begin(), left.end(), [](const auto& text) { return text.size() > 1 && text[0] == '-'; });
  if (option == left.end()) return left.empty() ? error.what() : fmt::format("'{}' is no option", left.front());
  const auto name = option->substr(0, option->find('='));
  const auto similar = similar_option(app, name);
  return fmt::format("there is no option {}{}", name, similar.empty() ? "" : fmt::format("; did you mean {}?", similar));
}

}  // namespace clnet::tools
