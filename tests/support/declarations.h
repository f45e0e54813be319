// What the public headers of operations declare, for tests that hold a table against it.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace clnet::test {

/// The text of all of include/clnet/ops/.
inline std::string declarations(const std::filesystem::path& source_folder) {
  std::string text;
  for (const auto& header : std::filesystem::directory_iterator(source_folder / "include/clnet/ops")) {
    std::ifstream file(header.path());
    text.append(std::istreambuf_iterator<char>(file), {}).push_back('\n');
  }
  return text;
}

/// The same without comments, each run of white space as one space.
inline std::string plain_declarations(const std::filesystem::path& source_folder) {
  const auto text = std::regex_replace(declarations(source_folder), std::regex("//[^\n]*"), "");
  return std::regex_replace(text, std::regex("\\s+"), " ");
}

}  // namespace clnet::test
