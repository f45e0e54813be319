#include "lib/base/os/process.h"

#include <unistd.h>

#ifdef __linux__
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#endif

namespace clnet::os {

std::int64_t own_process() { return ::getpid(); }

#ifdef __linux__

namespace {

constexpr int first_given = 3;

/// The same file under a number that start() does not give away.
Descriptor above_given(int number) {
  const Descriptor low(number);
  return Descriptor(low.is_open() ? ::fcntl(number, F_DUPFD_CLOEXEC, 16) : number);
}

/// Whether what waitpid() tells is the end by a fault of its own, not by somebody's wish.
bool is_crash(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status) != 0;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
         signal == SIGTRAP || signal == SIGSYS;
}

}  // namespace

bool starts_processes() { return true; }

std::pair<Descriptor, Descriptor> pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
  return {above_given(ends[0]), above_given(ends[1])};
}

Descriptor memory_file(const char* name) { return above_given(::memfd_create(name, MFD_CLOEXEC)); }

std::int64_t start(std::vector<std::string> words, std::span<const int> descriptors) {
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return -1;
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
  int place = first_given;
  for (const int descriptor : descriptors) ::posix_spawn_file_actions_adddup2(&actions, descriptor, place++);
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 34)
  ::posix_spawn_file_actions_addclosefrom_np(&actions, place);
#endif
#endif
  // Ctrl-C is the host's to answer: who ends by it would look as if a kernel had crashed it.
  posix_spawnattr_t attributes;
  if (::posix_spawnattr_init(&attributes) != 0) return -1;
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process = -1;
  const int failure = ::posix_spawn(&process, words[0].c_str(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return failure == 0 ? process : -1;
}

void run_when_idle(std::int64_t process) {
  constexpr int lowest = 19;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(process), lowest);
}

Child state(std::int64_t process) {
  int status = 0;
  const auto ended = ::waitpid(static_cast<pid_t>(process), &status, WNOHANG);
  if (ended == 0) return Child::runs;
  if (ended < 0) return Child::unknown;
  return is_crash(status) ? Child::crashed : Child::ended;
}

void kill(std::int64_t process) {
  const auto number = static_cast<pid_t>(process);
  ::kill(number, SIGKILL);
  while (::waitpid(number, nullptr, 0) < 0 && errno == EINTR) {
  }
}

#else

bool starts_processes() { return false; }
std::pair<Descriptor, Descriptor> pipe() { return {}; }
Descriptor memory_file(const char*) { return {}; }
std::int64_t start(std::vector<std::string>, std::span<const int>) { return -1; }
void run_when_idle(std::int64_t) {}
Child state(std::int64_t) { return Child::unknown; }
void kill(std::int64_t) {}

#endif

}  // namespace clnet::os
