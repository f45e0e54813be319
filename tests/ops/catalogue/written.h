// Files that are made from the catalogue.
#pragma once

#include <functional>
#include <string>

namespace clnet::testing {

/// Holds a file of the tree to what it should be; with CLNET_WRITE_DOCS=1, writes it.
void check_written(const std::string& name, const std::function<std::string(const std::string& now)>& wanted);

}  // namespace clnet::testing
