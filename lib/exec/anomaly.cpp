#include "lib/exec/anomaly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "clnet/debug.h"
#include "clnet/error.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/evaluate.h"
#include "lib/exec/options/options.h"
#include "lib/exec/partitions.h"
#include "lib/graph/scope.h"

namespace clnet {

namespace exec {

namespace {

/// This thread's options with another search: reading values evaluates them, which must not look again.
Options looking_for(const std::optional<AnomalyOptions>& anomaly) {
  auto options = Options::now();
  options.anomaly = anomaly;
  return options;
}

struct Anomaly {
  std::size_t first = 0, count = 0;
  double value = 0;
};

std::optional<Anomaly> anomaly_in(const Tensor& tensor, const AnomalyOptions& options) {
  if (!is_floating(tensor.dtype())) return std::nullopt;
  const auto values = tensor.to_vector<double>();
  const auto is_anomaly = [&](double value) { return std::isnan(value) || (options.infinities && std::isinf(value)); };
  const auto first = std::find_if(values.begin(), values.end(), is_anomaly);
  if (first == values.end()) return std::nullopt;
  return Anomaly{static_cast<std::size_t>(first - values.begin()),
                 static_cast<std::size_t>(std::count_if(values.begin(), values.end(), is_anomaly)), *first};
}

std::string text(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

std::string place_text(const Node& node) {
  const auto scope = to_string(node.scope);
  return scope.empty() ? "" : ", in " + scope;
}

void check(const Node& node, const Tensor& output, std::size_t number, const AnomalyOptions& options) {
  const auto found = anomaly_in(output, options);
  if (!found) return;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (const auto given = anomaly_in(node.inputs[i], options))
      throw Error(fmt::format("detect_anomaly: {} was given {} of {} elements as {}{} in input {} ({})", node.op->name(),
                              given->count, node.inputs[i].numel(), text(given->value), place_text(node), i,
                              to_string(node.inputs[i].spec())));
  std::string inputs;
  for (const auto& input : node.inputs) inputs += (inputs.empty() ? "" : ", ") + to_string(input.spec());
  throw Error(fmt::format(
      "detect_anomaly: {} made the first {}{}: {} of {} elements of output {}, the first at {}; its inputs are {}",
      node.op->name(), text(found->value), place_text(node), found->count, output.numel(), number, found->first, inputs));
}

}  // namespace

void look_for_anomaly(std::span<const Tensor> tensors, const std::shared_ptr<ocl::Context>& wanted) {
  const auto options = Options::now().anomaly;
  if (!options) return;
  const OptionsScope not_looking(looking_for(std::nullopt));
  // Copies have no effects: what throws here has changed nothing, and the evaluation itself does each of them once.
  forget_speculative();
  Walk walk;
  const auto work = collect(tensors, walk);
  const auto devices = Partitions::devices(work, wanted, tensors);
  const auto copies = private_copy(work);
  for (std::size_t k = 0; k < copies.nodes.size(); ++k) {
    const auto& node = copies.nodes[k];
    Tensors outputs;
    for (std::size_t i = 0; i < node->outputs.size(); ++i) outputs.push_back(tensor_of(node, static_cast<int>(i)));
    const Tensors inputs = node->inputs;  // held: check() reads them
    evaluate(outputs, devices[k]);
    if (node->is_view()) continue;
    for (std::size_t i = 0; i < outputs.size(); ++i) check(*node, outputs[i], i, *options);
  }
}

}  // namespace exec

DetectAnomaly::DetectAnomaly(const AnomalyOptions& options)
    : scope_(std::make_unique<exec::OptionsScope>(exec::looking_for(options))) {}
DetectAnomaly::~DetectAnomaly() = default;

}  // namespace clnet
