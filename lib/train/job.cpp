#include "lib/train/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "clnet/ops.h"
#include "clnet/train.h"
#include "lib/base/hash.h"
#include "lib/dist/exchange.h"

namespace clnet::train {

namespace {

/// The bytes of a value, in the host's memory.
std::vector<std::byte> bytes_of(const Tensor& value) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(value.spec().bytes()));
  value.to_bytes(bytes.data(), bytes.size());
  return bytes;
}

/// Names, shapes and values of parameters and buffers.
std::string fingerprint(const nn::Module& model) {
  Hash hash;
  for (const auto& [name, value] : model.state_dict()) {
    const auto bytes = bytes_of(value);
    hash.add(name).add(to_string(value.spec())).add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return hash.hex();
}

/// The sums and counts of all ranks' samples.
std::vector<std::pair<std::string, Tensor>> state_of_all(const metrics::Metric& metric, const dist::Group& group) {
  auto state = metric.state_dict();
  for (auto& [name, value] : state) value = dist::all_reduce(value, group).detach();
  return state;
}

/// Replaces the sums of accumulate() by what the function makes of all of them. All ranks call it: their optimizer may be
/// sharded.
template <class Function>
void change_sums(optim::Optimizer& optimizer, const Function& function) {
  auto state = optimizer.state_dict();
  std::vector<Tensor> sums;
  const auto is_sum = [](const auto& named) { return named.first.ends_with(".grad"); };
  for (const auto& named : state)
    if (is_sum(named)) sums.push_back(named.second);
  if (sums.empty()) return;
  sums = function(sums);
  eval(sums);
  auto next = sums.begin();
  for (auto& named : state)
    if (is_sum(named)) named.second = (next++)->detach();
  optimizer.load_state_dict(state);
}

std::vector<Tensor> zeros_of(std::vector<Tensor> sums) {
  for (auto& sum : sums) sum = zeros_like(sum);
  return sums;
}

}  // namespace

data::Share share_of(const dist::Group& group) {
  return {std::vector<double>(static_cast<std::size_t>(group.size()), 1), static_cast<std::size_t>(group.rank())};
}

void add_gradients(optim::Optimizer& optimizer, const dist::Group& group) {
  optimizer.set_gradient_function(
      [job = Job(group)](std::vector<Tensor>& gradients, std::vector<Tensor>&) { job.sum_up(gradients, Dtype::f32, {}); });
}

Job::Job(const std::optional<dist::Group>& group, std::vector<double> shares) : shares_(std::move(shares)) {
  if (!group || group->size() == 1) return;
  group_ = group;
  devices_.assign(static_cast<std::size_t>(group->size()), 1);
  if (shares_.empty()) shares_.assign(devices_.size(), 1);
}

void Job::share_out(std::size_t devices, const std::vector<double>& shares) {
  if (!group_) return;
  std::vector<std::int64_t> counts(devices_.size());
  dist::all_gather(std::vector{static_cast<std::int64_t>(devices)}, counts, *group_);
  devices_.assign(counts.begin(), counts.end());
  const auto all = first_device_of(group_->size());
  if (!shares.empty() && shares.size() != all)
    throw Error(fmt::format("train::fit: {} shares for {} devices of {} ranks", shares.size(), all, group_->size()));
  shares_ = shares.empty() ? std::vector<double>(all, 1) : shares;
  (void)data::rows_of({shares_, 0}, 0);
}

bool Job::by_devices() const {
  return std::any_of(devices_.begin(), devices_.end(), [](auto count) { return count > 1; });
}

std::size_t Job::first_device_of(int rank) const {
  return std::accumulate(devices_.begin(), devices_.begin() + rank, std::size_t{0});
}

std::vector<double> Job::evaluation_shares() const {
  std::vector<double> shares;
  for (int rank = 0; rank < (group_ ? group_->size() : 0); ++rank) shares.push_back(shares_[first_device_of(rank)]);
  const bool none = std::all_of(shares.begin(), shares.end(), [](double share) { return share == 0; });
  return none ? std::vector<double>{} : shares;
}

void Job::abort(std::string_view reason) const {
  if (group_) group_->abort(reason);
}

std::optional<data::Share> Job::share() const {
  return group_ ? std::optional(data::Share{shares_, first_device()}) : std::nullopt;
}

void Job::require_equal(std::vector<dist::Item> items, const nn::Module& model) const {
  if (!group_) return;
  items.push_back({"parameters and buffers (the same seed gives the same)", fingerprint(model)});
  dist::agree(items, *group_);
}

