#include "lib/exec/choose/solver.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/env.h"
#include "lib/base/renames.h"
#include "lib/exec/launch/recorder.h"

namespace clnet::exec {

namespace {

std::map<std::string, std::vector<std::string>, std::less<>>& registry() {
  static std::map<std::string, std::vector<std::string>, std::less<>> names;
  return names;
}

/// Takes the next item from a list with commas; commas between braces do not separate.
std::string next_item(std::string_view& text) {
  std::size_t end = 0;
  for (bool inside = false; end < text.size() && (inside || text[end] != ','); ++end)
    inside = text[end] == '{' || (inside && text[end] != '}');
  const std::string item(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return item;
}

std::map<std::string, Choice, std::less<>> parse(std::string_view text) {
  std::map<std::string, Choice, std::less<>> result;
  do {
    const bool more_follows = text.ends_with(',');
    const auto item = next_item(text);
    const auto colon = item.find(':');
    if (colon == std::string::npos) throw Error(fmt::format("CLNET_SOLVER: '{}' is not of the form operation:solver", item));
    const auto op = item.substr(0, colon);
    const auto known = registry().find(op);
    if (known == registry().end()) throw Error(fmt::format("CLNET_SOLVER: no operation named '{}' has solvers", op));
    Choice choice;
    try {
      choice = Choice::parse(std::string_view(item).substr(colon + 1));
    } catch (const Error& error) {
      throw Error(fmt::format("CLNET_SOLVER: {}", error.what()));
    }
    if (const auto now = renames::solver(op, choice.solver))
      throw Error(fmt::format("CLNET_SOLVER: {}'s solver '{}' is called '{}' now", op, choice.solver, *now));
    if (std::find(known->second.begin(), known->second.end(), choice.solver) == known->second.end())
      throw Error(fmt::format("CLNET_SOLVER: {} has no solver named '{}'; there are: {}", op, choice.solver,
                              fmt::join(known->second, ", ")));
    result[op] = std::move(choice);
    if (text.empty() && more_follows) throw Error("CLNET_SOLVER: '' is not of the form operation:solver");
  } while (!text.empty());
  return result;
}

}  // namespace

namespace {

/// CLNET_SOLVER's choices, by operation.
const std::map<std::string, Choice, std::less<>>& from_environment() {
  static const auto choices = [] {
    const auto text = env::text("CLNET_SOLVER");
    return text ? parse(*text) : std::map<std::string, Choice, std::less<>>{};
  }();
  return choices;
}

[[maybe_unused]] const bool is_checked = (env::check_also([] { (void)from_environment(); }), true);

}  // namespace

std::optional<Forced> forced_solver(std::string_view op, const Options& options) {
  if (const auto* forced = options.solver(op)) return Forced{.choice = forced->choice, .strict = true, .exact = forced->listed};
  const auto found = from_environment().find(op);
  return found == from_environment().end() ? std::nullopt : std::optional(Forced{.choice = found->second});
}

std::optional<Forced> forced_solver(std::string_view op, const Choosing& choosing) {
  if (auto forced = forced_solver(op, choosing.options)) return forced;
  const auto& preferred = choosing.preferred;
  if (!preferred || preferred->first != op) return std::nullopt;
  return Forced{.choice = preferred->second, .measured = true};
}

const Choosing& choosing_of(const Recorder& recorder) { return recorder.choosing(); }
bool has_f64(const Recorder& recorder) { return recorder.computes_f64(); }

Configured::Configured(Recorder& recorder, std::string_view op, std::string_view solver, const Config& config)
    : recorder_(recorder),
      outer_(std::exchange(recorder.config_, &config)),
      outer_pen_(std::exchange(recorder.pen_, recorder.chosen_.size())) {
  recorder.chosen_.emplace_back(op, Choice{std::string(solver), config});
}
Configured::~Configured() {
  recorder_.config_ = outer_;
  recorder_.pen_ = outer_pen_;
}

bool is_avoided(std::string_view op, std::string_view solver, const Choosing& choosing) {
  return std::any_of(choosing.avoided.begin(), choosing.avoided.end(), [&](const Maker& maker) {
    return maker.op == op && maker.solver == solver && (!choosing.group || maker.group == *choosing.group);
  });
}

std::vector<std::string> ListChoices::of(std::string_view op) const {
  std::vector<std::string> result;
  for (const auto& [noted, choice] : choices_)
    if (noted == op && std::find(result.begin(), result.end(), choice) == result.end()) result.push_back(choice);
  return result;
}

std::string ListChoices::chosen(std::string_view op) const {
  const auto found = std::find_if(chosen_.begin(), chosen_.end(), [&](const auto& noted) { return noted.first == op; });
  return found == chosen_.end() ? "" : found->second;
}

std::vector<std::string> solver_names(std::string_view op) {
  const auto found = registry().find(op);
  return found == registry().end() ? std::vector<std::string>{} : found->second;
}

std::vector<std::string> ops_with_solvers() {
  std::vector<std::string> result;
  for (const auto& [op, names] : registry()) result.push_back(op);
  return result;
}

std::string no_such_solver(std::string_view op, std::string_view solver) {
  if (const auto now = renames::solver(op, solver)) return fmt::format("{}: solver '{}' is called '{}' now", op, solver, *now);
  return fmt::format("{}: there is no solver named '{}'", op, solver);
}

bool is_broken(const DeviceInfo& device, std::string_view op, std::string_view solver) {
  const auto& broken = device.broken_solvers;
  return !broken.empty() && std::find(broken.begin(), broken.end(), fmt::format("{}:{}", op, solver)) != broken.end();
}

void register_solvers(std::string_view op, std::vector<std::string> names) { registry()[std::string(op)] = std::move(names); }

}  // namespace clnet::exec
