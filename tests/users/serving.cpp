// Answer requests with one model from four threads, and show how far compiling is, so that whoever waits may end it.
#include <clnet/clnet.h>

#include <cmath>
#include <iostream>
#include <random>
#include <thread>

using namespace clnet;

namespace {

const char* yes(bool b) { return b ? "yes" : "no"; }

/// Request number i, of one or of four samples.
Tensor request(int i) {
  const std::int64_t n = i % 2 ? 4 : 1;
  std::vector<float> values(n * 8);
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<float>((i * 37 + static_cast<int>(k) * 11) % 19) / 9 - 1;
  return Tensor::from(values, {n, 8});
}

/// A kernel that no machine has compiled yet, as its source is another in each run.
Kernel new_kernel() {
  const std::string number = std::to_string(std::random_device()()) + std::to_string(std::random_device()());
  return Kernel("twice", "kernel void twice(IN(x), OUT(y), const uint n) {  // " + number + R"(
    const uint i = get_global_id(0);
    if (i < n) STORE(y, i, 2 * LOAD(x, i));
  })")
      .gradient([](auto, auto, std::vector<Tensor> gradients) { return std::vector<Tensor>{2.0 * gradients[0]}; });
}

}  // namespace

int main() {
  manual_seed(1);
  auto model = nn::Sequential{nn::Linear{8, 16}, new_kernel(), relu, nn::Linear{16, 3}};
  auto sgd = optim::SGD{model, {.learning_rate = 0.1}};
  const auto weights = [&] { return model.parameter("0.weight").value().to_vector<float>(); };

  // A step that is cancelled while it compiles has not been made.
  const auto before = weights();
  on_compile([](std::size_t, std::size_t) { return false; });
  try {
    sgd.step(cross_entropy(model(request(1)), Tensor::from({0, 1, 2, 0})));
    std::cout << "the step was made\n";
  } catch (const Error& error) {
    std::cout << "cancelled after " << sgd.steps() << " steps, weights as before: " << yes(weights() == before) << '\n';
  }

  std::size_t calls = 0, first = 99, last = 0, all = 1;
  bool rises = true;
  on_compile([&](std::size_t done, std::size_t total) {
    if (calls++ == 0) first = done;
    rises = rises && done >= last && done <= total;
    last = done, all = total;
    return true;
  });
  sgd.step(cross_entropy(model(request(1)), Tensor::from({0, 1, 2, 0})));
  on_compile(nullptr);
  std::cout << "told: " << yes(calls > 0) << ", from " << first << ", to the end: " << yes(last == all && all > 0)
            << ", never back: " << yes(rises) << '\n';
  std::cout << "steps: " << sgd.steps() << ", weights moved: " << yes(weights() != before) << '\n';

  model.inference();
  const auto infer = compile([&](const Tensor& x) { return softmax(model(x), 1); });
  constexpr int requests = 40, threads = 4;
  std::vector<std::vector<float>> answers(requests);
  {
    std::vector<std::jthread> workers;
    for (int w = 0; w < threads; ++w)
      workers.emplace_back([&, w] {
        for (int i = w; i < requests; i += threads) answers[i] = infer(request(i)).to_vector<float>();
      });
  }
  int same = 0, near = 0;
  for (int i = 0; i < requests; ++i) {
    same += infer(request(i)).to_vector<float>() == answers[i];
    const auto plain = softmax(model(request(i)), 1).to_vector<float>();
    bool close = plain.size() == answers[i].size();
    for (std::size_t k = 0; close && k < plain.size(); ++k) close = std::abs(plain[k] - answers[i][k]) < 1e-5;
    near += close;
  }
  std::cout << "answers of four threads: " << same << " of " << requests << " as of one, " << near << " as without compile()\n";
  std::cout << "graphs: " << infer.graphs() << '\n';
}
