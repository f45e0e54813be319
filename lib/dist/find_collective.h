// Whether a graph has collectives.
#pragma once

#include <span>
#include <string_view>

#include "clnet/tensor.h"

namespace clnet::dist {

/// The name of a collective with other ranks that the tensors' graph has; empty: there is none.
std::string_view find_collective(std::span<const Tensor> tensors);

}  // namespace clnet::dist
