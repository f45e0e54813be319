// How tests hold files to the catalogue, the catalogue to the headers, and documents to the code that they show.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lib/exec/choose/solver.h"
#include "lib/ops/catalogue.h"
#include "tests/ops/catalogue/written.h"
#include "tests/paths.h"
#include "tests/support/declared_operations.h"
#include "tests/support/temporary.h"

using namespace clnet;
using clnet::test::content;

namespace {

/// A block of code in a document, and the files that the heading above it names, or a later line that ends with a colon.
struct Shown {
  std::vector<std::string> files;
  std::string code;
};

std::vector<Shown> shown_in(const std::string& document) {
  std::vector<Shown> result;
  std::vector<std::string> files;
  bool inside = false;
  std::istringstream lines(document);
  for (std::string line; std::getline(lines, line);) {
    const bool heading = line.starts_with("## ");
    if (!inside && (heading || line.ends_with(':'))) {
      const std::regex path(R"([\w/]+\.(cpp|h|clh|cl))");
      const std::sregex_iterator named(line.begin(), line.end(), path), end;
      if (heading || named != end) files.clear();
      for (auto match = named; match != end; ++match) files.push_back(match->str());
    } else if (line.starts_with("```")) {
      inside = !inside;
      if (inside) result.push_back({files, ""});
    } else if (inside) {
      result.back().code += line + '\n';
    }
  }
  return result;
}

}  // namespace

namespace clnet::testing {

void check_written(const std::string& name, const std::function<std::string(const std::string& now)>& wanted) {
  const auto path = std::string(CLNET_SOURCE_DIR) + "/" + name;
  const char* write = std::getenv("CLNET_WRITE_DOCS");
  const bool writes = write && *write;
  const auto now = writes && !std::filesystem::exists(path) ? "" : content(path);
  const auto text = wanted(now);
  if (writes && text != now) std::ofstream(path, std::ios::binary) << text;
  INFO(name << " differs; CLNET_WRITE_DOCS=1 writes it");
  CHECK((writes ? text : now) == text);
}

std::string with_section(const std::string& text, const std::string& name, const std::string& lines) {
  const auto begin = fmt::format("<!-- {} -->\n", name), end = fmt::format("<!-- end of {} -->", name);
  const auto from = text.find(begin), to = text.find(end);
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  return text.substr(0, from) + begin + lines + text.substr(to);
}

}  // namespace clnet::testing

TEST_CASE("pages for developers show the files as they are") {
  for (const auto& [page, fewest] : {std::pair{"adding-a-solver.md", 6}, {"fusion.md", 2}}) {
    const auto all = shown_in(content(std::string(CLNET_SOURCE_DIR) + "/docs/developer/" + page));
    INFO(page);
    CHECK(all.size() >= static_cast<std::size_t>(fewest));
    for (const auto& [files, code] : all) {
      INFO(code);
      CHECK(std::any_of(files.begin(), files.end(), [&, &code = code](const auto& file) {
        return content(std::string(CLNET_SOURCE_DIR) + "/" + file).find(code) != std::string::npos;
      }));
    }
  }
}

TEST_CASE("the catalogue has every function of ops.h") {
  auto declared = clnet::test::declared_operations(CLNET_SOURCE_DIR);
  // They read and set the process's generator, and make no tensor.
  for (const auto* state : {"manual_seed", "random_state", "set_random_state"}) CHECK(declared.erase(state) == 1);
  std::erase_if(declared, [](const auto& name) { return name.starts_with("operator"); });
  declared.insert({"add", "sub", "mul", "div", "neg"});
  std::set<std::string> listed;
  for (const auto& operation : ops::catalogue()) {
    INFO(operation.name);
    CHECK(listed.emplace(operation.name).second);
    if (!operation.solvers.empty()) CHECK_FALSE(exec::solver_names(std::string(operation.solvers)).empty());
  }
  CHECK(listed == declared);
}
