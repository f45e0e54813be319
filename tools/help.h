// How the programs' --help looks.
#pragma once

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>

namespace clnet::tools {

/// Help with the options' meanings in a column of their own, broken into short lines, and no type names but ours.
class HelpLayout : public CLI::Formatter {
 public:
  HelpLayout() { column_width(34); }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    constexpr std::size_t width = 84;
    std::string result;
    std::size_t length = 0;
    std::istringstream words(option->get_description());
    for (std::string word; words >> word; length += word.size() + 1) {
      if (length + word.size() > width) {
        result += '\n';
        length = 0;
      } else if (length > 0) {
        result += ' ';
      }
      result += word;
    }
    return result;
  }
};

}  // namespace clnet::tools
