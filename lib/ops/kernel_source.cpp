#include "lib/ops/kernel_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "clnet/error.h"

namespace clnet::ops {

namespace {

using Tokens = std::vector<std::string>;

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Words and single characters, without comments, space and preprocessor lines.
Tokens tokenize(std::string_view text) {
  Tokens tokens;
  const auto skip_past = [&](std::size_t from, std::string_view end) {
    const auto at = text.find(end, from);
    return at == text.npos ? text.size() : at + end.size();
  };
  for (std::size_t i = 0; i < text.size();) {
    if (std::isspace(static_cast<unsigned char>(text[i]))) {
      ++i;
    } else if (text.substr(i, 2) == "//" || text[i] == '#') {
      i = skip_past(i, "\n");
    } else if (text.substr(i, 2) == "/*") {
      i = skip_past(i + 2, "*/");
    } else {
      auto end = i + 1;
      if (in_word(text[i]))
        while (end < text.size() && in_word(text[end])) ++end;
      tokens.emplace_back(text.substr(i, end - i));
      i = end;
    }
  }
  return tokens;
}

/// The index of the parenthesis behind `kernel void name`; 0: there is none.
std::size_t find_function(const Tokens& tokens, std::string_view name) {
  for (std::size_t i = 2; i + 1 < tokens.size(); ++i) {
    if (tokens[i] != name || tokens[i + 1] != "(" || tokens[i - 1] != "void") continue;
    for (auto back = i - 1; back-- > 0 && tokens[back] != ";" && tokens[back] != "}";)
      if (tokens[back] == "kernel" || tokens[back] == "__kernel") return i + 1;
  }
  return 0;
}

KernelParameter parse(std::string_view kernel, Tokens tokens) {
  using Kind = KernelParameter::Kind;
  const auto text = fmt::format("{}", fmt::join(tokens, " "));
  if (tokens.size() == 4 && tokens[1] == "(" && tokens[3] == ")") {
    if (tokens[0] == "IN") return {Kind::in, tokens[2]};
    if (tokens[0] == "OUT") return {Kind::out, tokens[2]};
  }
  std::erase(tokens, "const");
  if (tokens.size() == 3 && tokens[0] == "unsigned" && tokens[1] == "int") tokens.erase(tokens.begin());
  const bool two = tokens.size() == 2;
  if (two && (tokens[0] == "uint" || tokens[0] == "unsigned" || text.find("unsigned int") != text.npos))
    return {Kind::unsigned_integer, tokens[1]};
  if (two && tokens[0] == "int") return {Kind::integer, tokens[1]};
  if (two && tokens[0] == "float") return {Kind::floating, tokens[1]};
  throw Error(fmt::format("kernel {}: parameter '{}' is none of IN(x), OUT(y), int, uint and float", kernel, text));
}

}  // namespace

std::vector<KernelParameter> kernel_parameters(std::string_view name, std::string_view source) {
  const auto tokens = tokenize(source);
  const auto open = find_function(tokens, name);
  if (open == 0) throw Error(fmt::format("kernel {0}: the source has no function 'kernel void {0}(...)'", name));
  std::vector<KernelParameter> parameters;
  Tokens one;
  int depth = 0;
  for (auto i = open + 1; i < tokens.size(); ++i) {
    const auto& token = tokens[i];
    if (depth == 0 && (token == "," || token == ")")) {
      if (!one.empty()) parameters.push_back(parse(name, std::move(one)));
      one.clear();
      if (token == ")") return parameters;
      continue;
    }
    depth += token == "(" ? 1 : token == ")" ? -1 : 0;
    one.push_back(token);
  }
  throw Error(fmt::format("kernel {}: its list of parameters does not end", name));
}

}  // namespace clnet::ops
