// Generates the kernel of an elementwise operation from its expression.
#pragma once

#include "lib/exec/recorder.h"
#include "lib/graph/op.h"

namespace clnet::exec {

void lower_elementwise(const Op& op, Recorder& recorder);

}  // namespace clnet::exec
