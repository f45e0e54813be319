// The options that all programs of random programs have.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

struct CommonArguments {
  std::uint64_t seed = 0, count = 100;
  double seconds = 0, shrink_seconds = 60;
  bool show = false;
  Settings settings;
};

inline void add_common(CLI::App& app, CommonArguments& arguments) {
  app.add_option("--seed", arguments.seed, "the first program's seed");
  app.add_option("--count", arguments.count, "how many programs");
  app.add_option("--seconds", arguments.seconds, "stop after this time");
  app.add_option("--max-ops", arguments.settings.max_ops, "the most operations of a program")->check(CLI::Range(1, 1000));
  app.add_option("--operation", arguments.settings.operation, "each program begins with a call of this one");
  app.add_option("--block", arguments.settings.block, "so many neighbouring seeds share a structure and differ in sizes")
      ->check(CLI::Range(1, 1000000));
  app.add_flag("--show", arguments.show, "print each program as C++");
  app.add_option("--shrink-seconds", arguments.shrink_seconds, "time for making a failing program smaller; 0: as it is");
}

}  // namespace clnet::fuzz