void Job::require_same(std::string name, std::string value) const {
  if (group_) dist::agree({{std::move(name), std::move(value)}}, *group_);
}

void Job::add_up(std::span<double> numbers) const {
  if (group_) dist::all_reduce(numbers, *group_);
}

bool Job::any(bool here) const {
  double found = here ? 1 : 0;
  add_up({&found, 1});
  return found > 0;
}

void Job::share_buffers(nn::Module& model) const {
  if (!group_) return;
  for (auto [name, buffer] : model.buffers()) {
    const auto value = buffer.value();
    auto bytes = bytes_of(value);
    dist::broadcast({Dtype::u8, bytes.data(), bytes.size()}, 0, *group_);
    if (group_->rank() != 0) buffer.set(Tensor::from_bytes(bytes.data(), bytes.size(), value.spec()));
  }
}

std::vector<metrics::Result> Job::results(std::span<const metrics::Metric> metrics) const {
  std::vector<metrics::Result> found;
  for (const auto& metric : metrics) {
    if (!group_) {
      found.push_back(metric.result());
      continue;
    }
    auto whole = metric.fresh();
    whole.load_state_dict(state_of_all(metric, *group_));
    found.push_back(whole.result());
  }
  return found;
}

void Job::collect(std::span<metrics::Metric> metrics) const {
  if (!group_) return;
  for (auto& metric : metrics) {
    const auto state = state_of_all(metric, *group_);
    if (group_->rank() == 0)
      metric.load_state_dict(state);
    else
      metric.reset();
  }
}

void Job::collect(optim::Optimizer& optimizer) const {
  if (!group_) return;
  change_sums(optimizer, [&](const std::vector<Tensor>& sums) {
    auto all = dist::all_reduce(sums, *group_);
    eval(all);  // on all ranks, also where they are not kept
    return group_->rank() == 0 ? all : zeros_of(all);
  });
}

void Job::begin_sums(optim::Optimizer& optimizer) const {
  if (!group_) return;
  change_sums(optimizer, [&](const std::vector<Tensor>& sums) { return writes() ? sums : zeros_of(sums); });
}

std::vector<Tensor> Job::sum_up(std::span<Tensor> gradients, Dtype exchanged, const std::vector<Tensor>& more) const {
  if (!group_) return more;
  const bool as_they_are = exchanged == Dtype::f32;
  std::vector<Tensor> sums;
  for (const auto& gradient : gradients)
    if (gradient.defined()) sums.push_back(as_they_are ? gradient : cast(gradient, exchanged));
  sums.insert(sums.end(), more.begin(), more.end());
  sums = dist::all_reduce_beside(sums, *group_);
  auto next = sums.begin();
  for (auto& gradient : gradients)
    if (gradient.defined()) gradient = as_they_are ? *next++ : cast(*next++, gradient.dtype());
  return {next, sums.end()};
}

void Job::sum_up_now(std::span<Tensor> gradients, Dtype exchanged) const {
  std::vector<Tensor> known;
  for (const auto& gradient : gradients)
    if (gradient.defined()) known.push_back(cast(gradient, Dtype::f32));
  eval(known);
  std::vector<std::vector<float>> arrays;
  for (const auto& gradient : known) arrays.push_back(gradient.to_vector<float>());
  if (group_) dist::sum_over_ranks(arrays, exchanged, *group_);
  auto next = arrays.begin();
  for (auto& gradient : gradients)
    if (gradient.defined()) gradient = Tensor::from(*next++, gradient.shape());
}

Tensor Job::weighed(const Tensor& mean, const Tensor& count, const data::Rows& rows) const {
  if (!group_) return mean;
  if (!count.defined()) return mean * (static_cast<double>(rows.count) / static_cast<double>(rows.batch));
  const auto own = stop_gradient(cast(count, Dtype::f32));
  // A mean over nothing has no part in it.
  const auto known = where(greater(own, 0.0), mean, zeros_like(mean));
  return known * (own / maximum(dist::all_reduce(own, *group_), 1.0));
}

OwnRows::OwnRows(const Job& job, const data::Rows& rows) {
  if (!job.several()) return;
  stream_.emplace(random_position(), RandomStream::Part{rows.first, rows.count, static_cast<std::uint64_t>(job.rank())});
}

OwnRows::~OwnRows() {
  if (!stream_) return;
  const auto end = stream_->position();
  stream_.reset();
  set_random_position(end);
}

}  // namespace clnet::train
