// What a device is good for: a product of two matrices by a loop of one's own and by clnet, with times and the largest
// difference. matmul [SIZE]
#include <clnet/clnet.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

using namespace clnet;

/// In the order that a compiler can make vectors of.
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, std::size_t n) {
  std::vector<float> c(n * n, 0.0F);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
  return c;
}

/// The shortest of some calls, in seconds.
template <class F>
double seconds(int calls, const F& f) {
  double best = 1e9;
  for (int i = 0; i < calls; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

int main(int argc, char** argv) try {
  const auto n = argc > 1 ? std::stoll(argv[1]) : 768;
  if (n < 1 || n > 8192) throw Error("the size must be from 1 to 8192");
  manual_seed(1);
  const auto a = randn({n, n}), b = randn({n, n});
  eval({a, b});
  const auto host_a = a.to_vector<float>(), host_b = b.to_vector<float>();

  std::vector<float> by_hand;
  const double loop = seconds(1, [&] { by_hand = product(host_a, host_b, static_cast<std::size_t>(n)); });
  std::vector<float> result;
  // The first call compiles.
  const double first = seconds(1, [&] { result = matmul(a, b).to_vector<float>(); });
  auto device = Device::current();
  const double product_only = seconds(5, [&] {
    matmul(a, b).eval();
    device.finish();
  });
  const double with_transfer = seconds(5, [&] {
    result = matmul(Tensor::from(host_a, {n, n}), Tensor::from(host_b, {n, n})).to_vector<float>();
  });

  double largest = 0;
  for (std::size_t i = 0; i < result.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(result[i]) - by_hand[i]));
  const double work = 2 * std::pow(static_cast<double>(n), 3) * 1e-9;
  const auto line = [&](const std::string& what, double time) {
    std::cout << what << time * 1e3 << " ms, " << work / time << " GFLOP/s\n";
  };
  std::cout << n << " x " << n << " on " << device.info().name << '\n';
  line("a loop on one core:       ", loop);
  line("clnet, the first call:    ", first);
  line("clnet:                    ", product_only);
  line("with transfers:           ", with_transfer);
  std::cout << "largest difference: " << largest << '\n';
  return largest < 1e-3 * std::sqrt(static_cast<double>(n)) ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "matmul: " << error.what() << '\n';
  return 1;
}
