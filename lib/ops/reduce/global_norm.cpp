// The norm of gradients.
#include <algorithm>
#include <cmath>
#include <memory>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/collect/copy.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/reduce/reduce.h"

namespace clnet {

Tensor global_norm(const std::vector<Tensor>& tensors, double p) {
  require_defined("global_norm", "tensors", tensors);
  if (std::isnan(p)) throw Error("global_norm: p is NaN");
  exec::DeviceFinder finder;
  // All sums come to where the first is.
  std::shared_ptr<ocl::Context> home;
  const bool in_double = std::any_of(tensors.begin(), tensors.end(), [](const Tensor& x) { return x.dtype() == Dtype::f64; });
  const auto dtype = in_double ? Dtype::f64 : Dtype::f32;
  const auto at_home = [&](const Tensor& tensor, const Tensor& sum) {
    const auto device = finder.find(tensor);
    if (!home) home = device;
    return cast(exec::moved(sum, device, home), dtype);
  };
  if (p != 2 && !tensors.empty()) {
    std::vector<Tensor> norms;
    for (const auto& tensor : tensors)
      if (tensor.numel() > 0) norms.push_back(at_home(tensor, norm(ops::as_computed(tensor), p)));
    if (norms.empty()) return Tensor::scalar(0);
    // How many are not 0 is counted already.
    return p == 0 ? sum(stack(norms)) : norm(stack(norms), p);
  }
  Tensor total;
  for (const auto& tensor : tensors) {
    const Tensor squares = at_home(tensor, sum(square(ops::as_computed(tensor))));
    total = total.defined() ? total + squares : squares;
  }
  return total.defined() ? ops::root(total, 2) : Tensor::scalar(0);
}

}  // namespace clnet
