#include "lib/base/key_locks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "lib/base/file.h"
#include "tests/support/temporary.h"

using clnet::KeyLocks;
namespace fs = std::filesystem;

TEST_CASE("a key is one holder's at a time, within a process and between processes") {
  const clnet::test::Folder folder;
  const auto file = folder / "new folder/locks";
  auto first = std::make_unique<KeyLocks>(file);
  KeyLocks second(file);
  CHECK(first->take("one"));
  CHECK(first->take("one"));
  CHECK_FALSE(second.take("one"));
  CHECK(second.take("two"));
  const pid_t child = ::fork();
  if (child == 0) {
    KeyLocks other(file);
    ::_exit((other.take("one") ? 1 : 0) + (other.take("two") ? 2 : 0) + (other.take("three") ? 4 : 0));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 4);
  first.reset();
  CHECK(second.take("one"));
  // A file for all keys.
  CHECK(fs::file_size(file) == 0);
}

TEST_CASE("a process that is killed gives its keys back") {
  const clnet::test::Folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    KeyLocks holder(folder / "locks");
    holder.take("one");
    clnet::file::replace(folder / "taken", "");
    for (;;) ::pause();
  }
  while (!fs::exists(folder / "taken")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  KeyLocks waiting(folder / "locks");
  CHECK_FALSE(waiting.take("one"));
  ::kill(child, SIGSTOP);
  CHECK_FALSE(waiting.take("one"));
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(waiting.take("one"));
}

TEST_CASE("where there can be no locks everybody gets every key, and files stay as they are") {
  const clnet::test::Folder folder;
  // For root as well.
  folder.write("in the way", "a file");
  KeyLocks first(folder / "in the way/locks"), second(folder / "in the way/locks");
  CHECK(first.take("one"));
  CHECK(second.take("one"));
  KeyLocks third(folder.path()), fourth(folder.path());
  CHECK(third.take("one"));
  CHECK(fourth.take("one"));
  KeyLocks of_content(folder / "in the way");
  CHECK(of_content.take("one"));
  CHECK(clnet::file::read(folder / "in the way", 100) == "a file");
}
