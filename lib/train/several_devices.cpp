#include "lib/train/several_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/base/log.h"
#include "lib/dist/find_collective.h"

namespace clnet::train {

namespace {

/// Lanes of two ranks may differ in the order in which they come to theirs.
void require_no_collective(const Step& step) {
  const auto found = dist::find_collective(std::vector{step.loss, step.count});
  if (!found.empty())
    throw Error(fmt::format("train::fit: {}, as of batch norm over ranks, cannot be in the loss where a rank has several devices",
                            found));
}

}  // namespace

SeveralDevices::SeveralDevices(nn::Module& model, optim::Optimizer optimizer, std::vector<metrics::Metric>& metrics,
                               Options options)
    : model_(model),
      optimizer_(std::move(optimizer)),
      metrics_(metrics),
      undo_(options.undo && !options.job.several()),
      sync_batch_norm_(options.sync_batch_norm),
      job_(std::move(options.job)),
      measured_steps_(options.measured_steps) {
  group_.emplace(model_, options.devices, job_.several() ? std::vector<double>{} : std::move(options.shares), sync_batch_norm_);
  if (job_.several()) group_->set_place(job_.shares(), job_.first_device());
  if (options.measured) measured_shares_ = group_->shares();
  optimizer_.to(first());
  for (std::size_t i = 1; i < count(); ++i) {
    auto& own = more_metrics_.emplace_back();
    for (const auto& metric : metrics) own.push_back(metric.fresh());
  }
}

bool SeveralDevices::Parts::next() {
  if (!scattered_) return read_->next();
  now_ = scattered_->next_parts();
  return !now_.empty();
}

SeveralDevices::Parts SeveralDevices::batches(const data::Dataset& dataset, const data::BatchOptions& options) const {
  Parts parts;
  if (!dynamic_cast<const Scattered*>(&dataset)) {
    parts.read_ = group_->batches(dataset, options);
    return parts;
  }
  auto own = options;
  own.share = group_->share(0);
  parts.scattered_.emplace(dataset, own, Receivers{job_.devices(), group_->devices()});
  return parts;
}

SeveralDevices::Stepped SeveralDevices::step(const std::vector<data::Batch>& parts, const StepOptions& options,
                                             const std::function<Step(nn::Module& model, const data::Batch& batch)>& function) {
  shares_changed_ = false;
  std::optional<Before> kept;
  if (undo_) kept = before();
  const auto start = random_position();
  parallel::WholeBatch whole;
  Stepped stepped;
  try {
    const Tensor scale = optimizer_.loss_scale();
    whole =
        group_->compute(optimizer_.parameters(), parts,
                        [&](std::size_t part, nn::Module& model, const data::Batch& batch) -> parallel::PartStep {
                          auto step = function(model, batch);
                          if (job_.several()) require_no_collective(step);
                          auto more = metrics::update(metrics_of(part), step.outputs, step.labels);
                          return {std::move(step), std::move(more)};
                        },
                        {.of_loss = scale.defined() ? scale.item<double>() : 1, .factor = options.loss_factor, .may_miss = true});
    if (job_.several()) {
      const bool has_samples = std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.rows.count > 0; });
      stepped.interrupted = weigh(whole, has_samples, start, options.interrupted);
    }
    parallel::on_behalf_of(0, [&] {
      if (options.accumulate)
        optimizer_.add_to_sums(whole.gradients);
      else
        optimizer_.apply_with_sums(whole.gradients);
    });
  } catch (const parallel::DeviceFailed&) {
    if (kept) undo(*kept);
    throw;
  }
  set_random_position(whole.random);
  for (std::size_t i = 0; i < count(); ++i)
    for (auto& metric : metrics_of(i)) metric.detach();
  measure(parts, whole.seconds);
  stepped.loss = whole.loss;
  return stepped;
}

bool SeveralDevices::weigh(parallel::WholeBatch& own, bool has_samples, const RandomPosition& start, bool interrupted) const {
  const auto parameters = optimizer_.parameters();
  const double drawn = static_cast<double>(own.random.offset - start.offset);
  // And by parameter, how many ranks' losses reach it.
  std::vector<double> sums{own.count > 0 ? own.loss * own.count : 0,
                           own.count,
                           has_samples ? 1.0 : 0.0,
                           drawn,
                           drawn * drawn,
                           interrupted ? 1.0 : 0.0};
  const auto head = sums.size();
  for (const auto& gradient : own.gradients) sums.push_back(gradient.defined() ? 1 : 0);
  job_.add_up(sums);
  const double count = sums[1], ranks = sums[2];
  // All ranks see the same, and throw the same.
  if (sums[3] * sums[3] != ranks * sums[4]) throw Error("train::fit: the step function draws other random tensors on each rank");
  const double part = count > 0 ? own.count / count : 0;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const double reached = sums[head + k];
    if (reached == 0) continue;
    if (reached != ranks) throw Error(fmt::format("train::fit: the loss depends on {} on some ranks only", parameters[k].first));
    const auto shape = parameters[k].second.shape();
    auto values = has_samples ? own.gradients[k].to_vector<float>() : std::vector<float>(static_cast<std::size_t>(shape.numel()));
    for (float& value : values) value = part > 0 ? static_cast<float>(value * part) : 0;
    own.gradients[k] = Tensor::from(values, shape);
  }
  own.loss = count > 0 ? sums[0] / count : std::numeric_limits<double>::quiet_NaN();
  own.random.offset = start.offset + static_cast<std::uint64_t>(ranks > 0 ? sums[3] / ranks : 0);
  return sums[5] > 0;
}

