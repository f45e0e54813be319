// Mixed precision: while a scope lives, operations choose the dtype of their inputs.
#pragma once

#include <memory>

#include "clnet/dtype.h"
#include "clnet/export.h"

namespace clnet {

struct AutocastScope;

/// torch.autocast for this thread, while the object lives. Products (linear, matmul, convolutions, attention, input products of
/// recurrent layers) cast their floating inputs to `dtype`, f16 or bf16. Operations that need range or digits (softmax, losses,
/// norms, sums and means, exponentials, logarithms, powers) cast them to f32. All others compute in the widest dtype of their
/// inputs, so no cast() is needed. Batch normalisation keeps its input's dtype, with f32 statistics.
///
///   Tensor loss;
///   {
///     const Autocast half(Dtype::f16);
///     loss = cross_entropy(model(x), labels);
///   }
///   optimizer.step(loss);
///
/// Parameters keep their dtype, and gradients of f32 parameters are f32. A tensor that several operations read is cast once.
/// gradients() and optimizers follow the dtypes of the forward pass, inside a scope and outside. The innermost scope counts;
/// Autocast(Dtype::f32) casts nothing. Throws DtypeError for another dtype.
class CLNET_API Autocast {
 public:
  explicit Autocast(Dtype dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  /// The dtype of products in this thread's innermost scope; f32 where nothing is cast.
  static Dtype dtype();

 private:
  std::unique_ptr<AutocastScope> scope_;
};

}  // namespace clnet
