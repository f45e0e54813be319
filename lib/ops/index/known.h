// Functions whose results have shapes that depend on values.
#pragma once

#include <string_view>

namespace clnet::ops {

/// Throws Error, naming the operation, inside compile(): there values are not known yet.
void require_known(std::string_view op);

}  // namespace clnet::ops
