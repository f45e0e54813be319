// An operation's attributes, exposed once: equality, hash, printing and tuning keys come from here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace clnet {

using Field = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;
using Fields = std::vector<std::pair<std::string_view, Field>>;

/// "stride=[1, 1] groups=1".
std::string to_string(const Fields& fields);

}  // namespace clnet
