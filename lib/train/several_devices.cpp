#include "lib/train/several_devices.h"

#include <cstddef>
#include <utility>

#include "clnet/ops.h"

namespace clnet::train {

SeveralDevices::SeveralDevices(nn::Module& model, optim::Optimizer optimizer, const std::vector<Device>& devices,
                               const std::vector<double>& shares, std::vector<metrics::Metric>& metrics)
    : optimizer_(std::move(optimizer)), metrics_(metrics), group_(model, devices, shares) {
  optimizer_.to(devices[0]);
  for (std::size_t i = 1; i < devices.size(); ++i) {
    auto& own = more_metrics_.emplace_back();
    for (const auto& metric : metrics) own.push_back(metric.fresh());
  }
}

double SeveralDevices::step(const std::vector<data::Batch>& parts, const StepOptions& options,
                            const std::function<Step(nn::Module& model, const data::Batch& batch)>& function) {
  const Tensor scale = optimizer_.loss_scale();
  const auto whole = group_.compute(optimizer_.parameters(), parts,
                                    [&](std::size_t part, nn::Module& model, const data::Batch& batch) -> parallel::PartStep {
                                      auto step = function(model, batch);
                                      auto& metrics = part == 0 ? metrics_ : more_metrics_[part - 1];
                                      auto more = metrics::update(metrics, step.outputs, step.labels);
                                      return {std::move(step), std::move(more)};
                                    },
                                    {.of_loss = scale.defined() ? scale.item<double>() : 1, .factor = options.loss_factor});
  if (options.accumulate)
    optimizer_.add_to_sums(whole.gradients);
  else
    optimizer_.apply_with_sums(whole.gradients);
  set_random_position(whole.random);
  for (auto& metric : metrics_) metric.detach();
  for (auto& own : more_metrics_)
    for (auto& metric : own) metric.detach();
  return whole.loss;
}

void SeveralDevices::collect() {
  const auto& first = group_.devices()[0];
  for (std::size_t k = 0; k < metrics_.size(); ++k) {
    auto sums = metrics_[k].state_dict();
    for (auto& own : more_metrics_) {
      const auto state = own[k].state_dict();
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].second = sums[i].second + copy_to(state[i].second, first);
      own[k].reset();
    }
    for (auto& [name, sum] : sums) sum = sum.detach();
    metrics_[k].load_state_dict(sums);
  }
}

}  // namespace clnet::train
