#include "lib/exec/choose/choices.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "clnet/error.h"
#include "lib/base/log.h"

namespace clnet::exec {

using nlohmann::json;

StoredChoices StoredChoices::parse(const std::string& text) {
  StoredChoices result;
  try {
    const auto content = json::parse(text);
    result.identity = content.at("for").get<std::string>();
    for (const auto& [problem, choice] : content.at("choices").items())
      result.solvers[problem] = Choice::parse(choice.get<std::string>());
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
  if (stored.identity != identity_) return Follows::no;
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
