// The table of random calls covers ops.h.
#include <catch2/catch.hpp>
#include <regex>
#include <set>
#include <string>

#include "tests/fuzz/generator.h"
#include "tests/support/declarations.h"

namespace clnet::fuzz {
namespace {

/// The functions that ops.h declares.
std::set<std::string> declared() {
  const std::string text = clnet::test::declarations(CLNET_SOURCE_DIR);
  std::set<std::string> names;
  const std::regex function(R"(CLNET_API\s+[\w:<>]+\s+(operator\S|\w+)\()"), rows(R"(\nCLNET_BINARY\((\S+)\))");
  for (const auto& pattern : {function, rows})
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) names.insert((*match)[1]);
  names.erase("name");  // the macro's own parameter
  return names;
}

TEST_CASE("every operation of ops.h can appear in a random program") {
  const auto operations = declared();
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
