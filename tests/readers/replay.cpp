// The cases that fuzzers found, and others that were hard to read: none crashes, and each reader keeps its promises.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/paths.h"
#include "tests/readers/input.h"

TEST_CASE("readers take the cases that fuzzers found") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(CLNET_SOURCE_DIR) / "tests/readers", cases = folder / "cases";
  for (const auto& entry : fs::directory_iterator(folder))
    if (const auto& path = entry.path(); path.extension() == ".cpp" && path.stem() != "replay")
      CHECK(clnet::test::readers().contains(path.stem().string()));
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(cases)) {
    if (!entry.is_regular_file()) continue;
    INFO(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream stream;
    stream << file.rdbuf();
    const auto bytes = stream.str();
    const auto reader = clnet::test::readers().find(entry.path().parent_path().filename().string());
    REQUIRE(reader != clnet::test::readers().end());
    CHECK(reader->second(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()) == 0);
    ++count;
  }
  CHECK(count > 0);
}
