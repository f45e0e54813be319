// What a run computes, without a device and without the verifier's rules: every byte of memory is a number, and a launch writes
// numbers that depend on the launch and on all that it reads where its arguments point. Two runs compute the same exactly when
// the numbers of their results are the same, but for accidents of hashing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "lib/exec/place/verify.h"

namespace clnet::test {

class PlanOracle {
 public:
  using Numbers = std::vector<std::uint64_t>;

  /// The numbers of a leaf that holds the value of this id.
  static std::uint64_t leaf_byte(std::uint64_t source, std::int64_t byte) {
    return mix(mix(1, source), static_cast<std::uint64_t>(byte));
  }

  Numbers& buffer(std::uint64_t id, std::int64_t capacity) {
    auto& memory = memory_[id];
    // What nobody wrote is no value: different at every address.
    while (memory.size() < static_cast<std::size_t>(std::max<std::int64_t>(capacity, 0)))
      memory.push_back(mix(mix(2, id), memory.size()));
    return memory;
  }

  void run(const exec::RunView& run) {
    for (const auto& place : run.places) buffer(place.buffer, place.capacity);
    for (const auto& command : run.commands)
      if (!command.left_out) launch(command);
  }

  std::uint64_t number(const exec::RunArgument& argument) { return read(argument); }

  /// The same with a place of its own for each value, by what the launches mean: how it should be.
  static Numbers meant(const exec::RunView& run) {
    auto apart = run;
    PlanOracle oracle;
    for (std::size_t id = 0; id < apart.places.size(); ++id)
      if (run.placement->homes[id] != exec::Home::leaf && apart.places[id].buffer) {
        const auto bytes = run.recording->value(static_cast<exec::ValueId>(id)).spec.bytes();
        apart.places[id] = {separate + id, 0, std::max<std::int64_t>(bytes, 1)};
      }
    const auto move = [&](exec::RunArgument& a) {
      const auto& place = apart.places[static_cast<std::size_t>(a.root)];
      a.buffer = place.buffer;
      a.address = place.begin + a.begin;
    };
    for (auto& command : apart.commands) {
      const auto prepack = run.placement->prepack_of[command.command];
      if (prepack != exec::Placement::none) command.left_out = false;
      for (auto& argument : command.arguments) move(argument);
    }
    for (auto& result : apart.results) move(result);
    oracle.leaves(apart);
    oracle.run(apart);
    Numbers result;
    for (const auto& argument : apart.results) result.push_back(oracle.number(argument));
    return result;
  }

  /// Fills the leaves with the values of the run's sources.
  void leaves(const exec::RunView& run) {
    for (std::size_t id = 0; id < run.places.size(); ++id) {
      const auto& place = run.places[id];
      if (run.placement->homes[id] != exec::Home::leaf || !place.buffer) continue;
      auto& memory = buffer(place.buffer, place.capacity);
      for (std::size_t k = 0; k < memory.size(); ++k) memory[k] = leaf_byte(place.buffer, static_cast<std::int64_t>(k));
    }
  }

 private:
  static constexpr std::uint64_t separate = std::uint64_t{1} << 40;

  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    auto x = a * 0x9E3779B97F4A7C15U + b + 0x7F4A7C15U;
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9U;
    x ^= x >> 27;
    return x;
  }

  std::uint64_t read(const exec::RunArgument& argument) {
    std::uint64_t number = 3;
    for (auto k = argument.begin; k < argument.end; ++k) number = mix(number, byte(argument, k));
    return number;
  }

  std::uint64_t& byte(const exec::RunArgument& argument, std::int64_t meant) {
    auto& memory = memory_[argument.buffer];
    const auto at = argument.address + meant - argument.begin;
    // Outside of a buffer is a number that changes whenever somebody writes there.
    if (at < 0 || at >= static_cast<std::int64_t>(memory.size())) return outside_ = mix(outside_, 5);
    return memory[static_cast<std::size_t>(at)];
  }

  /// Whether some work-item may read an element after another has written there: what comes of it is by chance.
  static bool races(const exec::RunCommand& command) {
    const auto end = [](const exec::RunArgument& a) { return a.address + a.end - a.begin; };
    for (const auto& out : command.arguments) {
      if (!out.writes) continue;
      for (const auto& other : command.arguments) {
        if (&other == &out || other.buffer != out.buffer ||
            std::max(other.address, out.address) >= std::min(end(other), end(out)))
          continue;
        const bool same = other.reads && !other.writes && other.same_element && other.element == out.element &&
                          other.address - other.begin == out.address - out.begin;
        if (!same) return true;
      }
    }
    return false;
  }

  void launch(const exec::RunCommand& command) {
    auto number = mix(mix(4, command.command), races(command) ? ++chances_ : 0);
    for (const auto& argument : command.arguments)
      if (argument.reads) number = mix(number, read(argument));
    std::uint64_t ordinal = 0;
    for (const auto& argument : command.arguments) {
      ++ordinal;
      if (!argument.writes) continue;
      for (auto k = argument.begin; k < argument.end; ++k)
        byte(argument, k) = mix(mix(number, ordinal), static_cast<std::uint64_t>(k));
    }
  }

  std::map<std::uint64_t, Numbers> memory_;
  std::uint64_t outside_ = 7, chances_ = 0;
};

}  // namespace clnet::test
