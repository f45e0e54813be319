// Draws tokens by their logits, for decode::sample() and models::generate().
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>

namespace clnet::decode {

struct SamplerOptions {
  double temperature = 1;
  std::int64_t top_k = 0;
  double top_p = 1;
};
class Sampler {
 public:
  /// `who` begins the errors. Throws Error for options out of range.
  Sampler(std::string who, const SamplerOptions& options);
  /// Throws Error for logits with a NaN, or without a largest finite number.
  std::int64_t draw(std::span<const float> logits, std::mt19937_64& random) const;

 private:
  std::string who_;
  SamplerOptions options_;
};

}  // namespace clnet::decode
