// A file of each format that clnet writes, of each version, is kept in tests/golden/formats. CLNET_GOLDEN=write writes them anew,
// for a new version.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "tests/paths.h"
#include "tests/support/temporary.h"

namespace clnet::test {

/// The content of a kept file. `write` makes the file of its path.
inline std::string kept_file(const std::string& name, const std::function<void(const std::filesystem::path&)>& write) {
  const auto path = std::filesystem::path(CLNET_SOURCE_DIR) / "tests/golden/formats" / name;
  if (const char* golden = std::getenv("CLNET_GOLDEN"); golden && std::string(golden) == "write") write(path);
  INFO(path);
  REQUIRE(std::filesystem::exists(path));
  return content(path);
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  INFO(text << " has no " << from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace clnet::test
