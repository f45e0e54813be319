// torch_names.txt: each name of PyTorch has a function here, or one of six reasons.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "lib/ops/catalogue.h"
#include "tests/paths.h"
#include "tests/support/temporary.h"

using namespace clnet;

namespace {

/// What the public headers declare or call: operators, and names in front of a parenthesis, without comments.
std::set<std::string> public_names(const std::filesystem::path& headers) {
  std::set<std::string> names;
  const std::regex comment("//[^\n]*"), function(R"((operator[^\s\w()]+)|(\w+)\()");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(headers)) {
    if (!entry.is_regular_file()) continue;
    const auto text = std::regex_replace(test::content(entry.path().string()), comment, "");
    for (std::sregex_iterator match(text.begin(), text.end(), function), end; match != end; ++match)
      names.insert((*match)[(*match)[1].matched ? 1 : 2]);
  }
  return names;
}

struct Line {
  std::string torch, ours;
};

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    const auto space = line.find(' ');
    REQUIRE(space != std::string::npos);
    lines.push_back({line.substr(0, space), line.substr(space + 1)});
  }
  return lines;
}

}  // namespace

TEST_CASE("the most used names of PyTorch have a function, or one of six reasons") {
  const std::filesystem::path root(CLNET_SOURCE_DIR);
  const auto lines = lines_of(test::content((root / "tests/ops/catalogue/torch_names.txt").string()));
  constexpr std::size_t fewest = 330, most = 400;
  CHECK(lines.size() >= fewest);
  CHECK(lines.size() <= most);
  std::set<std::string> listed;
  const std::regex place(R"((torch|Tensor|F)\.\w+)");
  for (const auto& line : lines) {
    INFO(line.torch);
    CHECK(std::regex_match(line.torch, place));
    CHECK(listed.insert(line.torch).second);
  }
  auto names = public_names(root / "include/clnet");
  for (const auto& operation : ops::catalogue()) names.emplace(operation.name);
  const std::set<std::string> reasons{"complex", "sparse", "quantized", "in-place", "deprecated"};
  for (const auto& [torch, ours] : lines) {
    INFO(torch << ": " << ours);
    constexpr std::string_view alias = "alias: ";
    if (ours == "in-place")
      CHECK(torch.ends_with('_'));
    else if (ours.starts_with(alias))
      CHECK(listed.contains(ours.substr(alias.size())));
    else
      CHECK((reasons.contains(ours) || names.contains(ours)));
  }
}
