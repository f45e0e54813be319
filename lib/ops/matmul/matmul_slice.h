// Of products of which a slice alone is read, only that one: as of the gradient of a concatenation of which one input needs
// none.
#pragma once

#include <optional>

#include "clnet/ops.h"
#include "lib/exec/lower/rewrite.h"

namespace clnet::ops {

/// How a node multiplies its inputs; nothing where it is another operation.
std::optional<MatmulOptions> matmul_options(const Node& node);

/// Multiplies with a range of the second factor in the place of all of it, where only those columns are read. The range is a
/// view: nothing is copied.
const exec::Rewrite& matmul_slice();

}  // namespace clnet::ops
