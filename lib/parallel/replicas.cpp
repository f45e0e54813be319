#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "clnet/autograd.h"
#include "clnet/error.h"
#include "clnet/ops.h"
#include "clnet/parallel.h"
#include "lib/graph/random_stream.h"
#include "lib/graph/slot_scope.h"
#include "lib/nn/reached.h"
#include "lib/nn/replica_slots.h"

namespace clnet::parallel {

namespace {

/// What one replica has computed: means over its samples.
struct Part {
  double loss = 0, count = 0;
  std::vector<std::vector<double>> gradients;  ///< empty for frozen parameters
};

/// The parameters that are not frozen.
std::vector<bool> moving_of(const nn::NamedParameters& parameters) {
  std::vector<bool> moving;
  for (const auto& [name, parameter] : parameters) moving.push_back(!parameter.frozen());
  return moving;
}

/// The loss, its count and the gradients of all moving parameters, built as graph.
std::vector<Tensor> graph_of(const train::Step& step, const nn::NamedParameters& parameters) {
  if (!step.loss.defined() || step.loss.numel() != 1) throw Error("Replicas: the step function gave no loss of one element");
  const auto leaves = nn::reached_leaves("Replicas", step.loss, parameters);
  std::vector<Tensor> reached;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (parameters[i].second.frozen()) continue;
    if (!leaves[i].defined())
      throw Error(fmt::format("Replicas: the loss does not depend on {}; freeze it, or leave it out of the optimizer",
                              parameters[i].first));
    reached.push_back(leaves[i]);
  }
  auto all = clnet::gradients(step.loss, reached);
  all.push_back(step.loss);
  if (step.count.defined()) all.push_back(step.count);
  return all;
}

}  // namespace

struct Replicas::Impl {
  nn::Module& model;
  const std::vector<Device> devices;
  std::vector<double> shares;
  std::deque<nn::ReplicaSlots> copies;  ///< of all devices but the first

  /// Computes one part.
  Part computed(std::size_t which, const data::Batch& batch, const nn::NamedParameters& parameters,
                const std::vector<bool>& moving, const train::StepFunction& function) {
    std::optional<SlotScope> slots;
    if (which > 0) slots.emplace(copies[which - 1].map());
    const DeviceScope here(devices[which]);
    const auto step = function(model, batch);
    const auto wanted = graph_of(step, parameters);
    eval(wanted);
    Part part;
    std::size_t next = 0;
    for (const bool moves : moving) {
      auto& values = part.gradients.emplace_back();
      if (moves) values = wanted[next++].to_vector<double>();
    }
    part.loss = step.loss.item<double>();
    part.count = step.count.defined() ? step.count.item<double>() : static_cast<double>(batch.rows.count);
    return part;
  }
};

Replicas::Replicas(nn::Module& model, std::vector<Device> devices, const ReplicasOptions& options)
    : impl_(new Impl{model, std::move(devices), options.shares, {}}) {
  const auto count = impl_->devices.size();
  if (count == 0) throw Error("Replicas: there are no devices");
  if (impl_->shares.empty()) impl_->shares.assign(count, 1);
  if (impl_->shares.size() != count) throw Error(fmt::format("Replicas: {} shares for {} devices", impl_->shares.size(), count));
  (void)data::rows_of(share(0), 0);
  model.to(impl_->devices[0]);
  for (std::size_t i = 1; i < count; ++i) impl_->copies.emplace_back(model, impl_->devices[i]);
}

Replicas::~Replicas() = default;

const std::vector<Device>& Replicas::devices() const { return impl_->devices; }
data::Share Replicas::share(std::size_t device) const { return {impl_->shares, device}; }

Replicas::Parts Replicas::batches(const data::Dataset& dataset, const data::BatchOptions& options) const {
  if (options.share) throw Error("Replicas: batches with a share of their own");
  Parts parts;
  parts.devices_ = impl_->devices;
  for (std::size_t i = 0; i < parts.devices_.size(); ++i) {
    auto own = options;
    own.share = share(i);
    parts.batches_.push_back(data::batches(dataset, own));
  }
  return parts;
}

bool Replicas::Parts::next() {
  now_.clear();
  const bool begins = at_.empty();
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const DeviceScope here(devices_[i]);
    if (begins)
      at_.push_back(batches_[i].begin());
    else if (at_[i] != batches_[i].end())
      ++at_[i];
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (at_[i] == batches_[i].end()) {
      now_.clear();
      return false;
    }
    now_.push_back(*at_[i]);
  }
  return true;
}

double Replicas::step(optim::Optimizer& optimizer, const std::vector<data::Batch>& parts, const train::StepFunction& function) {
  auto& impl = *impl_;
  const auto count = impl.devices.size();
  if (!function) throw Error("Replicas: step() without a step function");
  if (parts.size() != count) throw Error(fmt::format("Replicas: {} parts of a batch for {} devices", parts.size(), count));
  if (!optimizer.made_for(impl.model)) throw Error("Replicas: the optimizer is not the model's");
  if (optimizer.loss_scale().defined()) throw Error("Replicas: an optimizer with a loss scale steps on one device only");
  std::int64_t next = 0;
  for (const auto& part : parts) {
    if (part.rows.first != next || part.rows.batch != parts[0].rows.batch)
      throw Error("Replicas: the parts are not those of one batch");
    next += part.rows.count;
  }
  if (next == 0 || next != parts[0].rows.batch) throw Error("Replicas: the parts are not those of one batch");

  for (auto& copy : impl.copies) copy.take_parameters();
  const auto parameters = optimizer.parameters();
  const auto moving = moving_of(parameters);
  const auto start = random_position();
  std::optional<RandomPosition> end;
  std::vector<Part> computed;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& rows = parts[i].rows;
    if (rows.count == 0) continue;
    const RandomStream stream(start, {rows.first, rows.count, i});
    computed.push_back(impl.computed(i, parts[i], parameters, moving, function));
    if (end && end->offset != stream.position().offset)
      throw Error("Replicas: the step function draws other random tensors for each part");
    end = stream.position();
  }

  double all = 0, loss = 0;
  for (const auto& part : computed) all += part.count;
  const auto weight = [all](const Part& part) { return all > 0 ? part.count / all : 0; };
  for (const auto& part : computed) loss += part.loss * weight(part);
  std::vector<Tensor> sums(parameters.size());
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    if (!moving[k]) continue;
    std::vector<double> sum(computed[0].gradients[k].size());
    for (const auto& part : computed)
      for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += part.gradients[k][j] * weight(part);
    const std::vector<float> narrow(sum.begin(), sum.end());
    sums[k] = Tensor::from(narrow, parameters[k].second.shape());
  }
  const DeviceScope first(impl.devices[0]);
  optimizer.apply(sums);
  set_random_position(*end);
  return loss;
}

}  // namespace clnet::parallel
