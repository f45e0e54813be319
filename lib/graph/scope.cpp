#include "lib/graph/scope.h"

#include <fmt/format.h>

#include <utility>

#include "clnet/debug.h"
#include "lib/graph/op.h"

namespace clnet {

namespace {

thread_local ScopePtr now;

}  // namespace

const ScopePtr& scope_now() { return now; }

std::string to_string(const ScopePtr& scope) {
  std::string path, gradient;
  for (const auto* at = scope.get(); at; at = at->outer.get()) {
    if (!at->name.empty()) path = path.empty() ? at->name : at->name + '.' + path;
    if (at->gradient && gradient.empty()) gradient = fmt::format("(gradient of {})", at->gradient->name());
  }
  return path + (path.empty() || gradient.empty() ? "" : " ") + gradient;
}

InScope::InScope(ScopePtr scope) : before_(std::exchange(now, std::move(scope))) {}
InScope::InScope(const std::string& name) : before_(now) {
  if (!name.empty()) now = std::make_shared<Scope>(Scope{now, name});
}
InScope::~InScope() { now = std::move(before_); }

NamedScope::NamedScope(const std::string& name) : scope_(std::make_unique<InScope>(name)) {}
NamedScope::~NamedScope() = default;

}  // namespace clnet
