#include "lib/graph/scope.h"

#include <fmt/format.h>

#include <utility>

#include "clnet/debug.h"
#include "lib/graph/op.h"

namespace clnet {

namespace {

thread_local ScopePtr current_scope;

}  // namespace

const ScopePtr& scope_now() { return current_scope; }

std::string to_string(const ScopePtr& scope) {
  std::string path, gradient;
  for (const auto* at = scope.get(); at; at = at->outer.get()) {
    if (!at->name.empty()) path = path.empty() ? at->name : at->name + '.' + path;
    if (at->gradient && gradient.empty()) gradient = fmt::format("(gradient of {})", at->gradient->name());
  }
  return path + (path.empty() || gradient.empty() ? "" : " ") + gradient;
}

InScope::InScope(ScopePtr scope) : before_(std::exchange(current_scope, std::move(scope))) {}
InScope::InScope(const std::string& name) : before_(current_scope) {
  if (!name.empty()) current_scope = std::make_shared<Scope>(Scope{current_scope, name});
}
InScope::~InScope() { current_scope = std::move(before_); }

NamedScope::NamedScope(const std::string& name) : scope_(std::make_unique<InScope>(name)) {}
NamedScope::~NamedScope() = default;

}  // namespace clnet
