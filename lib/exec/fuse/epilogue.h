// Elementwise operations at the end of another operation's kernel.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/exec/fuse/elementwise.h"

namespace clnet::exec {

class FusedEpilogue : public Epilogue {
 public:
  /// `kernel` reads `head` among its buffers; `inputs` are its buffers, then its scalars.
  FusedEpilogue(const ElementwiseKernel& kernel, const Tensor& head, std::vector<Ref> inputs);

  /// Whether any kernel can take it: every element of the head's output is read once, at its own place.
  static bool possible(const ElementwiseKernel& kernel, const Tensor& head);

  bool join(Launch& launch, std::int64_t channels, std::int64_t inner) override;

  /// Whether it depends on an element's channel alone: then a kernel may keep the results to itself.
  bool only_by_channel(std::int64_t channels, std::int64_t inner) const;
  void join_inner(Launch& launch, std::string_view name, std::int64_t channels, std::int64_t inner) override;

 private:
  /// The index of each load; nothing where these channels cannot express the loads.
  std::optional<std::vector<std::string>> places(std::int64_t channels, std::int64_t inner) const;

  const ElementwiseKernel& kernel_;
  std::size_t head_;  ///< index of the head's buffer
  std::vector<Ref> inputs_;
};

}  // namespace clnet::exec
