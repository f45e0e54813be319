// Where in a program nodes are made: named scopes and the modules that are being called.
#pragma once

#include <memory>
#include <string>

namespace clnet {

class Op;
struct Scope;
using ScopePtr = std::shared_ptr<const Scope>;

struct Scope {
  ScopePtr outer;
  std::string name;                         ///< empty where it is of a gradient
  std::shared_ptr<const Op> gradient = {};  ///< the operation whose gradient is made here
};

/// The innermost scope of this thread; null where there is none.
const ScopePtr& scope_now();

/// "layer1.conv2", with " (gradient of sqrt)" behind where it is of one; empty outside of all.
std::string to_string(const ScopePtr& scope);

/// Puts a scope in the place of this thread's until it ends.
class InScope {
 public:
  explicit InScope(ScopePtr scope);
  /// One within this thread's; without a name the same.
  explicit InScope(const std::string& name);
  ~InScope();
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  ScopePtr before_;
};

}  // namespace clnet
