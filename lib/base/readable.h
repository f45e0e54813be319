// Names from files, for a line of an error.
#pragma once

#include <string>
#include <string_view>

namespace clnet {

/// The text as it is where it fits a line: at most 200 bytes, without control characters. Else in_quotes().
std::string readable(std::string_view text);

}  // namespace clnet
