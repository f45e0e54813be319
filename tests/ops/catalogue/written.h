// Files that are made from the catalogue.
#pragma once

#include <functional>
#include <string>

namespace clnet::testing {

/// Holds a file of the tree to what it should be; with CLNET_WRITE_DOCS=1, writes it.
void check_written(const std::string& name, const std::function<std::string(const std::string& now)>& wanted);
/// The text with other lines between <!-- name --> and <!-- end of name -->.
std::string with_section(const std::string& text, const std::string& name, const std::string& lines);

}  // namespace clnet::testing
