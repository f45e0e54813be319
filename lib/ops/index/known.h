// Functions whose results have shapes that depend on values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "clnet/tensor.h"

namespace clnet::ops {

/// Throws Error, naming the operation, inside compile(): there values are not known yet.
void require_known(std::string_view op);
/// Where elements of x, read in order, are not 0. Evaluates it.
std::vector<std::int32_t> places_of_nonzero(const Tensor& x);

}  // namespace clnet::ops
