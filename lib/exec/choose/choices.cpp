#include "lib/exec/choose/choices.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "clnet/error.h"
#include "lib/base/log.h"
#include "lib/base/renames.h"

namespace clnet::exec {

using nlohmann::json;

namespace {

/// The choice with the name that its solver has now. A problem begins with its operation, which has the name of its list or
/// begins with it, as attention_backward.
Choice with_new_name(std::string_view problem, Choice choice) {
  auto list = problem.substr(0, problem.find(' '));
  for (;;) {
    if (const auto now = renames::solver(list, choice.solver)) {
      choice.solver = *now;
      return choice;
    }
    const auto end = list.rfind('_');
    if (end == std::string_view::npos) return choice;
    list = list.substr(0, end);
  }
}

/// The part of an identity that is the same with other kernels: the device and its driver.
std::string_view machine_of(std::string_view identity) { return identity.substr(0, identity.find(" | clnet ")); }

}  // namespace

StoredChoices StoredChoices::parse(const std::string& text) {
  StoredChoices result;
  try {
    const auto content = json::parse(text);
    result.identity = content.at("for").get<std::string>();
    for (const auto& [problem, choice] : content.at("choices").items())
      result.solvers[problem] = with_new_name(problem, Choice::parse(choice.get<std::string>()));
  } catch (const json::exception&) {
    throw Error("the choices of solvers are damaged");
  }
  return result;
}

void Choices::note(const std::string& problem, const Choice& choice) {
  const std::lock_guard lock(mutex_);
  const auto before = followed_.find(problem);
  if (before != followed_.end() && before->second.text() != choice.text() && !std::exchange(told_, true))
    logging::write(fmt::format(
        "solvers: {} is computed by {}, and was by {} before training was stopped; numbers may differ in their last digits",
        problem, choice.text(), before->second.text()));
  const auto found = noted_.find(problem);
  if (found == noted_.end()) {
    if (noted_.size() < most) noted_.emplace(problem, choice);
  } else if (found->second && found->second->text() != choice.text()) {
    found->second.reset();
  }
}

bool Choices::is_noted(const std::string& problem) const {
  const std::lock_guard lock(mutex_);
  return noted_.contains(problem);
}

bool Choices::follows() const {
  const std::lock_guard lock(mutex_);
  return !followed_.empty();
}

std::optional<Choice> Choices::followed(const std::string& problem) const {
  const std::lock_guard lock(mutex_);
  const auto found = followed_.find(problem);
  return found == followed_.end() ? std::nullopt : std::optional(found->second);
}

std::string Choices::text() const {
  json content{{"for", identity_}, {"choices", json::object()}};
  auto& choices = content["choices"];
  const std::lock_guard lock(mutex_);
  for (const auto& [problem, choice] : noted_)
    if (choice) choices[problem] = choice->text();
  for (const auto& [problem, choice] : followed_)
    if (!noted_.contains(problem) && choices.size() < most) choices[problem] = choice.text();
  return content.dump(-1, ' ', false, json::error_handler_t::replace);
}

Choices::Follows Choices::follow(StoredChoices stored) {
  const std::lock_guard lock(mutex_);
  followed_.clear();
  told_ = false;
  if (machine_of(stored.identity) != machine_of(identity_)) return Follows::no;
  if (stored.identity != identity_)
    logging::warn_once(
        "solvers: those of the training are of another version of clnet, whose kernels may differ: they are followed, and "
        "numbers may differ in their last digits");
  followed_ = std::move(stored.solvers);
  auto result = Follows::yes;
  for (const auto& [problem, choice] : followed_) {
    const auto found = noted_.find(problem);
    if (found == noted_.end() || (found->second && found->second->text() == choice.text())) continue;
    noted_.erase(found);
    result = Follows::changed;
  }
  return result;
}

}  // namespace clnet::exec
