#include "lib/onnx/operators.h"

namespace clnet::onnx {

std::vector<Operator> signal_operators() { return {}; }

}  // namespace clnet::onnx
