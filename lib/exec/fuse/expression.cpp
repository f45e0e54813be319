#include "lib/exec/fuse/expression.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace clnet::exec {

namespace {

enum class Kind : std::uint8_t { name, function, other };

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continues_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Calls `visit` with each token; numbers, with their suffixes and exponents, are one token.
template <class Visit>
void scan(std::string_view text, const Visit& visit) {
  constexpr std::array words{"float", "int", "uint", "long", "ulong", "char", "uchar"};  // casts
  while (!text.empty()) {
    std::size_t end = 1;
    Kind kind = Kind::other;
    if (starts_name(text[0])) {
      while (end < text.size() && continues_name(text[end])) ++end;
      const auto word = text.substr(0, end);
      const bool cast = std::find(words.begin(), words.end(), word) != words.end();
      kind = cast ? Kind::other : end < text.size() && text[end] == '(' ? Kind::function : Kind::name;
    } else if (std::isdigit(static_cast<unsigned char>(text[0]))) {
      while (end < text.size() && (continues_name(text[end]) || text[end] == '.' ||
                                   ((text[end] == '-' || text[end] == '+') && (text[end - 1] == 'e' || text[end - 1] == 'p'))))
        ++end;
    }
    visit(kind, text.substr(0, end));
    text.remove_prefix(end);
  }
}

}  // namespace

std::string rename(std::string_view expression, const std::function<std::string(std::string_view)>& rename) {
  std::string result;
  scan(expression, [&](Kind kind, std::string_view token) {
    if (kind == Kind::name)
      result += rename(token);
    else
      result += token;
  });
  return result;
}

std::string in_doubles(std::string_view expression) {
  std::string result;
  scan(expression, [&](Kind, std::string_view token) {
    const bool number = std::isdigit(static_cast<unsigned char>(token[0])) != 0 && !token.starts_with("0x");
    result += number && token.ends_with('f') ? token.substr(0, token.size() - 1) : token;
  });
  return result;
}

bool uses_index(std::string_view expression) {
  bool found = false;
  scan(expression, [&](Kind kind, std::string_view token) { found = found || (kind == Kind::name && token == "i"); });
  return found;
}

int cost(std::string_view expression) {
  constexpr std::array cheap{"fmin", "fmax", "fabs", "isnan", "min", "max"};
  constexpr std::array middle{"sqrt", "rint", "floor", "ceil"};
  const auto contains = [](const auto& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  int total = 0;
  scan(expression, [&](Kind kind, std::string_view token) {
    if (kind == Kind::function)
      total += contains(cheap, token) ? 1 : contains(middle, token) ? 4 : 16;
    else if (token == "/")
      total += 4;
    else if (kind == Kind::other && std::string_view("+-*?<>=!&|").find(token) != std::string_view::npos)
      total += 1;
  });
  return total;
}

}  // namespace clnet::exec
