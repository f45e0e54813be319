// What attention as one operation means, with its gradient.
#include "tests/fuzz/interpret.h"
#include "tests/reference/attention/attention.h"
#include "tests/reference/random/philox.h"

namespace clnet::fuzz {

namespace reference = testing::reference;

namespace {

/// The options, and the inputs that follow the others.
reference::AttentionTerms terms_of(const Call& call) {
  reference::AttentionTerms terms{.causal = call.flag("causal"), .scale = call.number("scale")};
  const double p = call.number("dropout");
  const auto end = call.in.size();
  const bool started = call.flag("started");
  if (started) terms.start = static_cast<std::int64_t>(call.in[end - 1 - (p > 0 ? 2 : 0)][0]);
  if (call.flag("masked")) {
    const auto at = end - 1 - (p > 0 ? 2 : 0) - (started ? 1 : 0);
    terms.mask = &call.in[at];
    terms.bool_mask = call.node.inputs[at].dtype() == Dtype::boolean;
  }
  if (p > 0) {
    const auto seed = static_cast<std::uint64_t>(call.in[end - 2][0]), offset = static_cast<std::uint64_t>(call.in[end - 1][0]);
    terms.kept = [=](std::int64_t i) {
      return reference::philox_uniform(seed, offset, static_cast<std::uint64_t>(i)) < p ? 0 : 1 / (1 - p);
    };
  }
  return terms;
}

/// Outputs: y, and each row's logarithm of the sum of exponentials; infinity where the row may look at nothing.
Arrays attention(const Call& call) {
  const auto terms = terms_of(call);
  const auto &q = call.in[0], &k = call.in[1];
  Array sums(call.shape(1));
  reference::attention_weights(q, k, terms, &sums);
  return {reference::attention(q, k, call.in[2], terms), sums};
}

struct Gradients {
  Array dq, dk, dv;
};
/// Of inputs q, k, v, the gradient of y, sums and delta; with `sizes`, the sizes of the terms.
Gradients gradients_of(const Call& call, bool sizes) {
  const auto terms = terms_of(call);
  const auto &q = call.in[0], &k = call.in[1], &v = call.in[2], &g = call.in[3], &delta = call.in[5];
  const auto weights = reference::attention_weights(q, k, terms);
  const auto queries = q.size(2), keys = k.size(2), width = q.size(3), value_width = v.size(3), group = q.size(1) / k.size(1);
  const auto of = [&](double value) { return sizes ? std::fabs(value) : value; };
  Gradients result{Array(q.shape), Array(k.shape), Array(v.shape)};
  for (std::int64_t row = 0; row < q.size(0) * q.size(1) * queries; ++row)
    for (std::int64_t j = 0; j < keys; ++j) {
      const auto key = row / queries / group * keys + j, place = row * keys + j;
      double towards = 0;
      for (std::int64_t d = 0; d < value_width; ++d) towards += of(g[row * value_width + d] * v[key * value_width + d]);
      const double kept = terms.kept(place);
      const double score = weights[place] * (towards * kept + (sizes ? std::fabs(delta[row]) : -delta[row])) * of(terms.scale);
      for (std::int64_t d = 0; d < width; ++d) {
        result.dq[row * width + d] += of(score * k[key * width + d]);
        result.dk[key * width + d] += of(score * q[row * width + d]);
      }
      for (std::int64_t d = 0; d < value_width; ++d)
        result.dv[key * value_width + d] += of(weights[place] * kept * g[row * value_width + d]);
    }
  return result;
}
Arrays attention_backward(const Call& call) {
  auto [dq, dk, dv] = gradients_of(call, false);
  return {std::move(dq), std::move(dk), std::move(dv)};
}

/// Elements in another shape.
Arrays composed(const Call& call) { return {Array(call.shape(), call.in[0].values)}; }

}  // namespace

Meanings attention_meanings() {
  return {{"attention", {attention, false, 2}},
          {"composed_attention", {composed, true}},
          {"attention_backward", {attention_backward, false, 2, [](const Call& call) { return gradients_of(call, true).dq; }}}};
}

}  // namespace clnet::fuzz
