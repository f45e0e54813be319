#include "lib/metrics/counting.h"

#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"

namespace clnet::metrics {

Tensor zero_counts(std::int64_t count) {
  return Tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(count)), {count});
}

const Tensor& first_of(std::string_view who, std::span<const Tensor> tensors) {
  if (tensors.empty()) throw Error(fmt::format("{}: there is no output, or there are no labels", who));
  return tensors.front();
}

Tensor count_at(const Tensor& counts, const Tensor& places) {
  return scatter_add(counts, 0, places, ones(places.shape(), Dtype::i64));
}

void require_no_faults(std::string_view who, std::int64_t faults, std::int64_t classes) {
  if (faults > 0)
    throw Error(fmt::format("{}: {} label{} no class below {}", who, faults, faults == 1 ? " is" : "s are", classes));
}

io::StateDict mean_states() { return {{"sums", Tensor::from(std::vector<float>(4), {4})}}; }

std::vector<Tensor> add_to_mean(const std::vector<Tensor>& states, const Tensor& values, const Tensor& weights) {
  const Tensor high = narrow(states[0], 0, 0, 2), low = narrow(states[0], 0, 2, 2);
  const Tensor more = concat({reshape(values, {1}), reshape(weights, {1})}, 0);
  const Tensor sums = high + more, part = sums - high;
  return {concat({sums, low + ((high - (sums - part)) + (more - part))}, 0)};
}

double mean_of(const std::vector<Tensor>& states) {
  const auto sums = states[0].to_vector<double>();
  return (sums[0] + sums[2]) / (sums[1] + sums[3]);
}

}  // namespace clnet::metrics
