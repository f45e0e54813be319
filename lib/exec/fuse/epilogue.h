// Elementwise operations as the last words of another operation's kernel.
#pragma once

#include "lib/exec/generate/elementwise.h"

namespace clnet::exec {

class FusedEpilogue : public Epilogue {
 public:
  /// `kernel` reads `head` among its buffers; `inputs` are its buffers, then its scalars.
  FusedEpilogue(const ElementwiseKernel& kernel, const Tensor& head, std::vector<Ref> inputs);

  /// Whether any kernel could have it: every element of the head's output is read once, at its own place.
  static bool possible(const ElementwiseKernel& kernel, const Tensor& head);

  bool join(Launch& launch, std::int64_t channels, std::int64_t inner) override;

 private:
  const ElementwiseKernel& kernel_;
  std::size_t head_;  ///< which buffer
  std::vector<Ref> inputs_;
};

}  // namespace clnet::exec
