// Cases of attention and rotary positions.
#pragma once

#include <fmt/format.h>

#include "tests/reference/attention/attention.h"
#include "tests/reference/random/philox.h"

namespace clnet::testing {

enum class MaskKind : std::uint8_t { none, boolean, added };

struct AttentionExample {
  Shape q, k;
  std::int64_t value_width;
  bool causal = false;
  MaskKind mask = MaskKind::none;
  Shape mask_shape = {};
  double scale = 0;  ///< 0: the default
  double dropout = 0;
  /// Of the queries among the keys, given by the host or by the device.
  std::optional<int> start = {};
  bool start_on_device = false;
};

using Attend = Tensor (*)(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);

inline Case attention_case(const AttentionExample& e, Attend attend) {
  const bool masked = e.mask != MaskKind::none;
  std::vector<Input> inputs{{e.q}, {e.k}, {e.k.with(-1, e.value_width)}};
  if (e.mask == MaskKind::boolean) inputs.push_back({e.mask_shape, 0, 1, Dtype::boolean});
  if (e.mask == MaskKind::added) inputs.push_back({e.mask_shape, -2, 2});
  if (e.start && e.start_on_device)
    inputs.push_back({Shape{1}, static_cast<double>(*e.start), static_cast<double>(*e.start) + 0.5, Dtype::i32});
  const double scale = e.scale != 0 ? e.scale : 1 / std::sqrt(static_cast<double>(e.q[-1]));
  return {.name = fmt::format("attention of {} to {}, values {} wide{}{}{}{}", to_string(e.q), to_string(e.k), e.value_width,
                              e.causal ? ", causal" : "",
                              masked ? fmt::format(", {} mask {}", e.mask == MaskKind::boolean ? "bool" : "added",
                                                   to_string(e.mask_shape))
                                     : "",
                              e.scale != 0 ? fmt::format(", scale {}", e.scale) : "",
                              e.dropout > 0 ? fmt::format(", dropout {}", e.dropout) : "") +
                  (e.start ? fmt::format(", from {} on{}", *e.start, e.start_on_device ? " of the device" : "") : ""),
          .inputs = inputs,
          .run = [=](const std::vector<Tensor>& in) -> std::vector<Tensor> {
            manual_seed(7);
            return {attend(in[0], in[1], in[2],
                           {.mask = masked ? in[3] : Tensor{},
                            .causal = e.causal,
                            .start = !e.start            ? Tensor{}
                                     : e.start_on_device ? in.back()
                                                         : Tensor::scalar(*e.start, Dtype::i64),
                            .scale = e.scale != 0 ? std::optional(e.scale) : std::nullopt,
                            .dropout = e.dropout})};
          },
          .reference = [=](const Arrays& in) -> Arrays {
            reference::AttentionTerms terms{.causal = e.causal, .start = e.start.value_or(0), .scale = scale};
            if (masked) terms.mask = &in[3];
            terms.bool_mask = e.mask == MaskKind::boolean;
            if (e.dropout > 0)
              terms.kept = [p = e.dropout](std::int64_t i) {
                return reference::philox_uniform(7, 0, static_cast<std::uint64_t>(i)) < p ? 0 : 1 / (1 - p);
              };
            return {reference::attention(in[0], in[1], in[2], terms)};
          }};
}

inline std::vector<Case> attention_cases(Attend attend) {
  std::vector<Case> cases;
  for (const AttentionExample& e : std::vector<AttentionExample>{
           {{4, 8}, {4, 8}, 8},
           {{1, 1}, {1, 1}, 1},
           {{2, 3, 5, 4}, {2, 3, 7, 4}, 6},
           {{2, 3, 7, 4}, {2, 3, 5, 4}, 3, true},
           {{2, 3, 5, 4}, {2, 3, 7, 4}, 6, true},
           {{3, 19, 16}, {3, 19, 16}, 16, true},
           {{2, 6, 5, 4}, {2, 2, 9, 4}, 4},  // three heads share keys
           {{2, 4, 9, 4}, {2, 1, 9, 4}, 5, true},
           {{2, 1, 2, 6, 3}, {2, 1, 2, 6, 3}, 3},
           {{2, 3, 5, 4}, {2, 3, 7, 4}, 6, false, MaskKind::boolean, {5, 7}},
           {{2, 3, 5, 4}, {2, 3, 2, 4}, 6, false, MaskKind::boolean, {2, 1, 5, 2}},  // with rows that see nothing
           {{2, 3, 5, 4}, {2, 3, 7, 4}, 6, true, MaskKind::boolean, {2, 1, 1, 7}},
           {{2, 3, 5, 4}, {2, 3, 7, 4}, 6, false, MaskKind::added, {3, 5, 7}},
           {{2, 4, 5, 4}, {2, 2, 7, 4}, 4, true, MaskKind::added, {2, 1, 5, 1}},
           {{2, 4, 5, 4}, {2, 2, 7, 4}, 4, false, MaskKind::added, {1}},
           {{2, 3, 5, 4}, {2, 3, 7, 4}, 6, false, MaskKind::none, {}, -0.7},
           {{2, 4, 6, 4}, {2, 2, 6, 4}, 4, true, MaskKind::none, {}, 0, 0.4},
           {{2, 2, 6, 4}, {2, 2, 9, 4}, 4, false, MaskKind::boolean, {6, 9}, 0.5, 0.25},
           {{1, 2, 70, 32}, {1, 2, 131, 32}, 32},
           {{1, 4, 131, 24}, {1, 2, 70, 24}, 40, true},
           {{1, 2, 67, 64}, {1, 2, 67, 64}, 64, true, MaskKind::boolean, {67, 67}},
           {{2, 3, 5, 4}, {2, 3, 9, 4}, 6, true, MaskKind::none, {}, 0, 0, 3},
           {{2, 4, 5, 4}, {2, 2, 9, 4}, 6, true, MaskKind::boolean, {5, 9}, 0, 0.3, 2, true},
           {{2, 3, 8, 4}, {2, 3, 5, 4}, 6, true, MaskKind::none, {}, 0, 0, -3},  // with rows that see nothing
           {{1, 2, 5, 4}, {1, 2, 9, 4}, 6, true, MaskKind::none, {}, 0, 0, 100, true},
           {{1, 2, 70, 20}, {1, 2, 150, 20}, 20, true, MaskKind::none, {}, 0, 0, 75},
           // A few queries.
           {{2, 6, 1, 40}, {2, 2, 70, 40}, 40, true, MaskKind::none, {}, 0, 0, 33},
           {{1, 2, 3, 16}, {1, 2, 70, 16}, 16, true, MaskKind::none, {}, 0, 0, 64, true},
           {{2, 6, 1, 40}, {2, 2, 70, 40}, 100, false, MaskKind::boolean, {1, 70}},
           {{1, 4, 3, 24}, {1, 2, 70, 24}, 40, true},
           {{2, 2, 4, 16}, {2, 2, 131, 16}, 3, false, MaskKind::none, {}, 0, 0.3},
           {{1, 2, 2, 3}, {1, 2, 19, 3}, 20, false, MaskKind::added, {2, 1, 19}},
       })
    cases.push_back(attention_case(e, attend));
  return cases;
}

inline std::vector<Case> rotary_cases() {
  std::vector<Case> cases;
  for (bool interleaved : {false, true}) {
    for (const Shape& shape : {Shape{5, 2}, Shape{2, 3, 7, 8}})
      cases.push_back({.name = fmt::format("rotary_embedding of {}{}", to_string(shape), interleaved ? ", interleaved" : ""),
                       .inputs = {{shape}},
                       .run = [=](const std::vector<Tensor>& in) -> std::vector<Tensor> {
                         return {rotary_embedding(in[0], 3, {.base = 100, .interleaved = interleaved})};
                       },
                       .reference = [=](const Arrays& in) -> Arrays {
                         std::vector<double> positions;
                         for (std::int64_t p = 0; p < shape[-2]; ++p) positions.push_back(static_cast<double>(p + 3));
                         return {reference::rotary_embedding(in[0], positions, 100, interleaved)};
                       }});
    cases.push_back({.name = fmt::format("rotary_embedding at given positions{}", interleaved ? ", interleaved" : ""),
                     .inputs = {{{2, 3, 6}}, {{2, 3}, 0, 9, Dtype::i32}},
                     .run = [=](const std::vector<Tensor>& in) -> std::vector<Tensor> {
                       return {rotary_embedding(in[0], in[1], {.interleaved = interleaved})};
                     },
                     .reference = [=](const Arrays& in) -> Arrays {
                       return {reference::rotary_embedding(in[0], in[1].values, 10000, interleaved)};
                     }});
  }
  return cases;
}

}  // namespace clnet::testing
