// The format and version of JSON files, a field of each: {"format": "clnet tuning 1", ...}.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "clnet/error.h"
#include "lib/base/input_file.h"

namespace clnet {

constexpr const char* format_field = "format";

/// Throws FileError, one line, for a file of another format or version. A file without one is of the first, from before there
/// were others.
template <class Json>
void require_format(const std::string& path, const Json& content, std::string_view format) {
  if (!content.is_object() || !content.contains(format_field)) return;
  const auto& found = content.at(format_field);
  const std::string text = found.is_string() ? found.template get<std::string>() : found.dump();
  if (text != format) throw FileError(fmt::format("{}: is of the format {}, expected '{}'", path, in_quotes(text), format));
}

}  // namespace clnet
