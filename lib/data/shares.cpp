// The rows of a batch that one of several shares has.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "clnet/data/batches.h"
#include "clnet/error.h"

namespace clnet::data {

Rows rows_of(const Share& share, std::int64_t batch) {
  const auto& weights = share.weights;
  constexpr std::int64_t most = std::int64_t{1} << 53;  // a double knows them apart
  if (batch < 0 || batch > most) throw Error(fmt::format("shares: a batch of {} rows", batch));
  if (share.index >= weights.size()) throw Error(fmt::format("shares: there is no share {} of {}", share.index, weights.size()));
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight >= 0) || std::isinf(weight)) throw Error(fmt::format("shares: {} is no share", weight));
    sum += weight;
  }
  if (!(sum > 0) || std::isinf(sum)) throw Error(fmt::format("shares: they add up to {}", sum));
  // Remainders of a division by one number, exact for weights that are whole numbers: equal ones are equal. By a power of two, so
  // that no product overflows.
  const int scale = -std::ilogb(sum);
  const double divisor = std::ldexp(sum, scale);
  std::vector<std::int64_t> counts;
  std::vector<double> remainders;
  for (const double weight : weights) {
    const double product = static_cast<double>(batch) * std::ldexp(weight, scale), remainder = std::fmod(product, divisor);
    counts.push_back(std::llround((product - remainder) / divisor));
    remainders.push_back(remainder);
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  auto left = batch - std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size())
    if (weights[order[i]] > 0) ++counts[order[i]], --left;
  // Roundings of the quotas may exceed the batch.
  for (std::size_t i = order.size(); left < 0; i = i == 1 ? order.size() : i - 1)
    if (counts[order[i - 1]] > 0) --counts[order[i - 1]], ++left;
  const auto first = std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(share.index), std::int64_t{0});
  return {first, counts[share.index], batch};
}

}  // namespace clnet::data
