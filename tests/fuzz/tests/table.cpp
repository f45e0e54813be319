// The table of random calls covers the catalogue.
#include <catch2/catch.hpp>
#include <set>
#include <string_view>

#include "lib/ops/catalogue.h"
#include "tests/fuzz/generator.h"

namespace clnet::fuzz {
namespace {

TEST_CASE("every operation of the catalogue can appear in a random program") {
  std::set<std::string_view> entries;
  for (const auto& entry : table()) entries.insert(catalogued_name(entry.name));
  entries.insert("neg");  // as operator-
  std::set<std::string_view> operations;
  for (const auto& operation : ops::catalogue()) operations.insert(operation.name);
  CHECK(entries == operations);
}

}  // namespace
}  // namespace clnet::fuzz
