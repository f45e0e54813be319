// Reduction of one dimension, recorded: what sums, means, products and extrema over any dimensions are made of.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "clnet/ops/options.h"
#include "clnet/tensor.h"
#include "lib/exec/launch/recorder.h"

namespace clnet::ops {

/// The numbers are those of KIND in kernels/combine.clh.
enum class ReduceKind : std::uint8_t { sum, prod, max, min };

/// y[outer][inner] of x[outer][reduce][inner], multiplied by `scale` where the values are floating.
struct ReduceProblem {
  ReduceKind kind = ReduceKind::sum;
  exec::Ref x, y;
  std::int64_t outer = 1, reduce = 1, inner = 1;
  double scale = 1;
  Dtype dtype = Dtype::f32;  ///< of x
};

/// Which dimensions are reduced: all when none is given. Throws ShapeError, naming `op`, for one out of range or given twice.
std::vector<bool> reduced_dims(std::string_view op, const Shape& shape, const Dims& dims);

/// x^(1 / p) with a gradient of 0 where x is 0, as norms have.
Tensor root(const Tensor& x, double p);

/// Floats are accumulated in float, integers in i64.
Dtype accumulator(Dtype dtype);
/// The dtype is filled in.
void record_reduce(ReduceProblem problem, exec::Recorder& recorder);

/// The index along the middle dimension of the first largest or smallest element.
struct ArgReduceProblem {
  bool greatest = true;
  exec::Ref x, y;
  std::int64_t outer = 1, reduce = 1, inner = 1;
  Dtype dtype = Dtype::f32;
};
void record_arg_reduce(const ArgReduceProblem& problem, exec::Recorder& recorder);

}  // namespace clnet::ops
