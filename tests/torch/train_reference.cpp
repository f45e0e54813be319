// train_reference FOLDER: trains every network there with every optimizer as PyTorch did: the first step's gradients, the loss of
// each step, the final weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "tests/torch/cases.h"
#include "tests/torch/network.h"

using namespace clnet;
using namespace clnet::torch;
namespace fs = std::filesystem;

namespace {

Tensor find(const Named& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) throw Failed("there is no tensor " + name);
  return found->second;
}

/// A row of a tensor whose first dimension counts the steps.
Tensor at_step(const Tensor& all, std::int64_t step) {
  std::vector<std::int64_t> extents;
  for (int d = 1; d < all.rank(); ++d) extents.push_back(all.size(d));
  return reshape(slice(all, 0, step, step + 1), extents);
}

/// The largest element's size.
double largest_of(const Tensor& x) {
  double result = 0;
  for (const float value : x.to_vector<float>()) result = std::max(result, std::abs(static_cast<double>(value)));
  return result;
}

struct Reference {
  fs::path folder;
  json description;
  Named init, gradients, batches;
  double largest_gradient = 0;              ///< of any parameter's elements, in size
  std::map<std::string, std::string> idle;  ///< biases without effect, by the running mean that holds them
  bool of_logarithms = false;
  double smoothing = 0;

  explicit Reference(const fs::path& where)
      : folder(where),
        init(load(where / "init.safetensors")),
        gradients(load(where / "grads_step0.safetensors")),
        batches(load(where / "batches.safetensors")) {
    std::ifstream in(where / "losses.json");
    if (!in) throw Failed("there is no losses.json to read");
    description = json::parse(in);
    for (const auto& [_, gradient] : gradients) largest_gradient = std::max(largest_gradient, largest_of(gradient));
  }

  std::unique_ptr<nn::Module> model() {
    const auto text = description.at("description").get<std::string>();
    static const std::regex known("; (cross-entropy|nll) mean( over B\\*T)?( label_smoothing ([.0-9]+))?$");
    std::smatch match;
    if (!std::regex_search(text, match, known)) throw Failed("another loss than the mean cross-entropy: " + text);
    of_logarithms = match[1] == "nll";
    if (match[4].matched) smoothing = std::stod(match[4]);
    auto result = network(text, init);
    result->load_state_dict({init.begin(), init.end()});
    idle = biases_without_effect(text);
    std::erase_if(idle, [&](const auto& entry) { return !gradients.contains(entry.second); });
    for (const auto& [_, bias] : idle)
      if (const double own = largest_of(find(gradients, bias)); !(own <= 1e-12 * largest_gradient))
        throw Failed(fmt::format("gradient of {} is {:.3g}, not the rounding of f64", bias, own));
    return result;
  }

  /// A bias on which the loss does not depend: its gradient is rounding, which optimizers that divide by its size make steps of.
  bool is_without_effect(const std::string& name) const {
    return std::any_of(idle.begin(), idle.end(), [&](const auto& entry) { return entry.second == name; });
  }

  Tensor of(const Tensor& y, const Tensor& targets) const {
    return of_logarithms ? nll_loss(y, targets) : cross_entropy(y, targets, {.label_smoothing = smoothing});
  }

  /// Images as bytes with labels, or tokens with targets: mean cross-entropy of a batch.
  Tensor loss(nn::Module& model, std::int64_t step) const {
    if (batches.contains("images")) {
      const auto images = at_step(find(batches, "images"), step);
      const auto x = reshape(cast(images, Dtype::f32) / 255.0, {images.size(0), 1, images.size(-2), images.size(-1)});
      return of(model(x), at_step(find(batches, "labels"), step));
    }
    const auto targets = at_step(find(batches, "targets"), step);
    const auto logits = model(at_step(find(batches, "tokens"), step));
    return of(reshape(logits, {targets.numel(), logits.size(-1)}), reshape(targets, {targets.numel()}));
  }
};

double distance(const std::vector<float>& got, const std::vector<float>& want, bool largest) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double d = std::abs(static_cast<double>(got[i]) - want[i]), w = std::abs(static_cast<double>(want[i]));
    difference = largest ? std::max(difference, std::isnan(d) ? INFINITY : d) : difference + d * d;
    size = largest ? std::max(size, w) : size + w * w;
  }
  if (size == 0) return difference == 0 ? 0 : INFINITY;
  return largest ? difference / size : std::sqrt(difference / size);
}

/// The largest difference (or, otherwise, the difference's norm) relative to what is wanted.
void require_near(const std::string& what, const Tensor& got, const Tensor& want, bool largest, double tolerance) {
  if (got.shape() != want.shape())
    throw Failed(fmt::format("{} has shape {}, not {}", what, to_string(got.shape()), to_string(want.shape())));
  const double off = distance(got.to_vector<float>(), want.to_vector<float>(), largest);
  if (!(off <= tolerance)) throw Failed(fmt::format("{} is off by {:.3g}, relative; {:.3g} is allowed", what, off, tolerance));
}

