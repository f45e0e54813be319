// The variable sizes of a solver (tiles, registers, lanes, splits): named integers, written "{tile=64,lanes=8}".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clnet::exec {

class Config {
 public:
  Config() = default;
  Config(std::initializer_list<std::pair<std::string, std::int64_t>> values) : values_(values) {}

  bool empty() const { return values_.empty(); }
  /// The value of a name. Throws Error for an unknown name, which is a fault of the solver.
  std::int64_t operator[](std::string_view name) const;
  std::int64_t value(std::string_view name, std::int64_t otherwise) const;
  void add(std::string_view name, std::int64_t value) { values_.emplace_back(name, value); }
  /// Whether it has all names of `wanted`, with the same values.
  bool agrees(const Config& wanted) const;
  /// "{tile=64,lanes=8}"; an empty text for no values.
  std::string text() const;

 private:
  friend struct Choice;
  std::vector<std::pair<std::string, std::int64_t>> values_;
};

/// A solver and a configuration, possibly partial: "cpu", "cpu{lanes=8}".
struct Choice {
  std::string solver;
  Config config;

  std::string text() const { return solver + config.text(); }
  /// Throws Error with the fault of an invalid text.
  static Choice parse(std::string_view text);
};

}  // namespace clnet::exec
