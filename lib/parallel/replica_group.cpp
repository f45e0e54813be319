#include "lib/parallel/replica_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <limits>
#include <span>
#include <utility>

#include "clnet/autograd.h"
#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/slot_scope.h"
#include "lib/nn/reached.h"
#include "lib/nn/shared_statistics.h"
#include "lib/parallel/gradient_sums.h"
#include "lib/parallel/meeting.h"
#include "lib/parallel/part_sums.h"

namespace clnet::parallel {

namespace {

/// A part as graph.
struct PartGraph {
  std::vector<bool> reached;  ///< by parameter: it has a gradient
  std::vector<Shape> shapes;  ///< of these
  std::vector<Tensor> all;    ///< what gives the gradients, the loss, its count if there is one, and what is computed along
  bool has_count = false;
  double scale = 1;      ///< of the gradients
  bool weighed = false;  ///< the gradients are those of the part's share of the mean
};

/// The part's weight in the mean over all parts.
Tensor weight_of(const train::Step& step, double by_rows, const PartSums& sums) {
  if (!step.count.defined()) return Tensor::scalar(by_rows);
  const Tensor own = stop_gradient(reshape(cast(step.count, Dtype::f32), {})), all = sums.add_up({own})[0];
  return own / where(greater(all, 0.0), all, 1.0);
}

/// `weight`: where gradients flow from part to part, they are those of the loss times this.
PartGraph graph_of(const PartStep& part, const nn::NamedParameters& parameters, double loss_scale, bool may_miss,
                   const Tensor& weight) {
  const auto& step = part.step;
  if (!step.loss.defined() || step.loss.numel() != 1) throw Error("Replicas: the step function gave no loss of one element");
  const auto leaves = nn::reached_leaves("Replicas", step.loss, parameters);
  PartGraph graph{.reached = {},
                  .shapes = {},
                  .all = {},
                  .has_count = step.count.defined(),
                  .scale = loss_scale,
                  .weighed = weight.defined()};
  std::vector<Tensor> reached;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const bool moves = !parameters[i].second.frozen();
    if (moves && !leaves[i].defined() && !may_miss)
      throw Error(fmt::format("Replicas: the loss does not depend on {}; freeze it, or leave it out of the optimizer",
                              parameters[i].first));
    graph.reached.push_back(moves && leaves[i].defined());
    if (!graph.reached.back()) continue;
    reached.push_back(leaves[i]);
    graph.shapes.push_back(leaves[i].shape());
  }
  std::vector<Tensor> gradients;
  if (loss_scale == 1 && !graph.weighed) {
    gradients = clnet::gradients(step.loss, reached);
  } else {
    const Tensor wide = reshape(cast(step.loss, Dtype::f32), {});
    const Tensor start = graph.weighed ? weight * loss_scale : Tensor::scalar(loss_scale);
    gradients = clnet::gradients(std::span(&wide, 1), std::span(&start, 1), reached);
  }
  graph.all.push_back(GradientSums::given(std::move(gradients), graph.weighed ? Tensor{} : step.count));
  graph.all.push_back(step.loss);
  if (step.count.defined()) graph.all.push_back(step.count);
  graph.all.insert(graph.all.end(), part.more.begin(), part.more.end());
  return graph;
}

/// What a device has computed: the mean over its samples.
struct Part {
  double loss = 0, count = 0, seconds = 0;
};

/// Evaluates the graph, which gives the gradients, and reads what it gives beside. Nothing of it is left when this returns: the
/// optimizer overwrites parameters that no graph holds.
Part computed_part(PartGraph graph, std::int64_t rows) {
  const auto begin = std::chrono::steady_clock::now();
  eval(graph.all);
  Part part{.loss = graph.all[1].item<double>()};
  part.count = graph.has_count ? graph.all[2].item<double>() : static_cast<double>(rows);
  part.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  part.seconds -= Attendance::now()->seconds_aside();
  return part;
}

double count_of(const std::vector<Part>& parts) {
  double all = 0;
  for (const auto& part : parts) all += part.count;
  return all;
}

/// A mean over nothing has no part in it.
double loss_of(const std::vector<Part>& parts) {
  const double all = count_of(parts);
  if (all == 0) return std::numeric_limits<double>::quiet_NaN();
  double loss = 0;
  for (const auto& part : parts) loss += part.count > 0 ? part.loss * (part.count / all) : 0;
  return loss;
}

/// Parts that are being computed. What they change is the caller's, so all have ended when this ends, also by an exception.
class Running {
 public:
  /// `meeting`: where the parts wait for one another, or null.
  explicit Running(Meeting* meeting) : meeting_(meeting) {}
  ~Running() {
    // Not all parts have begun where something was thrown.
    if (meeting_) meeting_->end();
    for (const auto& part : parts_)
      if (part.valid()) part.wait();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void add(std::size_t device, std::future<Part> part) {
    devices_.push_back(device);
    parts_.push_back(std::move(part));
  }
  /// Throws what the first of the parts threw that has a reason of its own.
  std::vector<Part> results() {
    std::vector<Part> all;
    std::exception_ptr failure;
    bool ended = false;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      try {
        all.push_back(on_behalf_of(devices_[i], [&] { return parts_[i].get(); }));
      } catch (const MeetingEnded&) {
        ended = true;
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
    if (ended) throw UnlikeParts();  // the others have done all that theirs asks for
    return all;
  }
  const std::vector<std::size_t>& devices() const { return devices_; }

 private:
  Meeting* meeting_;
  std::vector<std::size_t> devices_;
  std::vector<std::future<Part>> parts_;
};

}  // namespace

ReplicaGroup::ReplicaGroup(nn::Module& model, std::vector<Device> devices, std::vector<double> shares, bool sync_batch_norm)
    : model_(model),
      devices_(std::move(devices)),
      shares_(std::move(shares)),
      sync_batch_norm_(sync_batch_norm && devices_.size() > 1) {
  const auto count = devices_.size();
  if (count == 0) throw Error("Replicas: there are no devices");
  set_shares(shares_.empty() ? std::vector<double>(count, 1) : shares_);
  std::vector<Device> unlike;
  for (const auto& device : devices_) {
    const auto found = std::find(unlike.begin(), unlike.end(), device);
    lane_of_.push_back(static_cast<std::size_t>(found - unlike.begin()));
    if (found == unlike.end())
      unlike.push_back(device);
    else if (sync_batch_norm_)
      throw Error(fmt::format("Replicas: the device {} is given twice; with sync_batch_norm it would wait for itself",
                              device.info().name));
  }
  model_.to(devices_[0]);
  for (std::size_t i = 1; i < count; ++i) copies_.emplace_back(model_, devices_[i]);
  lanes_.emplace(unlike);
}

void ReplicaGroup::set_shares(std::vector<double> shares) {
  if (shares.size() != devices_.size())
    throw Error(fmt::format("Replicas: {} shares for {} devices", shares.size(), devices_.size()));
  (void)data::rows_of({shares, 0}, 0);
  shares_ = std::move(shares);
}

void ReplicaGroup::set_place(std::vector<double> shares_of_all, std::size_t first) {
  if (first + devices_.size() > shares_of_all.size())
    throw Error(fmt::format("Replicas: {} shares for {} devices from {} on", shares_of_all.size(), devices_.size(), first));
  (void)data::rows_of({shares_of_all, first}, 0);
  shares_ = std::move(shares_of_all);
  first_ = first;
}

bool ReplicaGroup::has_rows(const std::vector<data::Batch>& parts) const {
  if (parts.size() != devices_.size())
    throw Error(fmt::format("Replicas: {} parts of a batch for {} devices", parts.size(), devices_.size()));
  const auto whole = parts[0].rows.batch;
  const bool are_all = shares_.size() == devices_.size();
  std::int64_t rows = 0, next = are_all ? 0 : parts[0].rows.first;
  for (const auto& part : parts) {
    if (part.rows.first != next || part.rows.batch != whole) throw Error("Replicas: the parts are not those of one batch");
    next += part.rows.count;
    rows += part.rows.count;
  }
  if (are_all ? rows == 0 || rows != whole : next > whole) throw Error("Replicas: the parts are not those of one batch");
  return rows > 0;
}

std::optional<SlotScope> ReplicaGroup::slots_of(std::size_t device) const {
  if (device == 0) return std::nullopt;
  return std::optional<SlotScope>(std::in_place, copies_[device - 1].map());
}

WholeBatch ReplicaGroup::compute(const nn::NamedParameters& parameters, const std::vector<data::Batch>& parts,
                                 const PartFunction& function, const ComputeOptions& options) {
  const auto count = devices_.size();
  const auto start = random_position();
  if (!has_rows(parts)) {
    WholeBatch nothing{.gradients = std::vector<Tensor>(parameters.size()), .random = start, .seconds = {}};
    nothing.seconds.resize(count);
    return nothing;
  }

  for (std::size_t i = 0; i < copies_.size(); ++i) on_behalf_of(i + 1, [&] { copies_[i].take_parameters(); });
  std::optional<RandomPosition> end;
  const auto with_rows = std::count_if(parts.begin(), parts.end(), [](const data::Batch& part) { return part.rows.count > 0; });
  std::optional<Meeting> meeting;
  if (sync_batch_norm_ && with_rows > 1) meeting.emplace(static_cast<std::size_t>(with_rows));
  std::optional<GradientSums> gradients;
  std::vector<bool> reached;
  std::vector<nn::Parameter> shared_buffers;
  Running running(meeting ? &*meeting : nullptr);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& rows = parts[i].rows;
    if (rows.count == 0) continue;
    const DeviceScope here(devices_[i]);
    const auto slots = slots_of(i);
    const RandomStream stream(start, {rows.first, rows.count, first_ + i});
    PartGraph graph;
    {
      std::optional<PartSums> sums;
      std::optional<nn::SharedStatistics> statistics;
      if (meeting) sums.emplace();
      if (sync_batch_norm_)
        statistics.emplace(sums ? [&](const std::vector<Tensor>& own) { return sums->add_up(own); } : nn::SumFunction());
      // Handles end before the lane begins: a plan keeps what others hold.
      const auto part = on_behalf_of(i, [&] { return function(i, model_, parts[i]); });
      // The part of a mean over more samples: so gradients overflow where the whole batch's would.
      const double part_scale = sums || options.of_loss == 1 ? options.of_loss : options.of_loss * parts[i].weight();
      graph = graph_of(part, parameters, part_scale, options.may_miss,
                       sums ? weight_of(part.step, parts[i].weight(), *sums) : Tensor{});
      if (statistics) shared_buffers = statistics->buffers();
    }
    if (end && end->offset != stream.position().offset)
      throw Error("Replicas: the step function draws other random tensors for each part");
    end = stream.position();
    const auto member = running.devices().size();
    if (!gradients) {
      reached = graph.reached;
      gradients.emplace(graph.shapes, GradientSums::Options{static_cast<std::size_t>(with_rows), graph.weighed, options.factor});
    }
    if (graph.reached != reached) throw Error("Replicas: the loss depends on some parameters in some parts only");
    gradients->begin(member, graph.scale, static_cast<double>(rows.count));
    running.add(i, (*lanes_)[lane_of_[i]].run([&, i, member, rows = rows.count, graph = std::move(graph)]() mutable {
      const auto own_slots = slots_of(i);
      const Attendance attendance(member, meeting ? &*meeting : nullptr, &*gradients);
      return computed_part(std::move(graph), rows);
    }));
  }
  const auto computed = running.results();
  for (const auto& part : computed)
    if (!(part.count >= 0)) throw Error(fmt::format("Replicas: the count of a step is {}, not 0 or more", part.count));
  for (std::size_t i = 0; i < count; ++i)
    if (parts[i].rows.count == 0) hand_on(shared_buffers, running.devices()[0], i);
  WholeBatch result;
  result.loss = loss_of(computed);
  result.count = count_of(computed);
  result.gradients.resize(parameters.size());
  for (std::size_t k = 0; const auto& sum : gradients->sums()) {
    while (!reached[k]) ++k;
    result.gradients[k++] = sum;
  }
  result.seconds.resize(count);
  for (std::size_t i = 0; i < computed.size(); ++i) result.seconds[running.devices()[i]] = computed[i].seconds;
  result.random = *end;
  return result;
}

void ReplicaGroup::hand_on(const std::vector<nn::Parameter>& buffers, std::size_t from, std::size_t to) const {
  std::vector<Tensor> values;
  {
    const auto slots = slots_of(from);
    for (const auto& buffer : buffers) values.push_back(buffer.value());
  }
  on_behalf_of(to, [&] {
    for (auto& value : values) value = nn::value_on(value, devices_[to]);
  });
  const auto slots = slots_of(to);
  for (std::size_t k = 0; auto buffer : buffers) buffer.set(values[k++]);
}

void ReplicaGroup::share_buffers() {
  for (auto& copy : copies_) copy.take_buffers();
}

std::vector<std::vector<Tensor>> ReplicaGroup::buffers() const {
  std::vector<std::vector<Tensor>> all;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const auto slots = slots_of(i);
    auto& own = all.emplace_back();
    for (const auto& [name, buffer] : model_.buffers()) own.push_back(buffer.value());
  }
  return all;
}

