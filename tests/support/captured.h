// What is written on stderr meanwhile.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "tests/support/temporary.h"

namespace clnet::test {

template <class F>
std::string written_on_stderr(const F& f) {
  const Folder folder;
  const auto path = folder.write("stderr", "");
  std::fflush(stderr);
  const int screen = ::dup(STDERR_FILENO), into = ::open(path.c_str(), O_WRONLY | O_APPEND);
  if (screen < 0 || into < 0) throw std::runtime_error("cannot capture stderr");
  ::dup2(into, STDERR_FILENO);
  struct Restore {
    int screen, into;
    ~Restore() {
      std::fflush(stderr);
      ::dup2(screen, STDERR_FILENO);
      ::close(screen);
      ::close(into);
    }
  };
  {
    const Restore restore{screen, into};
    f();
  }
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace clnet::test
