// Of operations of which one part alone is read, only that part: of a product the gradient of a concatenation, say, of which one
// input needs none.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lib/exec/collect/work.h"
#include "lib/exec/options/options.h"

namespace clnet::exec {

/// A work with less to compute, over nodes of its own where there is any of it: in the place of what made a whole there is what
/// makes the part, of a range of one of its inputs, and what read the part is gone. What is given must outlive it.
class Narrowed {
 public:
  Narrowed(const Work& work, const Options& options);

  const Work& given() const { return given_; }
  const Work& work() const { return narrowed_ ? *narrowed_ : given_; }
  /// What an output of the given work's nodes is there; undefined: it is not made.
  Tensor at(std::size_t node, int output) const;

 private:
  const Work& given_;
  std::optional<Work> narrowed_;
  std::vector<std::shared_ptr<Node>> at_;  ///< by the given work's nodes; empty: they are the same
};

}  // namespace clnet::exec
