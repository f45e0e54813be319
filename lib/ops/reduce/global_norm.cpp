// The norm of gradients.
#include "clnet/ops.h"
#include "lib/graph/require.h"

namespace clnet {

Tensor global_norm(const std::vector<Tensor>& tensors) {
  require_defined("global_norm", "tensors", tensors);
  Tensor total;
  for (const auto& tensor : tensors) {
    const Tensor squares = sum(square(cast(tensor, Dtype::f32)));
    total = total.defined() ? total + squares : squares;
  }
  return total.defined() ? sqrt(total) : Tensor::scalar(0);
}

}  // namespace clnet
