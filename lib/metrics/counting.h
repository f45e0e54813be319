// Parts that several formulas share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/io.h"
#include "clnet/tensor.h"

namespace clnet::metrics {

/// Zeros (i64) that are a leaf of the graph, as later states are. At least two: a single number of the host would make another
/// plan of the first step.
Tensor zero_counts(std::int64_t count);

/// The first of the outputs or labels; Error where there is none.
const Tensor& first_of(std::string_view who, std::span<const Tensor> tensors);

/// Adds 1 to `counts` (i64, any shape) at each of the flat `places` (i64 {n}); a place of counts.numel() is none.
Tensor count_at(const Tensor& counts, const Tensor& places);

/// Throws Error for labels that were counted and are no class.
void require_no_faults(std::string_view who, std::int64_t faults, std::int64_t classes);

/// The mean of many values: sums of values and of weights in f32, each as two, so that many batches lose no digits (Knuth's
/// two-sum).
io::StateDict mean_states();
std::vector<Tensor> add_to_mean(const std::vector<Tensor>& states, const Tensor& values, const Tensor& weights);
double mean_of(const std::vector<Tensor>& states);

}  // namespace clnet::metrics
