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

#include "lib/exec/choose/config.h"

namespace clnet::exec {

class CLNET_API Choices {
 public:
  /// Problems noted at most, so that shapes without end take neither memory nor checkpoints.
  static constexpr std::size_t most = 1000;

  /// `identity` is all that the choices depend on.
  explicit Choices(std::string identity) : identity_(std::move(identity)) {}

  /// A problem that is noted with two choices (of operands that lie differently, say) is of none.
  void note(const std::string& problem, const Choice& choice);
  bool follows() const;
  /// What the text said of the problem that follow() was given.
  std::optional<Choice> followed(const std::string& problem) const;

  std::string text() const;

  enum class Follows : std::uint8_t {
    no,       ///< the text is of another identity, and nothing follows it
    yes,      ///< as all that was noted so far does
    changed,  ///< but something was noted with another choice
  };
  /// From now on its choices count. Throws Error where the text is none of text()'s.
  Follows follow(const std::string& text);

 private:
  std::string identity_;
  mutable std::mutex mutex_;
  std::map<std::string, std::optional<Choice>> noted_;
  std::map<std::string, Choice> followed_;
};

}  // namespace clnet::exec
