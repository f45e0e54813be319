// What operations with random numbers take from the thread's generator.
#pragma once

#include "clnet/tensor.h"
#include "lib/graph/op.h"
#include "lib/graph/random_stream.h"

namespace clnet::ops {

/// Seed and offset as i64 scalars; no two tensors get the same offset. `first` is the number of the first element, a scalar, too.
/// It is undefined where the tensor is no part of another.
struct RandomSource {
  Tensor seed, offset, first;

  void add_to(Tensors& inputs) const;
};
/// The source of a tensor of this shape.
RandomSource next_random_source(const Shape& shape, RandomRows rows = RandomRows::of_batch);
/// The number of element i for an expression, with `first` as the operand of this name.
std::string random_index(std::string_view first);
/// dropout() with a probability between 0 and 1, by that source.
Tensor dropout_by(const Tensor& x, double p, const RandomSource& source);

}  // namespace clnet::ops
