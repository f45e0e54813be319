// Attention and its gradients.
#include <algorithm>
#include <cmath>
#include <string>

#include "tools/self_test/problem.h"

namespace clnet::tools {

namespace {

struct AttentionSizes {
  std::int64_t heads, queries, keys, width, value_width;
  bool causal;
};

/// All heads of q share one of k and v. More than 128 x 128 scores, or products and softmax are taken instead.
Problem attention_problem(const AttentionSizes& s) {
  Problem result{.op = "attention",
                 .name = "attention of " + std::to_string(s.heads) + " heads, " + std::to_string(s.queries) + " queries and " +
                         std::to_string(s.keys) + " keys" + (s.causal ? ", causal" : "") + ", and its gradients",
                 .inputs = {{{s.heads, s.queries, s.width}},
                            {{1, s.keys, s.width}},
                            {{1, s.keys, s.value_width}},
                            {{s.heads, s.queries, s.value_width}}},
                 .terms = static_cast<double>(std::max(s.queries * s.heads, s.keys))};
  result.run = [=](const auto& t) {
    const auto y = scaled_dot_product_attention(t[0], t[1], t[2], {.causal = s.causal, .scale = 0.5});
    const std::vector<Tensor> outputs{y}, given{t[3]}, inputs{t[0], t[1], t[2]};
    auto all = gradients(outputs, given, inputs);
    all.insert(all.begin(), y);
    return all;
  };
  result.reference = [=](const auto& v) {
    const auto at = [](std::int64_t row, std::int64_t width, std::int64_t d) {
      return static_cast<std::size_t>(row * width + d);
    };
    const auto &q = v[0], &k = v[1], &values = v[2], &g = v[3];
    Values y(g.size()), dq(q.size()), dk(k.size()), dv(values.size());
    for (std::int64_t row = 0; row < s.heads * s.queries; ++row) {
      const auto count = s.causal ? std::min(s.keys, row % s.queries + 1) : s.keys;
      Values weight(static_cast<std::size_t>(count)), towards(weight.size());
      double sum = 0, mean = 0;
      for (std::int64_t j = 0; j < count; ++j) {
        auto& w = weight[static_cast<std::size_t>(j)];
        for (std::int64_t d = 0; d < s.width; ++d) w += q[at(row, s.width, d)] * k[at(j, s.width, d)] / 2;
        sum += w = std::exp(w);
        for (std::int64_t d = 0; d < s.value_width; ++d)
          towards[static_cast<std::size_t>(j)] += g[at(row, s.value_width, d)] * values[at(j, s.value_width, d)];
      }
      for (std::size_t j = 0; j < weight.size(); ++j) mean += (weight[j] /= sum) * towards[j];
      for (std::int64_t j = 0; j < count; ++j) {
        const double w = weight[static_cast<std::size_t>(j)], score = w * (towards[static_cast<std::size_t>(j)] - mean) / 2;
        for (std::int64_t d = 0; d < s.value_width; ++d) {
          y[at(row, s.value_width, d)] += w * values[at(j, s.value_width, d)];
          dv[at(j, s.value_width, d)] += w * g[at(row, s.value_width, d)];
        }
        for (std::int64_t d = 0; d < s.width; ++d) {
          dq[at(row, s.width, d)] += score * k[at(j, s.width, d)];
          dk[at(j, s.width, d)] += score * q[at(row, s.width, d)];
        }
      }
    }
    return std::vector<Values>{y, dq, dk, dv};
  };
  return result;
}

}  // namespace

std::vector<Problem> make_attention_problems(bool full) {
  std::vector<Problem> result{attention_problem({2, 131, 130, 16, 12, true})};
  if (full) {
    result.push_back(attention_problem({1, 40, 450, 64, 64, false}));
    result.push_back(attention_problem({3, 300, 60, 5, 33, false}));
  }
  return result;
}

}  // namespace clnet::tools
