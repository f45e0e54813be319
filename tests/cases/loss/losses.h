#pragma once

#include <fmt/format.h>

#include "tests/cases/case.h"
#include "tests/reference/loss/losses.h"

namespace clnet::testing {

/// A loss of two tensors by element, in all reductions.
template <class Run, class Formula>
void add_by_element(std::vector<Case>& cases, const std::string& name, const std::vector<Input>& inputs, const Run& run,
                    const Formula& formula) {
  for (auto reduction : {Reduction::none, Reduction::mean, Reduction::sum})
    cases.push_back({.name = fmt::format("{}, reduction {}", name, static_cast<int>(reduction)),
                     .inputs = inputs,
                     .run = [=](const auto& in) -> std::vector<Tensor> { return {run(in, reduction)}; },
                     .reference = [=](const auto& in) -> Arrays {
                       return {reference::elementwise_loss(in[0], in[1], reduction,
                                                           [&](auto i, double x, double t) { return formula(in, i, x, t); })};
                     }});
}

inline std::vector<Case> by_element_cases() {
  using In = std::vector<Tensor>;
  std::vector<Case> cases;
  const std::vector<Input> any{{{5, 4}}, {{5, 4}, -0.8, 1.3}}, logits{{{5, 4}, -4, 4}, {{5, 4}, 0, 1}};
  const std::vector<Input> unit{{{5, 4}, 0.05, 0.95}, {{5, 4}, 0.02, 0.97}}, counts{{{5, 4}, -1, 2}, {{5, 4}, 0.1, 6}};
  const auto plain = [](auto f) { return [=](const Arrays&, std::int64_t, double x, double t) { return f(x, t); }; };
  for (double beta : {0.6, 2.0}) {
    add_by_element(
        cases, fmt::format("smooth_l1_loss, beta {}", beta), any,
        [=](const In& in, Reduction r) { return smooth_l1_loss(in[0], in[1], r, beta); },
        plain([=](double x, double t) { return reference::smooth_l1(x - t, beta); }));
    add_by_element(
        cases, fmt::format("huber_loss, delta {}", beta), any,
        [=](const In& in, Reduction r) { return huber_loss(in[0], in[1], r, beta); },
        plain([=](double x, double t) { return reference::huber(x - t, beta); }));
  }
  add_by_element(
      cases, "binary_cross_entropy", unit, [](const In& in, Reduction r) { return binary_cross_entropy(in[0], in[1], r); },
      plain(reference::binary_cross_entropy));
  add_by_element(
      cases, "binary_cross_entropy with weights", {unit[0], unit[1], {{4}, 0.5, 2}},
      [](const In& in, Reduction r) { return binary_cross_entropy(in[0], in[1], r, in[2]); },
      [](const Arrays& in, std::int64_t i, double x, double t) { return in[2][i % 4] * reference::binary_cross_entropy(x, t); });
  for (double alpha : {0.3, -1.0})
    for (double gamma : {2.0, 1.5})
      add_by_element(
          cases, fmt::format("sigmoid_focal_loss, alpha {}, gamma {}", alpha, gamma), logits,
          [=](const In& in, Reduction r) { return sigmoid_focal_loss(in[0], in[1], r, alpha, gamma); },
          plain([=](double x, double t) { return reference::focal(x, t, alpha, gamma); }));
  add_by_element(
      cases, "kl_div", {{{5, 4}, -3, -0.1}, {{5, 4}, 0.1, 1}},
      [](const In& in, Reduction r) { return kl_div(in[0], in[1], {.reduction = r}); }, plain(reference::kl_div));
  add_by_element(
      cases, "kl_div, logarithms", {{{5, 4}, -3, -0.1}, {{5, 4}, -2, -0.1}},
      [](const In& in, Reduction r) { return kl_div(in[0], in[1], {.reduction = r, .log_target = true}); },
      plain([](double x, double t) { return reference::kl_div(x, std::exp(t)); }));
  for (bool log_input : {true, false})
    for (bool full : {false, true})
      add_by_element(
          cases, fmt::format("poisson_nll_loss{}{}", log_input ? ", log" : "", full ? ", full" : ""),
          {{{5, 4}, log_input ? -1 : 0.2, 2}, counts[1]},
          [=](const In& in, Reduction r) {
            return poisson_nll_loss(in[0], in[1], {.log_input = log_input, .full = full, .reduction = r});
          },
          plain([=](double x, double t) { return reference::poisson_nll(x, t, log_input, full); }));
  for (const auto& [shape, columns] : {std::pair{Shape{5, 4}, 4}, {Shape{5, 1}, 1}, {Shape{5}, 1}})
    for (bool full : {false, true})
      add_by_element(
          cases, fmt::format("gaussian_nll_loss, var {}{}", to_string(shape), full ? ", full" : ""),
          {any[0], any[1], {shape, 0.3, 2}},
          [=](const In& in, Reduction r) { return gaussian_nll_loss(in[0], in[1], in[2], {.full = full, .reduction = r}); },
          [=, columns = columns](const Arrays& in, std::int64_t i, double x, double t) {
            const double var = in[2][columns == 4 ? i : i / 4], d = x - t;
            return (std::log(var) + d * d / var + (full ? std::log(2 * 3.14159265358979323846) : 0)) / 2;
          });
  add_by_element(
      cases, "hinge_embedding_loss", {{{5, 4}, -1, 2}, {{5, 4}}},
      [](const In& in, Reduction r) { return hinge_embedding_loss(in[0], sign(in[1]), 1.25, r); },
      plain([](double x, double t) { return t > 0 ? x : std::fmax(0, 1.25 - x); }));
  return cases;
}

/// Inputs and targets of different shapes.
inline std::vector<Case> broadcast_losses_cases() {
  using In = std::vector<Tensor>;
  std::vector<Case> cases;
  const auto plain = [](auto f) { return [=](const Arrays&, std::int64_t, double x, double t) { return f(x, t); }; };
  const std::vector<std::pair<Shape, Shape>> shapes{{{5, 4}, {4}}, {{5, 1}, {4}}, {{4}, {3, 5, 4}}, {{5, 4}, {}}, {{}, {6}}};
  for (const auto& [x, t] : shapes) {
    const auto add = [&, x = x, t = t](const std::string& name, double low, double high, auto run, auto formula) {
      add_by_element(cases, fmt::format("{} of {} and {}", name, to_string(x), to_string(t)), {{x, -1.7, -0.1}, {t, low, high}},
                     run, plain(formula));
    };
    add(
        "mse_loss", -0.8, 1.3, [](const In& in, Reduction r) { return mse_loss(in[0], in[1], r); },
        [](double a, double b) { return (a - b) * (a - b); });
    add(
        "l1_loss", -0.8, 1.3, [](const In& in, Reduction r) { return l1_loss(in[0], in[1], r); },
        [](double a, double b) { return std::abs(a - b); });
    add(
        "smooth_l1_loss", -0.8, 1.3, [](const In& in, Reduction r) { return smooth_l1_loss(in[0], in[1], r, 0.6); },
        [](double a, double b) { return reference::smooth_l1(a - b, 0.6); });
    add(
        "huber_loss", -0.8, 1.3, [](const In& in, Reduction r) { return huber_loss(in[0], in[1], r, 0.6); },
        [](double a, double b) { return reference::huber(a - b, 0.6); });
    add(
        "poisson_nll_loss", 0.1, 6,
        [](const In& in, Reduction r) { return poisson_nll_loss(in[0], in[1], {.full = true, .reduction = r}); },
        [](double a, double b) { return reference::poisson_nll(a, b, true, true); });
    add(
        "kl_div", 0.1, 1, [](const In& in, Reduction r) { return kl_div(in[0], in[1], {.reduction = r}); }, reference::kl_div);
    add(
        "hinge_embedding_loss", -1, 1,
        [](const In& in, Reduction r) { return hinge_embedding_loss(in[0], sign(in[1]), 1.25, r); },
        [](double a, double b) { return b > 0 ? a : std::fmax(0, 1.25 - a); });
    if (broadcast(x, t, "soft_margin_loss") == x)
      add(
          "soft_margin_loss", -1, 1, [](const In& in, Reduction r) { return soft_margin_loss(in[0], in[1], r); },
          [](double a, double b) { return std::log1p(std::exp(-a * b)); });
  }
  add_by_element(
      cases, "gaussian_nll_loss of a row as the target", {{{5, 4}}, {{4}, -0.8, 1.3}, {{5, 1}, 0.3, 2}},
      [](const In& in, Reduction r) { return gaussian_nll_loss(in[0], in[1], in[2], {.reduction = r}); },
      [](const Arrays& in, std::int64_t i, double x, double t) {
        const double var = in[2][i / 4], d = x - t;
        return (std::log(var) + d * d / var) / 2;
      });
  return cases;
}

inline std::vector<Case> losses_cases() {
  std::vector<Case> cases = by_element_cases();
  cases.push_back({.name = "kl_div, mean of the batch",
                   .inputs = {{{5, 4}, -3, -0.1}, {{5, 4}, 0.1, 1}},
                   .run = [](const auto& in) -> std::vector<Tensor> { return {kl_div(in[0], in[1], {.batch_mean = true})}; },
                   .reference = [](const auto& in) -> Arrays {
                     auto total = reference::elementwise_loss(in[0], in[1], Reduction::sum,
                                                              [](auto, double x, double t) { return reference::kl_div(x, t); });
                     total[0] /= 5;
                     return {total};
                   }});
  for (auto reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    const auto number = static_cast<int>(reduction);
    cases.push_back({.name = fmt::format("mse_loss, reduction {}", number),
                     .inputs = {{{5, 4}}, {{5, 4}, -0.8, 1.3}},
                     .run = [=](const auto& in) -> std::vector<Tensor> { return {mse_loss(in[0], in[1], reduction)}; },
                     .reference = [=](const auto& in) -> Arrays {
                       return {reference::elementwise_loss(in[0], in[1], reduction,
                                                           [](auto, double a, double b) { return (a - b) * (a - b); })};
                     }});
    cases.push_back({.name = fmt::format("l1_loss, reduction {}", number),
                     .inputs = {{{5, 4}}, {{5, 4}, -0.8, 1.3}},
                     .run = [=](const auto& in) -> std::vector<Tensor> { return {l1_loss(in[0], in[1], reduction)}; },
                     .reference = [=](const auto& in) -> Arrays {
                       return {reference::elementwise_loss(in[0], in[1], reduction,
                                                           [](auto, double a, double b) { return std::abs(a - b); })};
                     }});
    cases.push_back({.name = fmt::format("binary_cross_entropy_with_logits, reduction {}", number),
                     .inputs = {{{5, 4}, -6, 6}, {{5, 4}, 0, 1}},
                     .run = [=](const auto& in) -> std::vector<Tensor> {
                       return {binary_cross_entropy_with_logits(in[0], in[1], reduction)};
                     },
                     .reference = [=](const auto& in) -> Arrays {
                       return {reference::elementwise_loss(in[0], in[1], reduction, [](auto, double x, double t) {
                         return reference::binary_cross_entropy_with_logits(x, t);
                       })};
                     }});
    cases.push_back({.name = fmt::format("binary_cross_entropy_with_logits with weights, reduction {}", number),
                     .inputs = {{{5, 4}, -6, 6}, {{5, 4}, 0, 1}, {{4}, 0.5, 2}},
                     .run = [=](const auto& in) -> std::vector<Tensor> {
                       return {binary_cross_entropy_with_logits(in[0], in[1], reduction, in[2])};
                     },
                     .reference = [=](const auto& in) -> Arrays {
                       return {reference::elementwise_loss(in[0], in[1], reduction, [&](auto i, double x, double t) {
                         return in[2][i % 4] * reference::binary_cross_entropy_with_logits(x, t);
                       })};
                     }});
    cases.push_back({.name = fmt::format("binary_cross_entropy_with_logits with weights of the positive, reduction {}", number),
                     .inputs = {{{5, 4}, -6, 6}, {{5, 4}, 0, 1}, {{4}, 0.5, 2}},
                     .run = [=](const auto& in) -> std::vector<Tensor> {
                       return {binary_cross_entropy_with_logits(in[0], in[1], reduction, {}, in[2])};
                     },
                     .reference = [=](const auto& in) -> Arrays {
                       return {reference::elementwise_loss(in[0], in[1], reduction, [&](auto i, double x, double t) {
                         const double p = 1 / (1 + std::exp(-x));
                         return -(in[2][i % 4] * t * std::log(p) + (1 - t) * std::log(1 - p));
                       })};
                     }});
  }
  cases.push_back({.name = "global_norm",
                   .inputs = {{{5, 4}}, {{}}, {{3}}},
                   .run = [](const auto& in) -> std::vector<Tensor> {
                     return {global_norm({in[0], in[1], in[2]})};
                   },
                   .reference = [](const auto& in) -> Arrays {
                     double total = 0;
                     for (const auto& array : in)
                       for (double value : array.values) total += value * value;
                     return {Array({}, {std::sqrt(total)})};
                   }});
  return cases;
}

}  // namespace clnet::testing
