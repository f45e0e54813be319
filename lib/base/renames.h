// Names that were given up, and those that took their place (lib/base/renames.txt).
#pragma once

#include <optional>
#include <string_view>

namespace clnet::renames {

/// What a solver of the list is called now; nothing where none was called so.
std::optional<std::string_view> solver(std::string_view list, std::string_view old);

/// What a value of a variable is called now; nothing where none was called so.
std::optional<std::string_view> value(std::string_view variable, std::string_view old);

/// Throws Error for an environment variable that is set by the name that it had.
void check_variables();

}  // namespace clnet::renames
