// What was chosen on one device since the process began, as a text that a checkpoint carries: a training that goes on in another
// process computes with the same kernels, whatever was measured in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "lib/exec/options/config.h"

namespace clnet::exec {

/// Solvers by problem, as another process chose them.
struct StoredChoices {
  std::string identity;  ///< all that they depend on
  std::map<std::string, Choice> solvers;

  /// Throws Error where the text is none of Choices::text().
  static StoredChoices parse(const std::string& text);
};

class Choices {
 public:
  /// Problems in the text at most, so that shapes without end take neither memory nor checkpoints.
  static constexpr std::size_t most = 1000;

  explicit Choices(std::string identity) : identity_(std::move(identity)) {}

  /// A problem that is noted with two choices (of operands that lie differently, say) is of none. Warns, once, of one that is not
  /// what is followed.
  void note(const std::string& problem, const Choice& choice);
  bool is_noted(const std::string& problem) const;
  bool follows() const;
  /// What was given to follow() for the problem.
  std::optional<Choice> followed(const std::string& problem) const;

  /// What is noted, and what is followed of problems that were not met yet.
  std::string text() const;

  enum class Follows : std::uint8_t {
    no,       ///< they are of another identity, and nothing is followed
    yes,      ///< as all that was noted so far does
    changed,  ///< but something was noted with another choice
  };
  Follows follow(StoredChoices stored);

 private:
  std::string identity_;
  mutable std::mutex mutex_;
  std::map<std::string, std::optional<Choice>> noted_;
  std::map<std::string, Choice> followed_;
  bool told_ = false;  ///< that something is not followed
};

}  // namespace clnet::exec
