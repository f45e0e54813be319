// Random programs that onnx::save() writes, beside what onnx::load() makes of the files. A program that started this one may run
// each file, too: see docs/developer/testing.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <map>
#include <set>
#include <string>

#include "clnet/clnet.h"
#include "tests/fuzz/arguments.h"
#include "tests/fuzz/run.h"
#include "tests/fuzz/saved.h"
#include "tests/support/temporary.h"

namespace clnet::fuzz {

namespace {

struct SavedArguments : CommonArguments {
  std::uint64_t device = 0;
  bool asks = false;
};

/// Asks by a line, "run FOLDER" or "plain FOLDER", and reads one: "ran", "refused WHY", "invalid WHY" or "ended WHY".
Answer ask(const std::filesystem::path& folder, bool plain) {
  std::cout << (plain ? "plain " : "run ") << folder.string() << std::endl;
  std::string line;
  if (!std::getline(std::cin, line)) throw Error("the program that runs the files has ended");
  const auto word = line.substr(0, line.find(' '));
  const auto rest = line.size() > word.size() ? line.substr(word.size() + 1) : std::string();
  if (word == "ran") return {};
  return {word == "refused" ? Answer::Kind::refused : word == "ended" ? Answer::Kind::ended : Answer::Kind::invalid, rest};
}

std::string kind_of_fault(const SavedOutcome& outcome) {
  return outcome.fault ? outcome.fault->substr(0, outcome.fault->find(':')) : std::string();
}

/// The same reason of other programs is one.
std::string without_numbers(const std::string& text) {
  std::string result;
  for (const char c : text)
    if (!std::isdigit(static_cast<unsigned char>(c)))
      result += c;
    else if (result.empty() || result.back() != '#')
      result += '#';
  return result;
}

struct Refusals {
  std::int64_t count = 0;
  std::uint64_t seed = 0;  ///< the first one's
};

int fuzz_saved(const SavedArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const test::Folder folder;
  SavedOptions options{.folder = folder / "case"};
  if (arguments.asks) options.runner = ask;
  auto settings = arguments.settings;
  settings.without = never_written(settings, folder.path());
  std::map<std::string, std::int64_t> refused_by_save, written;
  std::map<std::string, Refusals> refused_by_other;
  std::uint64_t made = 0, empty = 0, same = 0, failed = 0, refused = 0, optimizer = 0, follows = 0, on_device = 0;
  std::int64_t elements = 0, judged = 0;
  for (; made < arguments.count && (arguments.seconds <= 0 || elapsed() < arguments.seconds); ++made) {
    const auto seed = arguments.seed + made;
    const auto program = writable(Generator(seed, settings)(), folder.path(), refused_by_save);
    if (program.evaluations.empty()) {
      ++empty;
      continue;
    }
    if (arguments.show) fmt::print("{}\n", to_code(program));
    options.device = arguments.device > 0 && made % arguments.device == 0;
    on_device += options.device;
    const auto outcome = check_saved(program, options);
    for (const auto& step : program.steps)
      if (!step.is_leaf()) ++written[step.op];
    elements += outcome.elements;
    judged += outcome.judged;
    follows += outcome.follows_batch;
    optimizer += outcome.optimizer;
    if (outcome.optimizer) fmt::print("seed {}: only with optimizations of the other program\n", seed);
    if (outcome.refused) {
      ++refused;
      auto& known = refused_by_other[without_numbers(*outcome.refused)];
      if (++known.count == 1) known.seed = seed;
    }
    if (!outcome.fault) {
      same += !outcome.refused && !outcome.optimizer;
      continue;
    }
    ++failed;
    fmt::print("FAILED seed {}: {}\n", seed, *outcome.fault);
    std::fflush(stdout);
    if (arguments.shrink_seconds <= 0) continue;
    const auto kind = kind_of_fault(outcome);
    const auto least = shrink(
        program, [&](const Program& candidate) { return kind_of_fault(check_saved(candidate, options)) == kind; },
        arguments.shrink_seconds);
    fmt::print("the smallest program that still fails:\n{}// {}\n\n", to_code(least),
               check_saved(least, options).fault.value_or("(not any more)"));
    std::fflush(stdout);
  }
  std::int64_t calls = 0;
  for (const auto& [op, count] : written) calls += count;
  for (const auto& [text, count] : refused_by_save) fmt::print("not written: {}: {}\n", text, count);
  for (const auto& [text, known] : refused_by_other)
    fmt::print("not run: {}: {}, first seed {}\n", text, known.count, known.seed);
  fmt::print("{} calls of {} operations are written; save() refuses {}: {}\n", calls, written.size(), settings.without.size(),
             fmt::join(settings.without, ", "));
  fmt::print("seeds {} to {}, {:.1f} s, {:.1f} % of {} elements judged, {} follow the batch, {} on the device, {} empty\n",
             arguments.seed, arguments.seed + made - 1, elapsed(),
             elements == 0 ? 0.0 : 100 * static_cast<double>(judged) / static_cast<double>(elements), elements, follows,
             on_device, empty);
  fmt::print("{} the same, {} refused by the other program, {} differ by its optimizations, {} failed\n", same, refused,
             optimizer, failed);
  return failed == 0 ? 0 : 1;
}

int main_saved(int argc, char** argv) {
  SavedArguments arguments;
  arguments.shrink_seconds = 30;
  arguments.settings.plain = true;
  arguments.settings.max_ops = 8;
  arguments.settings.block = 1;
  arguments.settings.most_elements = 1024;
  CLI::App app("Random programs, written by onnx::save(), beside what onnx::load() and other programs make of them.");
  add_common(app, arguments);
  app.add_option("--device", arguments.device, "each so many'th file is also computed on the device; 0: none");
  app.add_flag("--ask", arguments.asks, "ask on the standard output for each file to be run (tools/dev/onnx_fuzz_saved.py)");
  CLI11_PARSE(app, argc, argv);
  arguments.settings.doubles = Device::current().info().fp64;
  return fuzz_saved(arguments);
}

}  // namespace

}  // namespace clnet::fuzz

int main(int argc, char** argv) { return clnet::fuzz::main_saved(argc, argv); }
