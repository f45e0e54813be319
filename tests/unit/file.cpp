#include "lib/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clnet/error.h"
#include "tests/support/temporary.h"

using namespace clnet;
namespace fs = std::filesystem;

namespace {

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a file is replaced as a whole and read back") {
  const clnet::test::Folder folder;
  const std::string path = folder / "file", content("a\0b\n", 4);
  file::replace(path, content);
  CHECK(file::read(path, 4) == content);
  file::replace(path, "second");
  CHECK(file::read(path, 100) == "second");
  file::replace(path, "");
  CHECK(file::read(path, 0).empty());
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a failure in the middle leaves the old file and no other") {
  const clnet::test::Folder folder;
  const std::string path = folder / "file";
  file::replace(path, "old");
  CHECK_THROWS_AS(file::replace(path,
                                [](std::ostream& out) {
                                  out << "half";
                                  throw std::runtime_error("stop");
                                }),
                  std::runtime_error);
  CHECK_THROWS_AS(file::replace(path, [](std::ostream& out) { out.setstate(std::ios::failbit); }), FileError);
  CHECK(file::read(path, 100) == "old");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a file is created where there is none, by one of several") {
  const clnet::test::Folder folder;
  const auto path = folder / "file";
  CHECK(file::create(path, "first"));
  CHECK_FALSE(file::create(path, "second"));
  CHECK(file::read(path, 100) == "first");
  CHECK_THROWS_AS(file::create(folder / "missing/file", "x"), FileError);
  std::vector<std::future<bool>> made;
  for (int i = 0; i < 8; ++i)
    made.push_back(std::async(std::launch::async, [&, i] { return file::create(folder / "other", std::to_string(i)); }));
  int first = -1;
  for (int i = 0; i < 8; ++i)
    if (made[static_cast<std::size_t>(i)].get()) CHECK(std::exchange(first, i) == -1);
  CHECK(file::read(folder / "other", 100) == std::to_string(first));
  // No temporary files are left.
  CHECK(entries(folder.path()) == 2);
}

TEST_CASE("the target of a link is replaced, not the link") {
  const clnet::test::Folder folder;
  file::replace(folder / "target", "old");
  fs::create_symlink("target", folder / "link");
  file::replace(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(file::read(folder / "target", 100) == "new");
}

TEST_CASE("a link to where nothing is yet stays a link") {
  const clnet::test::Folder folder;
  fs::create_directory(folder / "deeper");
  fs::create_symlink("second", folder / "deeper/first");
  fs::create_symlink("../target", folder / "deeper/second");
  file::replace(folder / "deeper/first", "new");
  CHECK(fs::is_symlink(folder / "deeper/first"));
  CHECK(fs::is_symlink(folder / "deeper/second"));
  CHECK(file::read(folder / "target", 100) == "new");
  fs::create_symlink("circle", folder / "circle");
  CHECK_THROWS_WITH(file::replace(folder / "circle", "new"), Catch::Contains("symbolic links"));
  fs::create_symlink("missing/target", folder / "nowhere");
  CHECK_THROWS_AS(file::replace(folder / "nowhere", "new"), FileError);
  CHECK(fs::is_symlink(folder / "nowhere"));
}

TEST_CASE("temporary files of killed writers go with the next write, those of living ones stay") {
  const clnet::test::Folder folder;
  const std::string path = folder / "file";
  const pid_t child = ::fork();
  if (child == 0) {
    file::replace(path, [](std::ostream& out) {
      out << "half" << std::flush;
      ::kill(::getpid(), SIGKILL);
    });
    ::_exit(1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK_FALSE(fs::exists(path));
  REQUIRE(entries(folder.path()) == 1);
  // A number says nothing, as another process may have it by now; what is being written is locked.
  const std::string living = "file.tmp-999999999-1", reused = fmt::format("file.tmp-{}-99", ::getppid());
  for (const auto& name :
       {living, reused, std::string("file.tmp-x-1"), std::string("file.tmp-1"), std::string("other.tmp-999999999-1")})
    folder.write(name, "");
  const int writer = ::open((folder / living).c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(::flock(writer, LOCK_EX) == 0);
  file::replace(path, "new");
  CHECK(entries(folder.path()) == 5);
  CHECK(fs::exists(folder / living));
  CHECK_FALSE(fs::exists(folder / reused));
  ::close(writer);
}

TEST_CASE("a temporary file's name that another writer took, by chance with the same number, is left to it") {
  const clnet::test::Folder folder;
  const std::string path = folder / "file", stem = fmt::format("file.tmp-{}-", ::getpid());
  unsigned next = 0;
  file::replace(path, [&](std::ostream&) {
    for (const auto& entry : fs::directory_iterator(folder.path()))
      if (const auto name = entry.path().filename().string(); name.starts_with(stem))
        next = static_cast<unsigned>(std::stoul(name.substr(stem.size()))) + 1;
  });
  REQUIRE(next > 0);
  const auto taken = fmt::format("{}{}", stem, next);
  folder.write(taken, "another's");
  const int writer = ::open((folder / taken).c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(::flock(writer, LOCK_EX) == 0);
  // Who waits for the other goes on after a while.
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ::flock(writer, LOCK_UN);
  });
  CHECK_NOTHROW(file::replace(path, "new"));
  other.join();
  CHECK(file::read(folder / taken, 100) == "another's");
  CHECK(file::read(path, 100) == "new");
  ::close(writer);
}

TEST_CASE("what cannot be read or written is named with the reason") {
  const clnet::test::Folder folder;
  const std::string missing = folder / "missing";
  CHECK_THROWS_WITH(file::read(missing, 10), missing + ": no such file");
  CHECK_THROWS_WITH(file::read(folder.path(), 10), folder.path().string() + ": is a folder, not a file");
  CHECK_THROWS_WITH(file::read("/dev/zero", 10), "/dev/zero: is not a regular file");
  file::replace(folder / "large", "12345");
  CHECK_THROWS_WITH(file::read(folder / "large", 4), Catch::EndsWith("has 5 bytes, expected at most 4"));
  CHECK_THROWS_WITH(file::replace(folder.path(), "x"), Catch::EndsWith("is a folder, not a file"));
  CHECK_THROWS_WITH(file::replace("/dev/null", "x"), Catch::Contains("not a regular file"));
  CHECK_THROWS_WITH(file::replace(missing + "/file", "x"), Catch::Contains("No such file or directory"));
}
