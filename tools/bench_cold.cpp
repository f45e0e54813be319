#include "tools/bench_cold.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "lib/cl/context.h"
#include "tools/child.h"

namespace clnet::bench {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view first_said = "first step\n";

/// Caches of clnet and the drivers, empty at first.
class Caches {
 public:
  Caches() {
    std::string pattern = (fs::temp_directory_path() / ("clnet-cold-" + std::string(6, 'X'))).string();
    if (!::mkdtemp(pattern.data())) throw FileError(fmt::format("{}: cannot be made", pattern));
    folder_ = pattern;
    for (const char* variable :
         {"CLNET_CACHE_DIR", "POCL_CACHE_DIR", "CUDA_CACHE_PATH", "MESA_SHADER_CACHE_DIR", "NEO_CACHE_DIR"}) {
      fs::create_directory(folder_ / variable);
      environment_.push_back(fmt::format("{}={}", variable, (folder_ / variable).string()));
    }
  }
  ~Caches() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Caches(const Caches&) = delete;
  Caches& operator=(const Caches&) = delete;

  /// In the process that is about to be another program.
  void use() {
    for (auto& entry : environment_) ::putenv(entry.data());
  }

 private:
  fs::path folder_;
  std::vector<std::string> environment_;
};

std::vector<std::string> command(const std::string& item, const std::string& device) {
  std::vector<std::string> words{fs::read_symlink("/proc/self/exe").string(), "--first-step"};
  if (!device.empty()) words.insert(words.end(), {"--device", device});
  words.push_back(item);
  return words;
}

/// Makes the steps in a process, which finds these caches unless they are null.
FirstStep run(Caches* caches, std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("no pipe");
  const auto start = std::chrono::steady_clock::now();
  const auto process = ::fork();
  if (process < 0) throw Error("no process");
  if (process == 0) {
    tools::end_with_parent();
    ::dup2(ends[1], STDOUT_FILENO);
    if (caches) caches->use();
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  FirstStep result;
  std::string text;
  for (char buffer[256];;) {
    const auto size = ::read(ends[0], buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    if (text.empty()) result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    text.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !text.starts_with(first_said))
    throw Error(fmt::format("the process for {} failed", words.back()));
  result.programs = std::stoull(text.substr(first_said.size()));
  return result;
}

}  // namespace

FirstStep first_step(const std::string& item, const std::string& device) { return run(nullptr, command(item, device)); }

std::pair<FirstStep, FirstStep> first_steps(const std::string& item, const std::string& device) {
  Caches caches;
  const auto words = command(item, device);
  const auto cold = run(&caches, words);
  return {cold, run(&caches, words)};
}

void make_first_step(const Item& item) {
  const auto step = item.prepare();
  step();
  Device::current().finish();
  fmt::print("{}", first_said);
  std::fflush(stdout);
  // The second may find values where the first found none.
  step();
  Device::current().finish();
  const auto& programs = context_of(Device::current())->programs();
  fmt::print("{}\n", programs.built() + programs.loaded());
}

}  // namespace clnet::bench
