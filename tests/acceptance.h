// Where the acceptance data lie that the project did not write: the unpacked folder named by CLNET_ACCEPTANCE_DIR.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/support/skip.h"

namespace clnet::test {

/// A folder or file in the acceptance data; nothing, with a visible line, when there are none here. A variable that points to
/// nowhere is a mistake and fails the test.
inline std::optional<std::filesystem::path> acceptance(const std::string& part) {
  const char* root = std::getenv("CLNET_ACCEPTANCE_DIR");
  if (!root || !*root) {
    skip("CLNET_ACCEPTANCE_DIR does not name the unpacked acceptance data");
    return std::nullopt;
  }
  const auto path = std::filesystem::path(root) / part;
  INFO("CLNET_ACCEPTANCE_DIR is " << root);
  REQUIRE(std::filesystem::exists(path));
  return path;
}

}  // namespace clnet::test
