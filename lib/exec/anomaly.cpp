#include "lib/exec/anomaly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "clnet/debug.h"
#include "clnet/error.h"
#include "lib/exec/collect/work.h"
#include "lib/graph/scope.h"

namespace clnet {

namespace exec {

namespace {

thread_local const AnomalyOptions* looking = nullptr;

/// Reading values evaluates them, which must not look again.
struct NotLooking {
  const AnomalyOptions* before = std::exchange(looking, nullptr);
  NotLooking() = default;
  ~NotLooking() { looking = before; }
  NotLooking(const NotLooking&) = delete;
  NotLooking& operator=(const NotLooking&) = delete;
};

struct Anomaly {
  std::size_t first = 0, count = 0;
  float value = 0;
};

std::optional<Anomaly> anomaly_in(const Tensor& tensor, const AnomalyOptions& options) {
  if (!is_floating(tensor.dtype())) return std::nullopt;
  const auto values = tensor.to_vector<float>();
  const auto is_anomaly = [&](float value) { return std::isnan(value) || (options.infinities && std::isinf(value)); };
  const auto first = std::find_if(values.begin(), values.end(), is_anomaly);
  if (first == values.end()) return std::nullopt;
  return Anomaly{static_cast<std::size_t>(first - values.begin()),
                 static_cast<std::size_t>(std::count_if(values.begin(), values.end(), is_anomaly)), *first};
}

std::string text(float value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

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

bool is_looking_for_anomaly() { return looking != nullptr; }

void look_for_anomaly(std::span<const Tensor> tensors, const std::function<void(std::span<const Tensor>)>& evaluate) {
  if (!looking) return;
  const auto& options = *looking;
  const NotLooking not_looking;
  // Copies have no effects: what throws here has changed nothing, and the evaluation itself does each of them once.
  const auto copies = [&] {
    Walk walk;
    return private_copy(collect(tensors, walk));
  }();
  for (const auto& node : copies.nodes) {
    Tensors outputs;
    for (std::size_t i = 0; i < node->outputs.size(); ++i) outputs.push_back(tensor_of(node, static_cast<int>(i)));
    const Tensors inputs = node->inputs;  // held: check() reads them
    evaluate(outputs);
    if (node->is_view()) continue;
    for (std::size_t i = 0; i < outputs.size(); ++i) check(*node, outputs[i], i, options);
  }
}

}  // namespace exec

DetectAnomaly::DetectAnomaly(const AnomalyOptions& options) : before_(exec::looking), options_(options) {
  exec::looking = &options_;
}
DetectAnomaly::~DetectAnomaly() { exec::looking = before_; }

}  // namespace clnet
