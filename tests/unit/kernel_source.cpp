#include "lib/cl/kernel_source.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "tests/paths.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::ocl;

TEST_CASE("includes are put in place, each file once") {
  const clnet::test::Folder folder;
  const test::Variable kernels("CLNET_KERNEL_DIR", folder.path().c_str());
  file::replace(folder / "a.clh", "A\n#include \"b.clh\"\nA2");
  file::replace(folder / "b.clh", "B\n");
  CHECK(resolve_includes("t", "start\n#include \"a.clh\"\n  #  include\t\"b.clh\"  // again\nend") == "start\nA\nB\nA2\nend\n");
  CHECK(resolve_includes("t", "").empty());
  CHECK(resolve_includes("t", "// #include \"none.clh\"\n#include <system.h>\nint includes;") ==
        "// #include \"none.clh\"\n#include <system.h>\nint includes;\n");
}

TEST_CASE("a file that begins by undefining is put in each place") {
  const clnet::test::Folder folder;
  const test::Variable kernels("CLNET_KERNEL_DIR", folder.path().c_str());
  file::replace(folder / "again.clh", "// Why.\n#undef A\n");
  CHECK(resolve_includes("t", "#if X\n#include \"again.clh\"\n#else\n#include \"again.clh\"\n#endif") ==
        "#if X\n// Why.\n#undef A\n#else\n// Why.\n#undef A\n#endif\n");
  file::replace(folder / "again.clh", "#undef A\n#include \"again.clh\"\n");
  CHECK(resolve_includes("t", "#include \"again.clh\"") == "#undef A\n");
}

TEST_CASE("files that include each other end") {
  const clnet::test::Folder folder;
  const test::Variable kernels("CLNET_KERNEL_DIR", folder.path().c_str());
  file::replace(folder / "a.clh", "#include \"b.clh\"\nA");
  file::replace(folder / "b.clh", "#include \"a.clh\"\nB");
  CHECK(resolve_includes("t", "#include \"a.clh\"") == "B\nA\n");
  file::replace(folder / "self.cl", "#include \"self.cl\"\nX");
  CHECK(kernel_source("self") == "X\n");
}

TEST_CASE("a missing file is named together with who wants it") {
  CHECK_THROWS_AS(kernel_source("no_such_kernel"), Unsupported);
  CHECK_THROWS_WITH(kernel_source("no_such_kernel"), "there is no kernel file no_such_kernel.cl");
  CHECK_THROWS_WITH(resolve_includes("mine", "\n#include \"gone.clh\""),
                    "kernel mine includes \"gone.clh\", and there is no such file");
}

TEST_CASE("a file whose text stands under a condition is not taken for included outside of it") {
  const clnet::test::Folder folder;
  const test::Variable kernels("CLNET_KERNEL_DIR", folder.path().c_str());
  file::replace(folder / "a.clh", "#ifndef A_CLH\n#define A_CLH\n#include \"b.clh\"\n#endif");
  file::replace(folder / "b.clh", "#ifndef B_CLH\n#ifdef X\nB\n#endif\n#endif");
  const auto refuses = [](const char* source) {
    CHECK_THROWS_WITH(resolve_includes("mine", source),
                      Catch::Contains("kernel mine includes \"b.clh\", whose text stands under"));
  };
  refuses("#ifdef ROWS\n#include \"a.clh\"\n#endif\n#include \"b.clh\"");
  refuses("#if ROWS\n#include \"b.clh\"\n#else\n#include \"b.clh\"\n#endif");
  refuses("#if ROWS\n#include \"b.clh\"\n#elif LANES\n#include \"b.clh\"\n#endif");
  refuses("#if ROWS\n#include \"b.clh\"\n#endif\n#if ROWS\n#include \"b.clh\"\n#endif");
  // Before, within the same condition, or in a guard.
  CHECK_NOTHROW(resolve_includes("mine", "#include \"b.clh\"\n#ifdef ROWS\n#include \"a.clh\"\n#endif\n#include \"b.clh\""));
  CHECK_NOTHROW(resolve_includes("mine", "#if A\n#include \"a.clh\"\n#if B\n#include \"b.clh\"\n#endif\n#endif"));
  CHECK_NOTHROW(resolve_includes("mine", "#include \"a.clh\"\n#include \"b.clh\""));
}

TEST_CASE("all kernels have their includes where they are needed") {
  const test::Variable none("CLNET_KERNEL_DIR", nullptr);
  for (const auto& embedded : embedded_files()) {
    INFO(embedded.name);
    CHECK_NOTHROW(resolve_includes(embedded.name, embedded.text));
  }
}

TEST_CASE("no kernel has a variadic macro, which NVIDIA's compiler refuses") {
  for (const auto& file : embedded_files()) {
    INFO(file.name);
    CHECK(std::string_view(file.text).find("__VA_ARGS__") == std::string_view::npos);
    CHECK(std::string_view(file.text).find("...)") == std::string_view::npos);
  }
}

TEST_CASE("embedded files are those of kernels/, and the folder on disk comes first") {
  const test::Variable none("CLNET_KERNEL_DIR", nullptr);
  std::map<std::string, std::string> on_disk;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(CLNET_SOURCE_DIR "/kernels"))
    if (entry.is_regular_file()) on_disk[entry.path().filename().string()] = file::read(entry.path(), 1 << 24);
  CHECK(embedded_files().size() == on_disk.size());
  for (const auto& embedded : embedded_files()) {
    INFO(embedded.name);
    CHECK(embedded.text == on_disk[std::string(embedded.name)]);
  }
  if (embedded_files().empty()) return clnet::test::skip("no kernels are embedded in this build");
  const clnet::test::Folder folder;
  const test::Variable kernels("CLNET_KERNEL_DIR", folder.path().c_str());
  const std::string name(embedded_files()[0].name);
  CHECK(kernel_file(name) == std::string(embedded_files()[0].text));
  file::replace(folder / name, "other");
  CHECK(kernel_file(name) == "other");
  // As kernels/ itself lies.
  std::filesystem::create_directory(folder.path() / "family");
  file::replace(folder.path() / "family" / "of_a_family.cl", "in a folder");
  CHECK(kernel_file("of_a_family.cl") == "in a folder");
  CHECK_FALSE(kernel_file("nowhere.cl").has_value());
}
