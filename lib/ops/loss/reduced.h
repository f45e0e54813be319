// What losses share: their checks, and how they end.
#pragma once

#include <string_view>

#include "clnet/ops/loss.h"

namespace clnet::ops {

/// Throws unless both are floating, of one dtype and one shape.
void require_same(std::string_view op, const Tensor& input, const Tensor& target);
/// Throws unless both are floating, of one dtype and of shapes that broadcast; returns the common shape.
Shape require_broadcast(std::string_view op, const Tensor& input, const Tensor& target);
/// The losses, computed in f32, reduced and rounded to the dtype of the inputs.
Tensor reduced(const Tensor& losses, Reduction reduction, Dtype dtype);
/// Losses times weights that broadcast to them, an undefined weight being 1.
Tensor weighted(std::string_view op, const Tensor& losses, const Tensor& weight, Dtype dtype,
                std::string_view argument = "weight");

}  // namespace clnet::ops
