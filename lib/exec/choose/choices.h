// The choices on one device since the process began, as text for a checkpoint. A training that continues in another process then
// uses the same kernels, whatever was measured in between.
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

/// Solvers by problem, from another process.
struct StoredChoices {
  std::string identity;  ///< device, driver, version and kernels that they depend on
  std::map<std::string, Choice> solvers;

  /// Throws Error for a text that is not from Choices::text(). Solvers that had other names then get those of today.
  static StoredChoices parse(const std::string& text);
};

class Choices {
 public:
  /// Limit of problems in the text, so that endless shapes take neither memory nor checkpoints.
  static constexpr std::size_t most = 1000;

  explicit Choices(std::string identity) : identity_(std::move(identity)) {}

  /// Notes a choice. A problem noted with two choices (of operands with different layouts, say) has none. Warns once where a
  /// choice differs from the followed one.
  void note(const std::string& problem, const Choice& choice);
  bool is_noted(const std::string& problem) const;
  bool follows() const;
  /// The choice that follow() set for the problem.
  std::optional<Choice> followed(const std::string& problem) const;

  /// The noted choices, and the followed ones of problems not met yet.
  std::string text() const;

  enum class Follows : std::uint8_t {
    no,       ///< another device or driver: nothing is followed
    yes,      ///< followed, and all noted choices agree
    changed,  ///< followed, but a noted choice differs
  };
  /// Warns where they are of another version of clnet: its kernels may differ.
  Follows follow(StoredChoices stored);

 private:
  std::string identity_;
  mutable std::mutex mutex_;
  std::map<std::string, std::optional<Choice>> noted_;
  std::map<std::string, Choice> followed_;
  bool told_ = false;  ///< a difference was reported
};

}  // namespace clnet::exec
