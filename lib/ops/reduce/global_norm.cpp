// The norm of gradients.
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/reduce/reduce.h"

namespace clnet {

Tensor global_norm(const std::vector<Tensor>& tensors) {
  require_defined("global_norm", "tensors", tensors);
  Tensor total;
  for (const auto& tensor : tensors) {
    const Tensor squares = sum(square(cast(tensor, Dtype::f32)));
    total = total.defined() ? total + squares : squares;
  }
  return total.defined() ? ops::root(total, 2) : Tensor::scalar(0);
}

}  // namespace clnet
