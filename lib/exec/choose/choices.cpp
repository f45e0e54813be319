#include "lib/exec/choose/choices.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "clnet/error.h"
#include "lib/base/log.h"
#include "lib/exec/choose/solver.h"

namespace clnet::exec {

using nlohmann::json;

namespace {

/// Who forces a solver gets it; that is said where an earlier process had another.
void compare_with_forced(const std::string& problem, const Choice& choice) {
  const auto op = problem.substr(0, problem.find(' '));
  const auto forced = forced_solver(op);
  if (!forced || (forced->choice.solver == choice.solver && choice.config.agrees(forced->choice.config))) return;
  logging::warn_once(
      fmt::format("{} is computed by {}, which is forced, and was not everywhere before; numbers may differ in their last digits",
                  op, forced->choice.text()));
}

}  // namespace

void Choices::note(const std::string& problem, const Choice& choice) {
  const std::lock_guard lock(mutex_);
  const auto found = noted_.find(problem);
  if (found == noted_.end()) {
    if (noted_.size() < most) noted_.emplace(problem, choice);
  } else if (found->second && found->second->text() != choice.text()) {
    found->second.reset();
  }
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
  const std::lock_guard lock(mutex_);
  for (const auto& [problem, choice] : noted_)
    if (choice) content["choices"][problem] = choice->text();
  return content.dump(-1, ' ', false, json::error_handler_t::replace);
}

Choices::Follows Choices::follow(const std::string& text) {
  std::map<std::string, Choice> wanted;
  try {
    const auto content = json::parse(text);
    if (content.at("for").get<std::string>() != identity_) return Follows::no;
    for (const auto& [problem, choice] : content.at("choices").items())
      wanted[problem] = Choice::parse(choice.get<std::string>());
  } catch (const json::exception&) {
    throw Error("the choices of solvers are damaged");
  }
  for (const auto& [problem, choice] : wanted) compare_with_forced(problem, choice);
  const std::lock_guard lock(mutex_);
  followed_ = std::move(wanted);
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
