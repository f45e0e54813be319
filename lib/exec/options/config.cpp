#include "lib/exec/options/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "clnet/error.h"

namespace clnet::exec {

std::int64_t Config::operator[](std::string_view name) const {
  for (const auto& [known, value] : values_)
    if (known == name) return value;
  throw Error(fmt::format("a configuration {} has no {}; this is a fault of clnet", text(), name));
}

std::int64_t Config::value(std::string_view name, std::int64_t otherwise) const {
  for (const auto& [known, value] : values_)
    if (known == name) return value;
  return otherwise;
}

bool Config::agrees(const Config& wanted) const {
  return std::all_of(wanted.values_.begin(), wanted.values_.end(),
                     [&](const auto& value) { return std::find(values_.begin(), values_.end(), value) != values_.end(); });
}

std::string Config::text() const {
  if (values_.empty()) return "";
  std::string result;
  for (const auto& [name, value] : values_) result += fmt::format("{}{}={}", result.empty() ? "{" : ",", name, value);
  return result + "}";
}

Choice Choice::parse(std::string_view text) {
  const auto brace = std::min(text.find('{'), text.size());
  Choice choice{std::string(text.substr(0, brace)), {}};
  if (brace == text.size()) return choice;
  const auto wrong = [&](std::string_view item) {
    return Error(fmt::format("'{}': '{}' is not of the form {{name=number,...}}", text, item));
  };
  auto rest = text.substr(brace + 1);
  if (!rest.ends_with('}')) throw wrong(text.substr(brace));
  rest.remove_suffix(1);
  while (true) {
    const auto item = rest.substr(0, rest.find(','));
    const auto equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) throw wrong(item);
    const auto digits = item.substr(equals + 1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) throw wrong(item);
    choice.config.values_.emplace_back(item.substr(0, equals), value);
    if (item.size() == rest.size()) return choice;
    rest.remove_prefix(item.size() + 1);
  }
}

}  // namespace clnet::exec
