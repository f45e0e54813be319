// How the programs' --help looks.
#pragma once

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace clnet::tools {

/// The text in lines of at most `width` characters, broken between words; a longer word has a line of its own.
inline std::vector<std::string> lines_of(const std::string& text, std::size_t width) {
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

/// Help with the options' meanings in a column of their own, broken into short lines, and no type names but ours.
class HelpLayout : public CLI::Formatter {
 public:
  HelpLayout() { column_width(34); }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string result;
    for (const auto& line : lines_of(option->get_description(), 84)) result += (result.empty() ? "" : "\n") + line;
    return result;
  }
};

}  // namespace clnet::tools
