#include "tools/prepare.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include "clnet/clnet.h"
#include "lib/pocl/cache_folder.h"
#include "lib/pocl/door.h"
#include "tools/caches.h"
#include "tools/child.h"
#include "tools/tell_compiling.h"

namespace clnet::tools {

namespace {

constexpr int interrupted = 130;

struct Network {
  std::string name;
  Shape image{1, 28, 28};
  std::optional<std::int64_t> batch;
};

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::int64_t number(const std::string& text, const std::string& word) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < 1 || value > 1 << 20)
    throw Error(
        fmt::format("--prepare {}: '{}' is not a size; expected NETWORK, NETWORK:CxHxW or NETWORK:CxHxW:BATCH", word, text));
  return value;
}

/// Nothing where the word names no network.
std::optional<Network> network_of(const std::string& word) {
  const auto parts = split(word, ':');
  const auto names = models::names();
  if (parts.size() > 3 || std::find(names.begin(), names.end(), parts[0]) == names.end()) return std::nullopt;
  Network network;
  network.name = parts[0];
  if (parts.size() > 1) {
    if (models::is_language_model(network.name)) throw Error(fmt::format("--prepare {}: {} takes no images", word, network.name));
    const auto sizes = split(parts[1], 'x');
    if (sizes.size() != 3) throw Error(fmt::format("--prepare {}: '{}' is not of the form CxHxW", word, parts[1]));
    network.image = Shape{number(sizes[0], word), number(sizes[1], word), number(sizes[2], word)};
  }
  if (parts.size() > 2) network.batch = number(parts[2], word);
  constexpr double most_values = 1 << 28;
  const auto& image = network.image;
  const auto batch = static_cast<double>(network.batch.value_or(256));
  double values = batch;
  for (int d = 0; d < image.rank(); ++d) values *= static_cast<double>(image[d]);
  if (values > most_values) throw Error(fmt::format("--prepare {}: a batch of {} such images is too large", word, batch));
  return network;
}

/// Samples of zeros, as many as make a full batch and the last one of clnet-train's usual data.
data::ArrayDataset images(const Network& network, std::int64_t last) {
  constexpr std::int64_t classes = 10, usual_batch = 128;
  const auto count = network.batch ? *network.batch : usual_batch + last;
  return data::from_arrays(std::vector<float>(static_cast<std::size_t>(count * network.image.numel())), network.image,
                           std::vector<std::int32_t>(static_cast<std::size_t>(count)), classes);
}

/// What clnet-train computes by default, but that nothing is saved. False: it was interrupted.
bool train(nn::Module& model, const data::Dataset& training, const data::Dataset& validation, std::int64_t batch) {
  train::FitOptions fit{.epochs = 1, .batch_size = batch, .optimizer = optim::make("adam", model, {.learning_rate = 1e-3})};
  fit.validation = validation;
  fit.progress = ::isatty(STDERR_FILENO);
  return !train::fit(model, training, fit).interrupted;
}

/// False: it was interrupted.
bool compile_network(const Network& network) {
  manual_seed(1);
  if (!models::is_language_model(network.name)) {
    // Fashion-MNIST's 60,000 and 10,000 images leave so many for the last batch.
    const auto training = images(network, 96), validation = images(network, 16);
    const auto model = models::make(network.name, network.image, training.classes);
    return train(*model, training, validation, network.batch.value_or(128));
  }
  constexpr std::int64_t context = 64, batch = 32, characters = 65, training_last = 5, validation_last = 14;
  std::string alphabet, text;
  for (char c = ' '; std::ssize(alphabet) < characters; ++c) alphabet += c;
  while (std::ssize(text) < 2 * batch * context) text += alphabet;
  // Of the plays of Shakespeare nine tenths and one leave so many for the last batch.
  const auto lines = [&](std::int64_t last) {
    return data::from_text(text.substr(0, static_cast<std::size_t>((batch + last) * context + 1)), alphabet, context);
  };
  const auto model = models::make_language_model(network.name, context, characters);
  if (!train(*model, lines(training_last), lines(validation_last), batch)) return false;
  // As much as clnet-train shows, which is more than the context.
  const std::int32_t prompt = 0;
  models::generate(*model, std::span(&prompt, 1), {});
  return true;
}

int run_program(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int failure[2];
  if (::pipe2(failure, O_CLOEXEC) != 0) throw Error(fmt::format("--prepare: no pipe: {}", std::strerror(errno)));
  const auto process = ::fork();
  if (process == 0) {
    end_with_parent();
    ::execvp(arguments[0], arguments.data());
    const int code = errno;
    (void)!::write(failure[1], &code, sizeof code);
    ::_exit(127);
  }
  ::close(failure[1]);
  int code = process < 0 ? errno : 0;
  if (process > 0) (void)!::read(failure[0], &code, sizeof code);
  ::close(failure[0]);
  // Ctrl-C is the program's to answer, which gets it from the terminal, too.
  struct sigaction ignoring {
  }, found{};
  ignoring.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &ignoring, &found);
  int status = 0;
  while (process > 0 && ::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  ::sigaction(SIGINT, &found, nullptr);
  if (code != 0)
    throw Error(fmt::format("--prepare {}: is none of the networks {}, and cannot be run: {}", words[0],
                            fmt::join(models::names(), ", "), std::strerror(code)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int prepare(const std::vector<std::string>& words) {
  const auto before = cached_programs();
  const auto start = std::chrono::steady_clock::now();
  const auto network = network_of(words[0]);
  if (network && words.size() > 1)
    throw Error(fmt::format("--prepare {}: nothing may follow the name of a network, as '{}' does", words[0], words[1]));
  if (network && pocl::is_pocl(Device::current().info()) && !pocl::cache_folder())
    throw Error(fmt::format("--prepare {}: PoCL keeps nothing on disk (POCL_KERNEL_CACHE)", words[0]));
  int code = 0;
  if (network) {
    if (!::isatty(STDERR_FILENO)) tell_of_compiling(stderr);
    code = compile_network(*network) ? 0 : interrupted;
  } else {
    code = run_program(words);
  }
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto after = cached_programs();
  if (after > before)
    fmt::print("{}: {} new programs, in {:.1f} s\n", words[0], after - before, seconds);
  else
    fmt::print("{}: no program was new, in {:.1f} s\n", words[0], seconds);
  if (network && code == interrupted)
    fmt::print(stderr, "clnet-info: interrupted before {} was prepared\n", words[0]);
  else if (code != 0)
    fmt::print(stderr, "clnet-info: {} ended with {}\n", words[0], code);
  return code;
}

}  // namespace clnet::tools