void ReplicaGroup::set_buffers(const std::vector<std::vector<Tensor>>& buffers) const {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const auto slots = slots_of(i);
    for (std::size_t k = 0; auto& [name, buffer] : model_.buffers()) buffer.set(buffers[i][k++]);
  }
}

void ReplicaGroup::leave_first() {
  copies_[0].take_parameters();
  std::vector<Tensor> values;
  {
    const auto slots = slots_of(1);
    for (const auto& [name, parameter] : model_.parameters()) values.push_back(parameter.value());
    for (const auto& [name, buffer] : model_.buffers()) values.push_back(buffer.value());
  }
  std::size_t k = 0;
  for (auto& [name, parameter] : model_.parameters()) parameter.set(values[k++]);
  for (auto& [name, buffer] : model_.buffers()) buffer.set(values[k++]);
}

Replicas::Parts ReplicaGroup::batches(const data::Dataset& dataset, const data::BatchOptions& options) const {
  if (options.share) throw Error("Replicas: batches with a share of their own");
  Replicas::Parts parts;
  parts.devices_ = devices_;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    auto own = options;
    own.share = share(i);
    // A dataset for one thread is read by this one.
    if (own.workers == 1 && devices_.size() > 1) own.workers = 0;
    parts.batches_.push_back(data::batches(dataset, own));
  }
  return parts;
}

}  // namespace clnet::parallel
