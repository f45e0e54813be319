// A module of my own: two linear layers, one of them used under two names on purpose, and a residual block called twice,
// whose activation is told to its constructor. Counts parameters, freezes the block, trains, and wants no warning.
#include <clnet/clnet.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

using namespace clnet;

struct Residual : nn::Module {
  nn::Linear first, second;
  std::function<Tensor(const Tensor&)> activation;
  Residual(std::int64_t width, std::function<Tensor(const Tensor&)> f)
      : first{width, width}, second{width, width}, activation{f} {
    add("first", first);
    add("second", second);
  }
  Tensor forward(const Tensor& x) override { return activation(second(activation(first(x))) + x); }
};

struct Net : nn::Module {
  nn::Linear shared{8, 8}, head{8, 3};
  Residual block;
  explicit Net(std::function<Tensor(const Tensor&)> activation) : block{8, activation} {
    add("encode", shared);
    add("decode", nn::tied(shared));
    add("block", block);
    add("head", head);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor hidden = block(block(tanh(shared(x))));
    return head(tanh(shared(hidden)));
  }
};

static std::vector<std::vector<float>> values(const nn::Module& module) {
  std::vector<std::vector<float>> all;
  for (const auto& [name, value] : module.state_dict()) all.push_back(value.to_vector<float>());
  return all;
}
static const char* yes(bool b) { return b ? "yes" : "no"; }

int main() {
  const auto log = std::filesystem::temp_directory_path() / ("own-layer-" + std::to_string(getpid()) + ".log");
  if (!std::freopen(log.c_str(), "w", stderr)) return 1;

  manual_seed(3);
  int calls = 0;
  Net net([&](const Tensor& x) { return ++calls, leaky_relu(x, 0.1); });
  std::cout << "parameters: " << net.parameter_count() << '\n';
  for (const auto& [name, p] : net.parameters()) std::cout << "  " << name << ' ' << p.value().shape() << '\n';
  std::cout << "in the state:";
  for (const auto& [name, value] : net.state_dict()) std::cout << ' ' << name;
  std::cout << "\ntwo names, one parameter: " << yes(net.parameter("encode.weight").same(net.parameter("decode.weight"))) << '\n'
            << net.summary({8});

  const Tensor x = randn({64, 8});
  const Tensor labels = argmax(x[{{}, {0, 3}}], 1).detach();
  calls = 0;
  std::cout << "output: " << net(x).spec() << '\n' << "the activation was called: " << calls << " times\n";

  net.child("block").freeze();
  const auto block = values(net.block), head = values(net.head), shared = values(net.shared);
  auto adam = optim::Adam{net, {.learning_rate = 0.02}};
  float last = 0, first = adam.step(cross_entropy(net(x), labels)).item();
  for (int i = 0; i < 30; ++i) last = adam.step(cross_entropy(net(x), labels)).item();
  std::cout << "loss fell by half: " << yes(last < first / 2) << '\n'
            << "frozen block stayed: " << yes(values(net.block) == block) << '\n'
            << "head moved: " << yes(values(net.head) != head) << '\n'
            << "shared layer moved: " << yes(values(net.shared) != shared) << '\n'
            << "both names see it: " << yes(values(net.child("encode")) == values(net.child("decode"))) << '\n';

  auto copy = nn::clone(net);
  std::cout << "a clone is its own: " << yes(!copy.parameter("head.bias").same(net.parameter("head.bias")))
            << ", still tied: " << yes(copy.parameter("encode.bias").same(copy.parameter("decode.bias"))) << ", of "
            << copy.parameter_count() << " parameters\n";

  std::fflush(stderr);
  std::ifstream told(log);
  int warnings = 0;
  for (std::string line; std::getline(told, line);) warnings += line.starts_with("clnet:");
  std::filesystem::remove(log);
  std::cout << "warnings: " << warnings << '\n';
}
