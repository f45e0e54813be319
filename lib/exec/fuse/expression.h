// Expressions of elementwise operations as text: renaming, and cost.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace clnet::exec {

/// The expression with every name, except functions', replaced by rename(name).
std::string rename(std::string_view expression, const std::function<std::string(std::string_view)>& rename);

/// The expression with its numbers as doubles: 0.5 for 0.5f.
std::string in_doubles(std::string_view expression);

/// Whether it depends on the linear index i of the element.
bool uses_index(std::string_view expression);

/// The work per element: about 1 for an addition, 4 for a division or a root, 16 for a transcendental function.
int cost(std::string_view expression);

}  // namespace clnet::exec
