#include "lib/nn/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "clnet/error.h"

namespace clnet::decode {

Sampler::Sampler(std::string who, const SamplerOptions& options) : who_(std::move(who)), options_(options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature))
    throw Error(fmt::format("{}: the temperature must be a number from 0, not {}", who_, options.temperature));
  if (options.top_k < 0) throw Error(fmt::format("{}: top_k must be a number from 0, not {}", who_, options.top_k));
  if (!(options.top_p > 0 && options.top_p <= 1))
    throw Error(fmt::format("{}: top_p must be above 0 and at most 1, not {}", who_, options.top_p));
}

std::int64_t Sampler::draw(std::span<const float> logits, std::mt19937_64& random) const {
  const auto best = std::max_element(logits.begin(), logits.end());
  if (best == logits.end() || std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }) ||
      !std::isfinite(*best))
    throw Error(fmt::format("{}: the model's logits are no finite numbers", who_));
  if (options_.temperature == 0) return best - logits.begin();
  // In double, from logits minus their largest, so that a low temperature overflows nothing.
  const auto weight = [&](std::size_t i) {
    return std::exp((static_cast<double>(logits[i]) - static_cast<double>(*best)) / options_.temperature);
  };
  // The tokens to choose from; where options leave some out, the likeliest first.
  std::vector<std::size_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), std::size_t{0});
  const auto likelier = [&](std::size_t a, std::size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
  const bool few = options_.top_k > 0 && std::cmp_less(options_.top_k, tokens.size());
  if (few) {
    const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(options_.top_k);
    std::nth_element(tokens.begin(), end, tokens.end(), likelier);
    tokens.erase(end, tokens.end());
  }
  if (few || options_.top_p < 1) std::sort(tokens.begin(), tokens.end(), likelier);
  std::vector<double> sums;
  double sum = 0;
  for (const auto token : tokens) sums.push_back(sum += weight(token));
  if (options_.top_p < 1) {
    const auto enough = std::lower_bound(sums.begin(), sums.end() - 1, options_.top_p * sum);
    sums.erase(enough + 1, sums.end());
    sum = sums.back();
  }
  // Not std::discrete_distribution, which differs between standard libraries.
  const double drawn = static_cast<double>(random() >> 11) * 0x1p-53 * sum;
  return static_cast<std::int64_t>(
      tokens[static_cast<std::size_t>(std::upper_bound(sums.begin(), sums.end() - 1, drawn) - sums.begin())]);
}

}  // namespace clnet::decode
