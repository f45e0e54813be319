// Expressions of rows for f64, where those for the other dtypes have constants or bounds of f32.
#pragma once

#include <string_view>

namespace clnet::ops {

/// The expression for f64 of the row with this name; otherwise `expression`, whose numbers fusion writes as doubles.
std::string_view f64_expression(std::string_view row, std::string_view expression);

}  // namespace clnet::ops
