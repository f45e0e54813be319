// Use an OpenCL kernel of my own as an activation with a slope that is learned, with its gradient, in a network for XOR.
#include <clnet/clnet.h>

#include <iostream>

using namespace clnet;

namespace {

const char* yes(bool b) { return b ? "yes" : "no"; }

// y = x + sin(a x)^2 / a (Liu, Hartwig and Ueda 2020), with one a for each feature.
const char* const source = R"(
kernel void snake(IN(x), IN(a), OUT(y), const uint n, const uint a_count) {
  const uint i = get_global_id(0);
  if (i >= n) return;
  const float v = LOAD(x, i), f = LOAD(a, i % a_count), s = sin(f * v);
  STORE(y, i, v + s * s / f);
}
)";

Kernel snake(double error = 1) {
  return Kernel("snake", source)
      .gradient([error](std::vector<Tensor> in, const std::vector<Tensor>&, std::vector<Tensor> gradients) {
        const Tensor &x = in[0], &a = in[1], &g = gradients[0];
        const Tensor s = sin(a * x), twice = sin(2.0 * a * x);
        return std::vector<Tensor>{g * (1.0 + twice) * error, sum_to(g * (x * twice / a - square(s / a)), a.shape())};
      });
}

struct Snake : nn::Module {
  nn::Parameter a;
  Kernel kernel = snake();
  explicit Snake(std::int64_t features) : a(add_parameter("a", ones({features}))) {}
  Tensor forward(const Tensor& x) override { return kernel({x, a}); }
};

}  // namespace

int main() {
  manual_seed(2);
  const std::vector<Tensor> at{randn({5, 3}), rand({3}) + 0.5};
  const auto good = check_gradients([](const auto& in) { return snake()(in); }, at);
  const auto bad = check_gradients([](const auto& in) { return snake(1.5)(in); }, at);
  std::cout << "the gradient is right: " << yes(good.passed) << '\n';
  std::cout << "a wrong one is found: " << yes(!bad.passed && !bad.worst.empty()) << '\n';
  try {
    gradients(sum(Kernel("snake", source)(at)), at);
  } catch (const Unsupported& error) {
    std::cout << "without one, named: " << yes(std::string(error.what()).find("snake") != std::string::npos) << '\n';
  }

  const auto x = Tensor::from({0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0}, {4, 2});
  const auto y = Tensor::from({0, 1, 1, 0});
  auto model = nn::Sequential{nn::Linear{2, 8}, Snake{8}, nn::Linear{8, 2}};
  for (const auto& [name, parameter] : model.parameters()) std::cout << name << ' ' << parameter.value().shape() << '\n';
  auto adam = optim::Adam{model, {.learning_rate = 0.05}};
  for (int step = 0; step < 60; ++step) adam.step(cross_entropy(model(x), y));
  std::cout << "loss below 0.1: " << yes(cross_entropy(model(x), y).item() < 0.1) << '\n';
  std::cout << "XOR:";
  for (const auto label : argmax(model(x), 1).to_vector<int>()) std::cout << ' ' << label;
  std::cout << "\nthe slopes were learned: " << yes(max(abs(model.parameter("1.a").value() - 1.0)).item() > 1e-3) << '\n';

  // Line 4 has an error.
  const Kernel broken("broken", R"(kernel void broken(IN(x), OUT(y), const uint n) {
  const uint i = get_global_id(0);
  if (i < n)
    STORE(y, i, missing * LOAD(x, i));
})");
  const Tensor z = broken(x);
  try {
    z.eval();
  } catch (const BuildError& error) {
    const std::string text = error.what();
    std::cout << "the error names the kernel: " << yes(text.find("broken") != std::string::npos)
              << ", the line: " << yes(text.find(":4:") != std::string::npos)
              << ", what is wrong: " << yes(text.find("missing") != std::string::npos)
              << ", and shows the source: " << yes(text.find("STORE(y, i, missing * LOAD(x, i));") != std::string::npos) << '\n';
  }
  std::cout << "and one goes on: " << sum(x).item() << '\n';
}
