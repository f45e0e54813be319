// train_reference FOLDER: trains every network there with every optimizer as PyTorch did: the first step's gradients, the loss of
// each step, the final weights.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
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

struct Reference {
  fs::path folder;
  json description;
  Named init, gradients, batches;

  explicit Reference(const fs::path& where)
      : folder(where),
        init(load(where / "init.safetensors")),
        gradients(load(where / "grads_step0.safetensors")),
        batches(load(where / "batches.safetensors")) {
    std::ifstream in(where / "losses.json");
    if (!in) throw Failed("there is no losses.json to read");
    description = json::parse(in);
  }

  std::unique_ptr<nn::Module> model() const {
    const auto text = description.at("description").get<std::string>();
    if (text.find("; cross-entropy mean") == std::string::npos) throw Failed("another loss than the mean cross-entropy: " + text);
    auto result = network(text);
    result->load_state({init.begin(), init.end()});
    return result;
  }

  /// Images as bytes with labels, or tokens with targets: mean cross-entropy of a batch.
  Tensor loss(nn::Module& model, std::int64_t step) const {
    if (batches.contains("images")) {
      const auto images = at_step(find(batches, "images"), step);
      const auto x = reshape(cast(images, Dtype::f32) / 255.0, {images.size(0), 1, images.size(-2), images.size(-1)});
      return cross_entropy(model(x), at_step(find(batches, "labels"), step));
    }
    const auto targets = at_step(find(batches, "targets"), step);
    const auto logits = model(at_step(find(batches, "tokens"), step));
    return cross_entropy(reshape(logits, {targets.numel(), logits.size(-1)}), reshape(targets, {targets.numel()}));
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

void first_gradients(const Reference& reference) {
  const auto model = reference.model();
  std::vector<Tensor> parameters;
  for (const auto& [name, parameter] : model->parameters()) parameters.push_back(parameter);
  const auto computed = gradients(reference.loss(*model, 0), parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto name = model->parameters()[i].first;
    require_near("gradient of " + name, computed[i], find(reference.gradients, name), true, 2e-5);
  }
}

void train_with(const Reference& reference, const std::string& name, const json& run) {
  const std::vector<double> expected = run.at("loss_float64");
  const double first_five = run.at("suggested_tol_first5"), all = run.at("suggested_tol_all");
  const auto model = reference.model();
  const auto steps = optimizer(run.at("optimizer").get<std::string>(), *model);
  for (std::size_t step = 0; step < expected.size(); ++step) {
    const double loss = steps([&] { return reference.loss(*model, static_cast<std::int64_t>(step)); }).item<double>();
    const double allowed = step < 5 ? first_five : all;
    if (!(std::abs(loss - expected[step]) <= allowed))
      throw Failed(
          fmt::format("the loss of step {} is {}, not {}; a difference of {} is allowed", step, loss, expected[step], allowed));
  }
  const auto final_weights = load(reference.folder / ("final_" + name + ".safetensors"));
  for (const auto& [key, tensor] : model->state())
    if (is_floating(tensor.dtype())) require_near("final " + key, tensor, find(final_weights, key), false, 1e-3);
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
