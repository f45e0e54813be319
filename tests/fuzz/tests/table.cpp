// The table of random calls covers ops.h.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "tests/fuzz/generator.h"
#include "tests/paths.h"
#include "tests/support/declared_operations.h"

namespace clnet::fuzz {
namespace {

TEST_CASE("every operation of ops.h can appear in a random program") {
  const auto operations = clnet::test::declared_operations(CLNET_SOURCE_DIR);
  REQUIRE(operations.size() > 90);
  // They read and set the process's generator, and make no tensor.
  const std::set<std::string> others{"manual_seed", "random_state", "set_random_state"};
  std::set<std::string> entries;
  for (const auto& entry : table()) entries.emplace(entry.name);
  for (const auto& name : operations)
    if (!others.count(name)) {
      INFO(name);
      CHECK(entries.count(name) == 1);
    }
  for (const auto& name : entries) {
    INFO(name);
    CHECK(operations.count(name) == 1);
  }
}

}  // namespace
}  // namespace clnet::fuzz
