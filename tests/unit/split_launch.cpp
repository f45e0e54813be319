// Launches of more work-groups than a device takes in the second or third dimension.
#include "lib/cl/split_launch.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "tests/paths.h"

using namespace clnet::ocl;

TEST_CASE("pieces cover a range once, in whole groups, and none is too large") {
  constexpr std::size_t most = 4;
  const std::vector<std::pair<cl::NDRange, cl::NDRange>> launches{
      {cl::NDRange(100), cl::NDRange(2)},           {cl::NDRange(6, 4), cl::NullRange},
      {cl::NDRange(6, 5), cl::NullRange},           {cl::NDRange(6, 24), cl::NDRange(2, 3)},
      {cl::NDRange(6, 27), cl::NDRange(2, 3)},      {cl::NDRange(2, 3, 9), cl::NullRange},
      {cl::NDRange(2, 9, 9), cl::NDRange(1, 1, 1)}, {cl::NDRange(2, 10, 18), cl::NDRange(1, 2, 3)},
  };
  for (const auto& [global, local] : launches) {
    const auto dimensions = global.dimensions();
    const auto group = [&, &local = local](std::size_t i) { return local.dimensions() ? local.get()[i] : 1; };
    const auto pieces = split_launch(global, local, most);
    std::size_t items = 0, all = 1;
    bool whole = true;
    for (std::size_t i = 0; i < dimensions; ++i) {
      all *= global.get()[i];
      whole = whole && (i == 0 || global.get()[i] <= most * group(i));
    }
    const std::vector<std::size_t> sizes(global.get(), global.get() + dimensions),
        groups(local.get(), local.get() + local.dimensions());
    CHECK(is_split(sizes, groups, most) == !whole);
    CHECK((pieces.size() == 1) == whole);
    if (whole) CHECK(pieces[0].offset.dimensions() == 0);
    for (const auto& [offset, size] : pieces) {
      REQUIRE(size.dimensions() == dimensions);
      std::size_t count = 1;
      for (std::size_t i = 0; i < dimensions; ++i) {
        const auto first = offset.dimensions() ? offset.get()[i] : 0;
        CHECK(size.get()[i] > 0);
        CHECK(size.get()[i] % group(i) == 0);
        CHECK(first % group(i) == 0);
        CHECK(first + size.get()[i] <= global.get()[i]);
        if (i > 0) CHECK(size.get()[i] <= most * group(i));
        count *= size.get()[i];
      }
      items += count;
    }
    CHECK(items == all);
  }
}

TEST_CASE("kernels for GPUs ask nothing that a piece answers otherwise than the whole") {
  const std::regex question(R"(get_(group_id|num_groups|global_size|global_offset)\([^0)])");
  int seen = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(std::filesystem::path(CLNET_SOURCE_DIR) / "kernels")) {
    if (!file.is_regular_file() || file.path().stem().string().ends_with("_cpu")) continue;
    if (file.path().filename() == "builtins.clh") continue;
    ++seen;
    std::ifstream input(file.path());
    const std::string text(std::istreambuf_iterator<char>(input), {});
    INFO(file.path());
    CHECK_FALSE(std::regex_search(text, question));
  }
  CHECK(seen > 40);
}