void SeveralDevices::measure(const std::vector<data::Batch>& parts, const std::vector<double>& seconds) {
  if (measured_steps_ == 0 || !measured_shares_.empty()) return;
  auto& each = row_seconds_.emplace_back();
  for (std::size_t i = 0; i < count(); ++i)
    each.push_back(seconds[i] / static_cast<double>(std::max<std::int64_t>(parts[i].rows.count, 1)));
  if (std::cmp_less(row_seconds_.size(), measured_steps_)) return;
  // The first half made plans and programs. Of the others the median counts: a device may be disturbed.
  std::vector<double> speeds;
  double all = 0;
  for (std::size_t i = 0; i < count(); ++i) {
    std::vector<double> times;
    for (std::size_t step = row_seconds_.size() / 2; step < row_seconds_.size(); ++step)
      if (row_seconds_[step][i] > 0) times.push_back(row_seconds_[step][i]);
    // A device that had no samples of the batches has not shown its speed.
    if (times.empty()) times.push_back(1);
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    all += speeds.emplace_back(1 / times[times.size() / 2]);
  }
  // In percent, so that the line that says them gives the same ones again.
  for (const double speed : speeds) measured_shares_.push_back(std::max(1.0, std::round(100 * speed / all)));
  row_seconds_.clear();
  group_->set_shares(measured_shares_);
  shares_changed_ = true;
  logging::print(logging::Level::warning, "train::fit: the shares of the devices are {} from now on, as {} steps took them",
                 fmt::join(measured_shares_, ","), measured_steps_);
}

SeveralDevices::Before SeveralDevices::before() const {
  Before kept{group_->buffers(), {}};
  for (std::size_t i = 0; i < group_->devices().size(); ++i)
    for (const auto& metric : i == 0 ? metrics_ : more_metrics_[i - 1]) kept.metrics.push_back(metric.state_dict());
  return kept;
}

void SeveralDevices::undo(const Before& before) {
  group_->set_buffers(before.buffers);
  std::size_t next = 0;
  for (std::size_t i = 0; i < count(); ++i)
    for (auto& metric : metrics_of(i)) {
      metric.reset();  // what waits is not computed
      metric.load_state_dict(before.metrics[next++]);
    }
}

bool SeveralDevices::take_metrics(std::size_t failed) {
  auto& heirs = failed == 0 ? more_metrics_[0] : metrics_;
  const auto& heir = group_->devices()[failed == 0 ? 1 : 0];
  bool all = true;
  for (std::size_t k = 0; k < metrics_.size(); ++k) {
    auto sums = heirs[k].state_dict();
    try {
      const auto lost = metrics_of(failed)[k].state_dict();
      std::vector<Tensor> together;
      for (std::size_t i = 0; i < sums.size(); ++i) together.push_back(sums[i].second + copy_to(lost[i].second, heir));
      eval(together);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].second = together[i].detach();
    } catch (const DeviceError&) {
      sums = heirs[k].state_dict();
      all = false;
    }
    metrics_[k].load_state_dict(sums);
  }
  more_metrics_.erase(more_metrics_.begin() + static_cast<std::ptrdiff_t>(failed == 0 ? 0 : failed - 1));
  return all;
}

void SeveralDevices::leave_out(const parallel::DeviceFailed& failed) {
  auto devices = group_->devices();
  auto shares = group_->shares();
  const auto at = static_cast<std::ptrdiff_t>(failed.device);
  const auto failed_name = name(failed.device);
  if (failed.device == 0) {
    try {
      optimizer_.to(devices[1]);
      group_->leave_first();
    } catch (const DeviceError&) {
      throw failed;
    }
  }
  const bool has_metrics = take_metrics(failed.device);
  devices.erase(devices.begin() + at);
  shares.erase(shares.begin() + at);
  if (std::all_of(shares.begin(), shares.end(), [](double share) { return share == 0; })) shares.assign(shares.size(), 1);
  // Begun anew: the others' places have changed.
  row_seconds_.clear();
  if (!measured_shares_.empty()) measured_shares_ = shares;
  group_.emplace(model_, devices, shares, sync_batch_norm_);
  const std::string_view what = failed.what();
  logging::print(logging::Level::warning, "train::fit: the device {} failed and is left out; its step is made anew by {}{}: {}",
                 failed_name, devices.size() == 1 ? "the other one" : fmt::format("the {} others", devices.size()),
                 has_metrics ? "" : ", and the epoch's metrics lack its samples", what.substr(0, what.find('\n')));
}

void SeveralDevices::collect() {
  for (std::size_t k = 0; k < metrics_.size(); ++k) {
    auto sums = metrics_[k].state_dict();
    for (auto& own : more_metrics_) {
      const auto state = own[k].state_dict();
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].second = sums[i].second + copy_to(state[i].second, first());
      own[k].reset();
    }
    for (auto& [name, sum] : sums) sum = sum.detach();
    metrics_[k].load_state_dict(sums);
  }
}

}  // namespace clnet::train
