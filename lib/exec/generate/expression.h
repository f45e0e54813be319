// The expressions of elementwise operations as text: their names replaced, their cost estimated.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "clnet/export.h"

namespace clnet::exec {

/// The expression with every name that is not a function's replaced by what `rename` gives for it.
CLNET_API std::string rename(std::string_view expression, const std::function<std::string(std::string_view)>& rename);

/// Whether it depends on the linear index i of the element.
CLNET_API bool uses_index(std::string_view expression);

/// How much work one element is: about 1 for an addition, 4 for a division or a root, 16 for a transcendental function.
CLNET_API int cost(std::string_view expression);

}  // namespace clnet::exec
