// What the public headers of operations declare, for tests that hold a table against it.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
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

}  // namespace clnet::test
