// What fit() and evaluate() ask when several ranks work on one training (clnet/dist.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/data.h"
#include "clnet/dist.h"
#include "clnet/metrics.h"
#include "clnet/nn.h"
#include "clnet/optim.h"
#include "lib/graph/random_stream.h"

namespace clnet::train {

/// One rank's part of a training. Without a group, or with a group of one rank, all is this rank's, and nothing is exchanged. All
/// ranks call the functions that exchange something, in the same order.
class Job {
 public:
  Job() = default;
  /// `shares`: of each batch, by rank; empty: equal ones.
  explicit Job(const std::optional<dist::Group>& group, std::vector<double> shares = {});

  /// Learns how many devices each rank has, and takes the shares of all of them, in the order of ranks; empty: equal ones. All
  /// ranks call it, with equal shares. Throws Error, on all ranks, for shares that do not fit.
  void share_out(std::size_t devices, const std::vector<double>& shares);
  /// Whether a rank has several devices, so that ranks add gradients in the host's memory.
  bool by_devices() const;
  /// Of all ranks' devices, after share_out().
  const std::vector<double>& shares() const { return shares_; }
  /// How many each rank has.
  const std::vector<std::size_t>& devices() const { return devices_; }
  /// The place of this rank's first device among them.
  std::size_t first_device() const { return first_device_of(rank()); }
  /// Of batches that are evaluated, by rank, as the first device of each does that.
  std::vector<double> evaluation_shares() const;

  bool several() const { return group_.has_value(); }
  /// Whether this rank writes logs and checkpoints.
  bool writes() const { return !group_ || group_->rank() == 0; }
  int rank() const { return group_ ? group_->rank() : 0; }
  /// Ends the job: all ranks throw RankLost with this reason.
  void abort(std::string_view reason) const;
  /// Of each batch, where each rank has one device.
  std::optional<data::Share> share() const;

  /// Throws Error, on all ranks, where they would train different things.
  void require_equal(std::vector<dist::Item> items, const nn::Module& model) const;
  /// The same of one thing, before there is more to compare.
  void require_same(std::string name, std::string value) const;
  /// Sums over all ranks, on the host.
  void add_up(std::span<double> numbers) const;
  /// Whether any rank says so.
  bool any(bool here) const;
  /// Gives all ranks the buffers of rank 0, as statistics of batch norm are each rank's own.
  void share_buffers(nn::Module& model) const;
  /// The numbers of all ranks' samples. Metrics are unchanged.
  std::vector<metrics::Result> results(std::span<const metrics::Metric> metrics) const;
  /// Moves the sums and counts of all ranks to rank 0; the others begin anew.
  void collect(std::span<metrics::Metric> metrics) const;
  /// The same with the sums of accumulate().
  void collect(optim::Optimizer& optimizer) const;
  /// Lets the sums of accumulate() begin anew on all ranks but the first, whose sums are those of all.
  void begin_sums(optim::Optimizer& optimizer) const;

  /// Replaces gradients, but for undefined ones, by their sums over all ranks, and returns the sums of `more`: as graph, and in
  /// one exchange. Gradients travel as `exchanged`; f32: each in its own dtype.
  std::vector<Tensor> sum_up(std::span<Tensor> gradients, Dtype exchanged, const std::vector<Tensor>& more) const;
  /// The same at once, in the host's memory. They become f32 tensors there.
  void sum_up_now(std::span<Tensor> gradients, Dtype exchanged) const;
  /// The part that this rank's mean over `count` (undefined: the rows) has in the mean over the whole batch.
  Tensor weighed(const Tensor& mean, const Tensor& count, const data::Rows& rows) const;

 private:
  std::size_t first_device_of(int rank) const;

  std::optional<dist::Group> group_;
  std::vector<double> shares_;        ///< by device of all ranks
  std::vector<std::size_t> devices_;  ///< by rank
};

/// While it lives, this rank draws its rows of random tensors that have the batch as their first extent.
class OwnRows {
 public:
  OwnRows(const Job& job, const data::Rows& rows);
  ~OwnRows();
  OwnRows(const OwnRows&) = delete;
  OwnRows& operator=(const OwnRows&) = delete;

 private:
  std::optional<RandomStream> stream_;
};

}  // namespace clnet::train
