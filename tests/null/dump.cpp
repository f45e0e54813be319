// What the null driver writes down for tools/dev/offline_compile.py.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "lib/base/file.h"
#include "tests/support/temporary.h"

using namespace clnet;

TEST_CASE("the null driver dumps programs with their options, and launches") {
  const test::Folder folder;
  const Tensor x = ones({100}).detach();
  const Kernel twice = Kernel("dumped_twice",
                              "kernel void dumped_twice(IN(x), OUT(y)) {\n"
                              "  const int i = get_global_id(0);\n"
                              "  if (i < 100) STORE(y, i, 2 * LOAD(x, i));\n}")
                           .range({100}, {16});
  {
    const test::Variable dump("NULL_OPENCL_DUMP", (folder / "out").c_str());
    for (int run = 0; run < 2; ++run) twice(x).eval();
  }
  twice(x).eval();
  std::vector<std::filesystem::path> programs;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "out"))
    if (entry.path().extension() == ".cl") programs.push_back(entry.path());
  REQUIRE(programs.size() == 1);
  const std::string text = file::read(programs[0].string(), 1 << 20);
  CHECK(text.rfind("// -cl-std=CL1.2", 0) == 0);
  CHECK_THAT(text, Catch::Contains("STORE(y, i, 2 * LOAD(x, i));"));
  const std::string line = programs[0].stem().string() + " dumped_twice 112x1x1 16x1x1 0 -\n";
  CHECK(file::read((folder / "out" / "launches").string(), 1 << 20) == line + line);
}
