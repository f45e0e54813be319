// What is called without a name, and what has several.
#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <typeinfo>
#include <unordered_map>
#include <utility>

#include "clnet/error.h"
#include "lib/base/log.h"
#include "lib/nn/here.h"
#include "lib/nn/module_state.h"
#include "lib/nn/module_text.h"

namespace clnet::nn {

namespace {

/// A name of C++ without the namespaces and functions that it lies in.
std::string unqualified(const std::string& name) {
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 1;) {
    if (name[i] == '>' || name[i] == ')') ++depth;
    if (name[i] == '<' || name[i] == '(') --depth;
    if (depth == 0 && name[i] == ':') return name.substr(i + 1);
  }
  return name;
}

std::string name_of_class(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  return name ? unqualified(name.get()) : type.name();
}

}  // namespace

std::string class_name(const Module& module) {
  auto kind = module.kind();
  return kind != "Module" ? kind : name_of_class(typeid(module));
}

void detail::require_whole(const Module& layer, const std::type_info& as) {
  if (typeid(layer) == as) return;
  const auto own = name_of_class(typeid(layer)), base = name_of_class(as);
  throw Error(
      fmt::format("a {} that is given as a {} would be cut down to it; give it as what it is, or its pointer to an "
                  "nn::ModuleList<>, nn::ModuleDict<> or Sequential",
                  own, base));
}

const Module::Call* Module::Call::current() { return static_cast<const Call*>(here().call); }

Module::Call::Call(const Module& module) : module_(module), outer_(current()) {
  // A module may call itself, as one that is derived from a list goes through it.
  if (outer_ && !module.state_->is_part() && !lies_in(outer_, module.state_.get())) warn_if_unnamed();
  resume(this);
}

const Module::Call* Module::Call::resume(const Call* call) {
  here().called = call ? &call->module_ : nullptr;
  return static_cast<const Call*>(std::exchange(here().call, call));
}

bool Module::Call::lies_in(const Call* call, const void* state) {
  for (; call; call = call->outer_)
    if (call->module_.state_.get() == state) return true;
  return false;
}

void warn_if_in_forward() {
  const auto* module = here().called;
  if (!module) return;
  logging::warn_once(fmt::format(
      "{}: its forward() reads a Parameter that was never added to a module, so that nothing trains, saves or moves it; "
      "add_parameter(\"name\", it) in the constructor and set() later, or freeze() it where that is meant",
      class_name(*module)));
}

bool Module::may_move() const {
  const auto held = state_->held();
  return held.trainable || (held.buffers && !held.frozen);
}

void Module::Call::warn_if_unnamed() const {
  if (!module_.may_move()) return;
  logging::warn_once(
      fmt::format("{}: its forward() calls a {} that was never added to a module, so that nothing trains, saves or moves it; "
                  "add(\"name\", it) in the constructor, or freeze() it where that is meant",
                  class_name(outer_->module_), class_name(module_)));
}

Module::Call::~Call() { resume(outer_); }

void Module::warn_if_unreached() const {
  // Of what may move, warn_if_unnamed() has told.
  const auto* call = Call::current();
  if (!call || !call->outer_ || call->module_.state_ != state_ || state_->is_part() || may_move()) return;
  logging::warn_once(fmt::format(
      "{}: its forward() calls a {} that was never added to a module, so that train() and inference() do not reach it; "
      "add(\"name\", it) in the constructor",
      class_name(call->outer_->module_), class_name(*this)));
}

void Module::warn_of_second_name(const std::string& name, const std::shared_ptr<State>& added) const {
  // What lies here and in `added` has two parents, or is within something that has.
  bool may_be_here = added->is_part();
  State::each(added, [&](const auto& state) { may_be_here = may_be_here || state->parents.size() > 1; });
  if (!may_be_here) return;
  std::unordered_map<const State*, std::string> known;
  const auto& here = *present();
  const std::function<void(const State&, const std::string&)> learn = [&](const State& state, const std::string& path) {
    if (state.has_own()) known.emplace(&state, path);
    for (const auto& [own, child] : state.children) learn(*State::present(child), path.empty() ? own : path + '.' + own);
  };
  for (const auto& [own, child] : here.children)
    if (own != name) learn(*State::present(child), own);
  std::optional<std::pair<std::string, std::string>> found;
  const std::function<void(const State&, const std::string&)> look = [&](const State& state, const std::string& path) {
    if (found || state.tied) return;
    if (const auto before = known.find(&state); before != known.end()) found.emplace(path, before->second);
    for (const auto& [own, child] : state.children) look(*State::present(child), path + '.' + own);
  };
  look(*State::present(added), name);
  if (!found) return;
  logging::warn_once(
      fmt::format("{}: '{}' is the same layer as '{}', with the same parameters, as copies of modules are; nn::clone() makes one "
                  "of its own, and nn::tied() says that it is meant",
                  class_name(*this), found->first, found->second));
}

void allow_several_names(const Module& module) { module.present()->tied = true; }

}  // namespace clnet::nn
