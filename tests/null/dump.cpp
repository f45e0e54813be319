// What the null driver writes down for tools/dev/offline_compile.py.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "lib/base/file.h"
#include "tests/support/temporary.h"

using namespace clnet;

namespace {

/// The only program in a folder.
std::string only_program(const std::filesystem::path& folder, std::string& name) {
  std::vector<std::filesystem::path> programs;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".cl") programs.push_back(entry.path());
  REQUIRE(programs.size() == 1);
  name = programs[0].stem().string();
  return file::read(programs[0].string(), 1 << 20);
}

}  // namespace

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
  std::string name;
  const std::string text = only_program(folder / "out", name);
  CHECK(text.rfind("// -cl-std=CL1.2", 0) == 0);
  CHECK_THAT(text, Catch::Contains("STORE(y, i, 2 * LOAD(x, i));"));
  const std::string line = name + " dumped_twice 112x1x1 16x1x1 0 -\n";
  CHECK(file::read((folder / "out" / "launches").string(), 1 << 20) == line + line);
}

TEST_CASE("without cl_khr_fp16 kernels convert halves by hand, but for NVIDIA's compiler, which has vload_half") {
  const test::Folder folder;
  const Tensor x = ones({100}, Dtype::f16).detach();
  {
    const test::Variable dump("NULL_OPENCL_DUMP", (folder / "out").c_str());
    relu(x).eval();
  }
  const auto info = Device::current().info();
  std::string name;
  const bool by_hand = only_program(folder / "out", name).find("#define CLNET_HALVES_BY_HAND\n") != std::string::npos;
  CHECK(by_hand == (!info.fp16 && info.platform != "NVIDIA CUDA"));
}
