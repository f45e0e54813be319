// For graph that is recorded and never run.
#pragma once

#include <memory>

#include "lib/graph/capture.h"

namespace clnet::ops {

/// A leaf whose value nobody reads.
inline Tensor stand_in(Spec spec) { return make_leaf(std::move(spec), std::make_shared<InputValue>()); }

}  // namespace clnet::ops
