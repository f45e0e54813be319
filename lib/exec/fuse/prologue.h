// Elementwise operations at the beginning of another operation's kernel.
#pragma once

#include "lib/exec/fuse/elementwise.h"

namespace clnet::exec {

class FusedPrologue : public Prologue {
 public:
  /// `kernel` computes `value`; `inputs` are its buffers, then its scalars.
  FusedPrologue(const ElementwiseKernel& kernel, ValueId value, std::vector<Ref> inputs)
      : kernel_(kernel), value_(value), inputs_(std::move(inputs)) {}

  /// Whether any kernel can take it: an element depends on those at its own place, and on values that are the same everywhere.
  static bool possible(const ElementwiseKernel& kernel);

  bool join(Launch& launch, std::string_view name) override;

 private:
  const ElementwiseKernel& kernel_;
  ValueId value_;
  std::vector<Ref> inputs_;
};

}  // namespace clnet::exec
