// A loss of one's own in f64: its gradient against differences and against the formula on paper.
#include <clnet/clnet.h>

#include <algorithm>
#include <cmath>
#include <iostream>

using namespace clnet;

// mean(w * log(cosh(p - t))); the gradient by p is w * tanh(p - t) / n, by w log(cosh(p - t)) / n.
static Tensor log_cosh_loss(const Tensor& p, const Tensor& t, const Tensor& w) { return (w * log(cosh(p - t))).mean(); }

int main() {
  manual_seed(5);
  const Tensor p = randn({4, 3}, Dtype::f64), t = randn({4, 3}, Dtype::f64), w = rand({3}, Dtype::f64) + 0.5;
  const auto check = check_gradients([&](const std::vector<Tensor>& in) { return log_cosh_loss(in[0], t, in[1]); }, {p, w});
  std::cout << "against differences: " << (check.passed && check.largest_error < 1e-6 ? "right" : "WRONG") << '\n';

  const auto by = gradients(log_cosh_loss(p, t, w), {p, w});
  const auto ps = p.to_vector<double>(), ts = t.to_vector<double>(), ws = w.to_vector<double>();
  const auto of_p = by[0].to_vector<double>(), of_w = by[1].to_vector<double>();
  double worst = 0, sums[3] = {};
  for (std::size_t i = 0; i < 12; ++i) {
    worst = std::max(worst, std::abs(of_p[i] - ws[i % 3] * std::tanh(ps[i] - ts[i]) / 12));
    sums[i % 3] += std::log(std::cosh(ps[i] - ts[i])) / 12;
  }
  for (int i = 0; i < 3; ++i) worst = std::max(worst, std::abs(of_w[i] - sums[i]));
  const Tensor second = gradients(by[0].sum(), {p})[0];  // w / cosh^2 / n
  worst = std::max(worst, std::abs(second.to_vector<double>()[4] - ws[1] / std::pow(std::cosh(ps[4] - ts[4]), 2) / 12));
  std::cout << "against the formula: " << (by[0].dtype() == Dtype::f64 && worst < 1e-14 ? "right" : "WRONG") << '\n';
}
