// Scopes of a thread, each of which knows the one around it, end in any order.
#pragma once

namespace clnet {

/// Takes `scope` out of the list that begins with `innermost` and goes on by the member `outer`.
template <class Scope>
void leave_scope(Scope*& innermost, const Scope* scope, Scope* Scope::*outer) {
  auto** at = &innermost;
  while (*at != scope) at = &((*at)->*outer);
  *at = scope->*outer;
}

}  // namespace clnet
