// The place in a program where nodes are made: named scopes and the modules in a call.
#pragma once

#include <memory>
#include <string>

namespace clnet {

class Op;
struct Scope;
using ScopePtr = std::shared_ptr<const Scope>;

struct Scope {
  ScopePtr outer;
  std::string name;                         ///< empty for a gradient's scope
  std::shared_ptr<const Op> gradient = {};  ///< the operation whose gradient is built here
};

/// The innermost scope of this thread, or null.
const ScopePtr& scope_now();

/// "layer1.conv2", followed by " (gradient of sqrt)" in a gradient; empty outside of all scopes.
std::string to_string(const ScopePtr& scope);

/// Replaces this thread's scope while it lives.
class InScope {
 public:
  explicit InScope(ScopePtr scope);
  /// A new scope within this thread's; without a name the same scope.
  explicit InScope(const std::string& name);
  ~InScope();
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  ScopePtr before_;
};

}  // namespace clnet
