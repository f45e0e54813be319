#include "lib/graph/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace clnet {

std::string to_string(const Fields& fields) {
  std::string text;
  for (const auto& [name, field] : fields) {
    if (!text.empty()) text += ' ';
    text += name;
    text += '=';
    std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
            text += fmt::format("[{}]", fmt::join(value, ", "));
          else
            text += fmt::format("{}", value);
        },
        field);
  }
  return text;
}

}  // namespace clnet
