// Mixed precision: while a scope lives, operations choose the dtype that they compute with.
#pragma once

#include <memory>

#include "clnet/dtype.h"
#include "clnet/export.h"

namespace clnet {

struct AutocastScope;

/// While it lives, products that this thread writes down (linear, matmul, convolutions, attention, what recurrent layers make of
/// their inputs) take their floating inputs as `dtype`, f16 or bf16, and operations that need range or many digits (softmax,
/// losses, norms, sums and means, exponentials, logarithms, powers) as f32. All others compute with what comes, the widest of it
/// where dtypes differ, so that no cast() is needed. Batch normalisation keeps its input's dtype and f32 statistics.
///
///   Tensor loss;
///   {
///     const Autocast half(Dtype::f16);
///     loss = cross_entropy(model(x), labels);
///   }
///   optimizer.step(loss);
///
/// Parameters stay what they are: a tensor that several operations read is cast once, and gradients of f32 parameters are f32.
/// gradients() and optimizers compute as the forward pass was written, within a scope as outside. The innermost scope counts;
/// Autocast(Dtype::f32) is one in which nothing is cast. Throws DtypeError for another dtype.
class CLNET_API Autocast {
 public:
  explicit Autocast(Dtype dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  /// What this thread's innermost scope casts products to; f32 where nothing is cast.
  static Dtype dtype();

 private:
  std::unique_ptr<AutocastScope> scope_;
};

}  // namespace clnet
