// Tensor's member functions are those of the catalogue: include/clnet/tensor_methods.inc declares them,
// lib/ops/tensor_methods.cpp defines them. With CLNET_WRITE_DOCS=1 the test writes both.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "lib/ops/catalogue.h"
#include "tests/ops/catalogue/written.h"
#include "tests/paths.h"
#include "tests/support/declarations.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// An overload whose first argument is a tensor.
struct Declared {
  std::string result, rest;  ///< the arguments after the first
};

std::multimap<std::string, Declared> declared_functions() {
  const auto text = clnet::test::plain_declarations(CLNET_SOURCE_DIR);
  std::multimap<std::string, Declared> functions;
  const std::regex function(
      R"((?:CLNET_API|inline) ([\w:<>]+) (\w+)\(const Tensor& \w+(?:, ([^;{]*?(?:\{\}[^;{]*?)*))?\) ?(?:;|\{ return))");
  for (std::sregex_iterator match(text.begin(), text.end(), function), end; match != end; ++match)
    functions.emplace((*match)[2], Declared{(*match)[1], (*match)[3]});
  const std::regex rows(R"(CLNET_BINARY\((\w+)\))");
  for (std::sregex_iterator match(text.begin(), text.end(), rows), end; match != end; ++match)
    for (const auto* other : {"const Tensor& b", "double b"}) functions.emplace((*match)[1], Declared{"Tensor", other});
  return functions;
}

/// An argument of options is declared behind Tensor: without it the call is an overload of its own.
std::vector<std::string> with_and_without_options(const std::string& arguments) {
  const std::regex options(R"(((?:, )?const \w+Options& \w+) = \{\}$)");
  if (!std::regex_search(arguments, options)) return {arguments};
  return {std::regex_replace(arguments, options, ""), std::regex_replace(arguments, options, "$1")};
}

/// The arguments without their defaults, and their names alone.
std::pair<std::string, std::string> split_defaults(const std::string& arguments) {
  std::string plain, names, current;
  int depth = 0;
  const auto add = [&] {
    const auto text = std::regex_replace(std::regex_replace(current, std::regex("^ +"), ""), std::regex(" *=.*$"), "");
    plain += (plain.empty() ? "" : ", ") + text;
    std::smatch name;
    REQUIRE(std::regex_search(text, name, std::regex("(\\w+)$")));
    names += ", " + name[1].str();
    current.clear();
  };
  for (char c : arguments) {
    depth += c == '(' || c == '<' || c == '{' ? 1 : c == ')' || c == '>' || c == '}' ? -1 : 0;
    if (c == ',' && depth == 0)
      add();
    else
      current += c;
  }
  if (!current.empty()) add();
  return {plain, names};
}

struct Methods {
  std::string declarations, definitions;
};

Methods methods() {
  const auto functions = declared_functions();
  std::map<std::string, std::string> by_method;
  for (const auto& operation : ops::catalogue())
    if (!operation.method.empty()) CHECK(by_method.emplace(operation.method, operation.name).second);
  Methods result;
  result.declarations =
      "// Made from the catalogue of operations: Tensor's member functions, within the class. x.sum({1}) is sum(x, {1}); the\n"
      "// function's declaration in clnet/ops says what it does. Those with options or several results need clnet/ops.h.\n"
      "// `CLNET_WRITE_DOCS=1 build/tests/clnet-op-tests \"[written]\"` writes this file.\n";
  result.definitions =
      "// Made from the catalogue of operations: see include/clnet/tensor_methods.inc.\n"
      "#include \"clnet/ops.h\"\n\nnamespace clnet {\n\n// clang-format off\n";
  for (const auto& [method, function] : by_method) {
    const auto [from, to] = functions.equal_range(function);
    INFO(function);
    REQUIRE(from != to);
    for (auto it = from; it != to; ++it)
      for (const auto& rest : with_and_without_options(it->second.rest)) {
        const auto& type = it->second.result;
        const auto [plain, names] = split_defaults(rest);
        result.declarations += fmt::format("  [[nodiscard]] {} {}({}) const;\n", type, method, rest);
        result.definitions +=
            fmt::format("{} Tensor::{}({}) const {{ return clnet::{}(*this{}); }}\n", type, method, plain, function, names);
      }
  }
  result.definitions += "// clang-format on\n\n}  // namespace clnet\n";
  return result;
}

}  // namespace

TEST_CASE("Tensor has the catalogue's member functions", "[written]") {
  const auto made = methods();
  check_written("include/clnet/tensor_methods.inc", [&](const auto&) { return made.declarations; });
  check_written("lib/ops/tensor_methods.cpp", [&](const auto&) { return made.definitions; });
}