void first_gradients(Reference& reference) {
  const auto model = reference.model();
  std::vector<Tensor> parameters;
  for (const auto& [name, parameter] : model->parameters()) parameters.push_back(parameter);
  const auto computed = gradients(reference.loss(*model, 0), parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto name = model->parameters()[i].first;
    if (reference.is_without_effect(name)) {
      double all = 0;
      for (const auto& gradient : computed) all = std::max(all, largest_of(gradient));
      if (const double own = largest_of(computed[i]); !(own <= 2e-5 * all))
        throw Failed(fmt::format("gradient of {} is {:.3g}, not 0", name, own));
      continue;
    }
    require_near("gradient of " + name, computed[i], find(reference.gradients, name), true, 2e-5);
  }
}

/// How much of a bias without effect a running mean holds, and how far the bias went.
class Held {
 public:
  explicit Held(nn::Parameter bias) : bias_(std::move(bias)), first_(bias_.value().to_vector<double>()) {
    held_.resize(first_.size());
    far_.resize(first_.size());
  }
  /// Before the normalisation sees a batch.
  void look() {
    const auto now = bias_.value().to_vector<double>();
    for (std::size_t i = 0; i < now.size(); ++i) {
      held_[i] += share * (now[i] - held_[i]);
      far_[i] = std::max(far_[i], std::abs(now[i] - first_[i]));
    }
    left_ *= 1 - share;
  }
  /// Without what they hold the means are the same. Of the reference's bias only the ends are known: where it moved at all, it
  /// may have been as far off in between as this one was.
  void require_same(const std::string& name, const Tensor& mean, const Tensor& wanted, const Tensor& last_bias) const {
    const auto got = mean.to_vector<double>(), want = wanted.to_vector<double>(), last = last_bias.to_vector<double>();
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double moved = std::abs(last[i] - first_[i]);
      const double unknown = moved <= 1e-6 * std::abs(first_[i]) ? moved : std::max(moved, far_[i]);
      const double off = std::abs((got[i] - held_[i]) - (want[i] - (1 - left_) * first_[i])) - (1 - left_) * unknown;
      difference += std::isnan(off) ? INFINITY : std::pow(std::max(off, 0.0), 2);
      size += want[i] * want[i];
    }
    if (const double off = std::sqrt(difference / size); !(off <= 1e-3))
      throw Failed(
          fmt::format("final {} is off by {:.3g}, relative, without the bias in front of it; 0.001 is allowed", name, off));
  }

 private:
  static constexpr double share = 0.1;  ///< PyTorch's momentum

  nn::Parameter bias_;
  std::vector<double> first_, held_, far_;
  double left_ = 1;  ///< of the first running mean
};

void train_with(Reference& reference, const std::string& name, const json& run) {
  const std::vector<double> expected = run.at("loss_float64");
  const double first_five = run.at("suggested_tol_first5"), all = run.at("suggested_tol_all");
  const auto model = reference.model();
  const auto steps = optimizer(run.at("optimizer").get<std::string>(), *model);
  std::map<std::string, Held> held;
  for (const auto& [mean, bias] : reference.idle)
    for (const auto& [key, parameter] : model->parameters())
      if (key == bias) held.emplace(mean, Held{parameter});
  for (std::size_t step = 0; step < expected.size(); ++step) {
    const auto make = [&] {
      for (auto& [_, its] : held) its.look();
      return reference.loss(*model, static_cast<std::int64_t>(step));
    };
    const double loss = steps(make).item<double>();
    const double allowed = step < 5 ? first_five : all;
    if (!(std::abs(loss - expected[step]) <= allowed))
      throw Failed(
          fmt::format("the loss of step {} is {}, not {}; a difference of {} is allowed", step, loss, expected[step], allowed));
  }
  const auto final_weights = load(reference.folder / ("final_" + name + ".safetensors"));
  for (const auto& [key, tensor] : model->state_dict()) {
    if (!is_floating(tensor.dtype()) || reference.is_without_effect(key)) continue;
    const auto wanted = find(final_weights, key);
    if (const auto holds = held.find(key); holds != held.end())
      holds->second.require_same(key, tensor, wanted, find(final_weights, reference.idle.at(key)));
    else
      require_near("final " + key, tensor, wanted, false, 1e-3);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return torch::main(argc, argv, [](const fs::path& folder) {
    std::set<fs::path> networks;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_directory()) networks.insert(entry.path());
    Count count;
    for (const auto& path : networks) {
      const auto name = path.filename().string();
      std::optional<Reference> reference;
      count.run(name + ": first gradients", [&] {
        reference.emplace(path);
        first_gradients(*reference);
      });
      if (!reference) continue;
      for (const auto& [optimizer, run] : reference->description.at("runs").items())
        count.run(name + ": " + optimizer, [&, &run = run, &optimizer = optimizer] { train_with(*reference, optimizer, run); });
    }
    return count.finish();
  });
}
