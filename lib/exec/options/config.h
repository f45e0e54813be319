// What may vary within one solver (tiles, registers, lanes, splits): whole numbers with names, written "{tile=64,lanes=8}".
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
  /// Throws Error where there is no such name, which is a fault of the solver that asks.
  std::int64_t operator[](std::string_view name) const;
  std::int64_t value(std::string_view name, std::int64_t otherwise) const;
  void add(std::string_view name, std::int64_t value) { values_.emplace_back(name, value); }
  /// Whether it has every name of `wanted`, with the same value.
  bool agrees(const Config& wanted) const;
  /// "{tile=64,lanes=8}", nothing when empty.
  std::string text() const;

 private:
  friend struct Choice;
  std::vector<std::pair<std::string, std::int64_t>> values_;
};

/// A solver and a configuration, which may name some of its values only: "cpu", "cpu{lanes=8}".
struct Choice {
  std::string solver;
  Config config;

  std::string text() const { return solver + config.text(); }
  /// Throws Error that says what is wrong with the text.
  static Choice parse(std::string_view text);
};

}  // namespace clnet::exec
