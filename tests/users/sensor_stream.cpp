// An endless sensor as a stream: it is shuffled in a buffer, and its state goes into checkpoints. A training that stops within an
// epoch and resumes in another model ends with the same weights to the bit, and so does a loop that goes on from a batch's state.
#include <clnet/clnet.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using namespace clnet;

namespace {

const char* yes(bool b) { return b ? "yes" : "no"; }

/// Readings of three numbers and 2a - b + c / 2, in the order of a shuffle buffer.
class Sensor : public data::Dataset {
 public:
  explicit Sensor(bool has_state) : has_state_(has_state) {}
  std::int64_t size() const override { return unknown; }
  std::unique_ptr<data::Stream> iterate(std::uint64_t seed) const override { return std::make_unique<Pass>(seed, has_state_); }

 private:
  struct Pass : data::Stream {
    Pass(std::uint64_t seed, bool has) : random(seed), has_state(has) {}
    std::optional<data::Example> next() override {
      while (at < 800 && buffer.size() < 50) buffer.push_back(at++);
      if (buffer.empty()) return std::nullopt;
      std::swap(buffer[random() % buffer.size()], buffer.back());
      const auto i = static_cast<float>(buffer.back());
      buffer.pop_back();
      const std::vector<float> x{std::sin(i), std::cos(2 * i), std::sin(3 * i + 1)};
      return data::Example{data::Array(x, Shape{3}), data::Array(std::vector<float>{2 * x[0] - x[1] + x[2] / 2}, Shape{1})};
    }
    std::optional<std::string> state() const override {
      if (!has_state) return std::nullopt;
      std::ostringstream out;
      out << at << ' ' << buffer.size();
      for (int i : buffer) out << ' ' << i;
      out << ' ' << random;
      return out.str();
    }
    void restore(const std::string& state) override {
      std::istringstream in(state);
      std::size_t count = 0;
      in >> at >> count;
      buffer.resize(count);
      for (int& i : buffer) in >> i;
      if (!(in >> random)) throw Error("the state is not a sensor's");
    }
    std::mt19937_64 random;
    bool has_state;
    int at = 0;
    std::vector<int> buffer;
  };
  bool has_state_;
};

nn::Sequential make_model(std::uint64_t seed) {
  manual_seed(seed);
  return nn::Sequential{nn::Linear(3, 8), tanh, nn::Dropout(0.1), nn::Linear(8, 1)};
}

train::FitResult fit(nn::Sequential& model, const Sensor& sensor, std::int64_t steps, const std::filesystem::path& folder) {
  train::FitOptions options{.steps = steps, .batch_size = 16, .optimizer = optim::Adam(model, 1e-2)};
  options.workers = 3;
  options.checkpoint = folder;
  options.resume = !folder.empty();
  options.progress = false;
  return train::fit(model, sensor, options);
}

bool same(const nn::Module& a, const nn::Module& b) {
  const auto x = a.state_dict(), y = b.state_dict();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!equal(x[i].second, y[i].second)) return false;
  return x.size() == y.size();
}

}  // namespace

int main() {
  const auto folder = std::filesystem::temp_directory_path() / ("sensor-" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  const Sensor sensor(true);

  // 50 batches are an epoch. The run stops in the middle of the second one.
  auto straight = make_model(1);
  const auto whole = fit(straight, sensor, 120, {});
  std::cout << whole.epochs.size() << " epochs, the last of " << whole.epochs.back().steps - whole.epochs[1].steps << " steps\n";
  auto stopped = make_model(1);  // seeds dropout again, too
  fit(stopped, sensor, 70, folder);
  std::cout << "stopped equals straight: " << yes(same(stopped, straight)) << '\n';
  auto resumed = make_model(7);  // other weights and random numbers, which the checkpoint replaces
  const auto rest = fit(resumed, sensor, 120, folder);
  std::cout << "resumed equals straight: " << yes(same(resumed, straight)) << ", after " << rest.steps << " steps\n";

  // The same in a loop: the rest of an epoch from the state behind its third batch.
  std::vector<std::vector<float>> all, later;
  std::string place;
  for (const auto& batch : data::batches(sensor, {.batch_size = 16, .seed = 5})) {
    if (all.size() == 2) place = batch.stream_state.value();
    all.push_back(batch[0].to_vector<float>());
  }
  for (const auto& batch : data::batches(sensor, {.batch_size = 16, .seed = 5, .workers = 2, .stream_state = place}))
    later.push_back(batch[0].to_vector<float>());
  std::cout << all.size() << " batches, then " << later.size()
            << ", the same: " << yes(std::equal(later.begin(), later.end(), all.begin() + 3)) << '\n';

  // The losses of the loop against plain sums: a model of one layer, by hand.
  nn::Linear line(3, 1, {.bias = false});
  optim::SGD sgd(line, 0.1);
  std::vector<double> w;
  for (float v : line.parameter("weight").value().to_vector<float>()) w.push_back(v);
  bool right = true;
  for (const auto& [x, y] : data::batches(sensor, {.batch_size = 16, .seed = 6})) {
    const double loss = sgd.step(mse_loss(line(x), y)).item();
    const auto a = x.to_vector<float>(), b = y.to_vector<float>();
    double wanted = 0;
    std::vector<double> slope(3, 0);
    for (std::size_t i = 0; i < b.size(); ++i) {
      double error = -b[i];
      for (std::size_t k = 0; k < 3; ++k) error += w[k] * a[3 * i + k];
      wanted += error * error / static_cast<double>(b.size());
      for (std::size_t k = 0; k < 3; ++k) slope[k] += 2 * error * a[3 * i + k] / static_cast<double>(b.size());
    }
    for (std::size_t k = 0; k < 3; ++k) w[k] -= 0.1 * slope[k];
    right = right && std::abs(loss - wanted) < 1e-5;
  }
  std::cout << "losses of 50 steps: " << (right ? "right" : "WRONG") << '\n';

  // Without a state the resumed run begins a new epoch, and says so.
  const Sensor forgetful(false);
  std::filesystem::remove_all(folder);
  auto other = make_model(1);
  fit(other, forgetful, 70, folder);
  const auto again = fit(other, forgetful, 120, folder);
  std::cout << "without states: " << again.steps << " steps\n";
  std::filesystem::remove_all(folder);
}
