// A kernel of your own in OpenCL C: first on two arrays, then inside a model that learns through it.
#include <clnet/clnet.h>

#include <cmath>
#include <iostream>
#include <vector>

using namespace clnet;

int main() try {
  const Kernel add("add", R"(
      kernel void add(IN(a), IN(b), OUT(y), const uint n) {
        const uint i = get_global_id(0);
        if (i < n) STORE(y, i, LOAD(a, i) + LOAD(b, i));
      })");
  const auto a = Tensor::from<float>({1, 2, 3}), b = Tensor::from<float>({10, 20, 30});
  std::cout << "sum:";
  for (float value : add(a, b).to_vector<float>()) std::cout << ' ' << value;
  std::cout << '\n';

  // An activation, x * exp(-x^2), with its derivative in a second kernel.
  const Kernel bump_slope("bump_slope", R"(
      kernel void bump_slope(IN(x), IN(g), OUT(dx), const uint n) {
        const uint i = get_global_id(0);
        if (i >= n) return;
        const float x = LOAD(x, i);
        STORE(dx, i, LOAD(g, i) * (1 - 2 * x * x) * exp(-x * x));
      })");
  const Kernel bump = Kernel("bump", R"(
      kernel void bump(IN(x), OUT(y), const uint n) {
        const uint i = get_global_id(0);
        if (i < n) STORE(y, i, LOAD(x, i) * exp(-LOAD(x, i) * LOAD(x, i)));
      })")
                          .gradient([bump_slope](auto in, auto, auto g) { return std::vector{bump_slope(in[0], g[0])}; });

  // Fit y = v bump(w x + c) to a sine by gradient descent.
  std::vector<float> points, targets;
  for (int i = 0; i < 64; ++i) {
    points.push_back(static_cast<float>(i) / 32 - 1);
    targets.push_back(std::sin(2 * points.back()));
  }
  const auto x = Tensor::from(points, {64, 1}), y = Tensor::from(targets, {64, 1});
  manual_seed(1);
  std::vector<Tensor> parameters{randn({1, 16}), randn({16}), randn({16, 1}) * 0.25};
  float first = 0, last = 0;
  for (int step = 0; step <= 200; ++step) {
    const auto hidden = bump(matmul(x, parameters[0]) + parameters[1]);
    const auto loss = mse_loss(matmul(hidden, parameters[2]), y);
    const auto slopes = gradients(loss, parameters);
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] = parameters[i] - 0.1 * slopes[i];
    std::vector<Tensor> results = parameters;
    results.push_back(loss);
    eval(results);
    // detach() lets go of the step's graph.
    for (auto& parameter : parameters) parameter = parameter.detach();
    last = loss.item<float>();
    if (step == 0) first = last;
    if (step % 50 == 0) std::cout << "step " << step << ": loss " << last << '\n';
  }
  return last < first / 5 ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
