// The page of operators is what the importer has.
#include "lib/onnx/operators.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "tests/paths.h"
#include "tests/support/temporary.h"

using namespace clnet;

namespace {

std::string page() {
  std::string out =
      "# ONNX operators\n\nThis page lists the operators that [`onnx::load()`](../guide/onnx.md) reads. It is generated from the "
      "importer's\n"
      "tables by `CLNET_WRITE_DOCS=1 build/tests/clnet-onnx-tests \"[written]\"`. The numbers are the operator sets with a "
      "definition that is\n"
      "followed: a file's node takes the last one that is not above its own set. Sets 1 to 28 are read.\n\n";
  std::map<std::string_view, std::map<std::string_view, std::set<int>>> domains;
  for (const auto& op : onnx::operators()) domains[op.domain][op.name].insert(op.since);
  for (const auto& [domain, operators] : domains) {
    out +=
        fmt::format("{}| operator | from operator set |\n|---|---|\n", domain.empty() ? "" : fmt::format("\n## {}\n\n", domain));
    for (const auto& [name, sets] : operators) out += fmt::format("| {} | {} |\n", name, fmt::join(sets, ", "));
  }
  return out;
}

}  // namespace

TEST_CASE("the reference lists the importer's operators", "[written]") {
  const std::string path = std::string(CLNET_SOURCE_DIR) + "/docs/reference/onnx.md";
  if (const char* write = std::getenv("CLNET_WRITE_DOCS"); write && *write) {
    std::ofstream(path) << page();
    return;
  }
  CHECK(test::content(path) == page());
}

TEST_CASE("a file's operator set chooses the definition") {
  REQUIRE(onnx::find_operator("", "Resize", 10));
  CHECK(onnx::find_operator("", "Resize", 10)->since == 10);
  CHECK(onnx::find_operator("", "Resize", 19)->since == 11);
  CHECK(onnx::find_operator("", "Resize", 9) == nullptr);
  CHECK(onnx::find_operator("", "Frobnicate", 18) == nullptr);
  CHECK(onnx::find_operator("com.example", "Relu", 18) == nullptr);
}
