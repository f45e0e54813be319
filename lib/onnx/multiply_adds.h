// How often a node multiplies and adds.
#pragma once

#include <vector>

#include "lib/onnx/program.h"
#include "lib/onnx/value.h"

namespace clnet::onnx {

/// Of a convolution, a matrix product, an attention or a recurrence, by the shapes of a run; 0 of another node.
double multiply_adds_of(const Instruction& instruction, const std::vector<RunValue>& inputs, const RunValue& output);

}  // namespace clnet::onnx
