// The functions that ops.h declares, for tests of tables that must have them all.
#pragma once

#include <regex>
#include <set>
#include <string>

#include "tests/support/declarations.h"

namespace clnet::test {

/// `source` is the source tree.
inline std::set<std::string> declared_operations(const std::string& source) {
  const std::string text = declarations(source);
  std::set<std::string> names;
  const std::regex function(R"(CLNET_API\s+[\w:<>]+\s+(operator\S|\w+)\()"), rows(R"(\nCLNET_BINARY\((\S+)\))");
  for (const auto& pattern : {function, rows})
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) names.insert((*match)[1]);
  names.erase("name");                                                        // the macro's own parameter
  for (const auto* computes : {"equal", "all_close"}) names.erase(computes);  // and gives a bool
  return names;
}

}  // namespace clnet::test
