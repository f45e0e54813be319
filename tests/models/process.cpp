#include "tests/models/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "tests/idx_writer.h"
#include "tests/paths.h"
#include "tests/support/temporary.h"

namespace clnet::test {

namespace fs = std::filesystem;

Process::Process(const fs::path& folder, std::vector<std::string> arguments, const std::vector<std::string>& environment)
    : out_(folder / "stdout.txt"), err_(folder / "stderr.txt") {
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ > 0) return;
  const int out = ::open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err = ::open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out < 0 || err < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0 || ::chdir(folder.c_str()) != 0) ::_exit(126);
  for (const auto& entry : environment) ::putenv(const_cast<char*>(entry.c_str()));
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

Process::~Process() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const { ::kill(pid_, number); }

Outcome Process::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return {WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status), content(out_), content(err_)};
}

bool wait_until(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

std::vector<std::string> clnet_train_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), CLNET_TRAIN);
  return arguments;
}

Outcome clnet_train(const fs::path& folder, std::vector<std::string> arguments, const std::vector<std::string>& environment) {
  return Process(folder, clnet_train_command(std::move(arguments)), environment).wait();
}

void write_idx_dataset(const fs::path& folder, int train_samples, int test_samples) {
  fs::create_directories(folder);
  constexpr int side = 8, area = side * side;
  const auto write = [&](const std::string& name, int count, int salt) {
    std::string images, labels;
    for (int i = 0; i < count; ++i) {
      const int label = (i * 7 + salt) % 10;
      std::string image(area, '\0');
      for (int p = 0; p < area; ++p) image[static_cast<std::size_t>(p)] = static_cast<char>((i * 31 + p * p * 17 + salt) % 60);
      for (int spot = 0; spot < 6; ++spot) image[static_cast<std::size_t>(label * 6 + spot)] = static_cast<char>(200);
      images += image;
      labels += static_cast<char>(label);
    }
    const auto n = static_cast<std::uint32_t>(count);
    std::ofstream(folder / (name + "-images-idx3-ubyte"), std::ios::binary) << idx(0x803, {n, side, side}, images);
    std::ofstream(folder / (name + "-labels-idx1-ubyte"), std::ios::binary) << idx(0x801, {n}, labels);
  };
  write("train", train_samples, 1);
  write("t10k", test_samples, 5);
}

std::vector<std::string> log_without_times(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    auto object = nlohmann::json::parse(line);
    if (object.contains("format")) continue;
    for (const char* speed : {"images_per_second", "characters_per_second"}) object.erase(speed);
    object.erase("seconds");
    lines.push_back(object.dump());
  }
  return lines;
}

}  // namespace clnet::test
