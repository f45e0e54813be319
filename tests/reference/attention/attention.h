// Attention and positions in double precision, from their definitions.
#pragma once

#include <cmath>
#include <functional>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

struct AttentionTerms {
  bool causal = false;
  std::int64_t start = 0;  ///< of causal queries among the keys
  double scale = 1;
  const Array* mask = nullptr;  ///< bool: 1 where a query may look at a key; else added
  bool bool_mask = false;
  /// By what the weight at that place of {..., heads, queries, keys} is multiplied.
  std::function<double(std::int64_t)> kept = [](std::int64_t) { return 1.0; };
};

/// The weights, {..., heads, queries, keys}, before any is dropped. `sums`: also the logarithm of each row's sum of exponentials,
/// infinity where the row may look at nothing.
inline Array attention_weights(const Array& q, const Array& k, const AttentionTerms& terms, Array* sums = nullptr) {
  const auto queries = q.size(-2), keys = k.size(-2), width = q.size(-1);
  const auto heads = q.shape.rank() < 3 ? 1 : q.size(-3), key_heads = q.shape.rank() < 3 ? 1 : k.size(-3);
  Array weights(q.shape.with(-1, keys));
  for (std::int64_t row = 0; row < q.numel() / std::max<std::int64_t>(1, width); ++row) {
    const auto i = row % queries, head = row / queries % heads, batch = row / queries / heads;
    const auto key_head = batch * key_heads + head / (heads / key_heads);
    std::vector<double> scores(static_cast<std::size_t>(keys));
    double most = -INFINITY, sum = 0;
    bool sees = false;
    for (std::int64_t j = 0; j < keys; ++j) {
      double score = 0;
      for (std::int64_t d = 0; d < width; ++d) score += q[row * width + d] * k[(key_head * keys + j) * width + d];
      score *= terms.scale;
      if (terms.causal && j > i + terms.start) score = -INFINITY;
      if (terms.mask) {
        // The mask's element by broadcasting.
        std::int64_t at = 0, place = row * keys + j;
        std::vector<std::int64_t> where(static_cast<std::size_t>(weights.shape.rank()));
        for (int d = weights.shape.rank() - 1; d >= 0; --d) {
          where[static_cast<std::size_t>(d)] = place % weights.shape[d];
          place /= weights.shape[d];
        }
        const int missing = weights.shape.rank() - terms.mask->shape.rank();
        for (int d = 0; d < terms.mask->shape.rank(); ++d)
          at = at * terms.mask->shape[d] + (terms.mask->shape[d] == 1 ? 0 : where[static_cast<std::size_t>(d + missing)]);
        const double m = (*terms.mask)[at];
        score = !terms.bool_mask ? score + m : m != 0 ? score : -INFINITY;
      }
      scores[static_cast<std::size_t>(j)] = score;
      most = std::max(most, score);
      sees = sees || score != -INFINITY;  // NaN, too, which is no maximum
    }
    if (sums) (*sums)[row] = INFINITY;
    if (!sees) continue;  // it may look at nothing
    for (double score : scores) sum += std::exp(score - most);
    if (sums) (*sums)[row] = most + std::log(sum);
    for (std::int64_t j = 0; j < keys; ++j) weights[row * keys + j] = std::exp(scores[static_cast<std::size_t>(j)] - most) / sum;
  }
  return weights;
}

inline Array attention(const Array& q, const Array& k, const Array& v, const AttentionTerms& terms) {
  const auto weights = attention_weights(q, k, terms);
  const auto queries = q.size(-2), keys = k.size(-2), width = v.size(-1);
  const auto heads = q.shape.rank() < 3 ? 1 : q.size(-3), key_heads = q.shape.rank() < 3 ? 1 : k.size(-3);
  Array y(q.shape.with(-1, width));
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const auto row = i / width, head = row / queries % heads, batch = row / queries / heads;
    const auto key_head = batch * key_heads + head / (heads / key_heads);
    for (std::int64_t j = 0; j < keys; ++j)
      y[i] += weights[row * keys + j] * terms.kept(row * keys + j) * v[(key_head * keys + j) * width + i % width];
  }
  return y;
}

/// x {..., length, width} at positions[row % their number].
inline Array rotary_embedding(const Array& x, const std::vector<double>& positions, double base, bool interleaved) {
  Array y = x;
  const auto width = x.size(-1), half = width / 2;
  for (std::int64_t row = 0; row < x.numel() / width; ++row)
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = positions[static_cast<std::size_t>(row) % positions.size()] *
                           std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(width));
      const auto a = row * width + (interleaved ? 2 * i : i), b = interleaved ? a + 1 : a + half;
      y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
      y[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
    }
  return y;
}

}  // namespace clnet::testing::reference
