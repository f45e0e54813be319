// Ranks with several devices each, and with shares that differ: `dist_devices WAY`. tests/dist/run.sh starts it under a launcher.
#include <clnet/clnet.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/dist/trained.h"

namespace {

using namespace clnet;
using namespace clnet::test;
namespace fs = std::filesystem;

std::vector<Device> two_devices() { return {Device::current(), Device::find(std::getenv("CLNET_TEST_SECOND"))}; }

/// By device of ranks with two each.
std::vector<double> shares_of(const Group& world, double first_rank, double others) {
  std::vector<double> shares(2 * static_cast<std::size_t>(world.size()), others);
  shares[0] = shares[1] = first_rank;
  return shares;
}

/// The line of an error that all ranks throw.
std::string refused(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// Ranks of two devices make the steps of one device, within rounding: with dropout, uneven batches, labels that do not count.
void devices(const Group& world) {
  const bool writes = world.rank() == 0;
  const auto both = two_devices();
  for (const std::int64_t labels : {std::int64_t{1}, std::int64_t{4}}) {
    const auto alone = trained(std::nullopt, labels);
    const auto together = trained(world, labels, {.devices = both});
    require(writes || together.losses.empty(), "only rank 0 hears of losses");
    require_same(together, alone, 2e-5, writes, "two devices on each rank");
    require(trained(world, labels, {.devices = both}).weights == together.weights, "the same seed gives the same bits");
    const auto halves = trained(world, labels, {.exchanged = Dtype::bf16, .devices = both});
    require_same(halves, alone, 0.05, writes, "gradients as bf16");
    require(halves.weights != together.weights, "bf16 is not f32");
  }
  require_same(trained(world, 1, {.precision = Dtype::f16, .devices = both}), trained(std::nullopt, 1, {.precision = Dtype::f16}),
               0.02, writes, "f16 with a loss scale");
}

/// The same with shares by device.
void devices_shares(const Group& world) {
  const bool writes = world.rank() == 0;
  const auto both = two_devices();
  const auto alone = trained(std::nullopt, 4);
  // Of 9 and 1 the last batch has nothing for a rank, or a device; of 20 and 0.1 no batch has.
  for (const auto& shares : {shares_of(world, 3, 1), shares_of(world, 9, 1), shares_of(world, 20, 0.1)}) {
    const auto uneven = trained(world, 4, {.devices = both, .shares = shares});
    require_same(uneven, alone, 2e-5, writes, "shares by device");
    require(trained(world, 4, {.devices = both, .shares = shares}).weights == uneven.weights, "the bits of shares");
  }
  // Ranks of unlike numbers of devices.
  const auto own = world.rank() == 1 ? both : std::vector<Device>();
  require_same(trained(world, 4, {.devices = own}), alone, 2e-5, writes, "two devices on one rank alone");

  const auto shares = shares_of(world, 3, 1);
  require_same(trained(world, 1, {.hooks = {train::accumulation(2)}, .devices = both, .shares = shares}),
               trained(std::nullopt, 1, {.hooks = {train::accumulation(2)}}), 2e-5, writes, "accumulated");
  require(trained(world, 1, {.shard_optimizer = true, .devices = both, .shares = shares}).weights ==
              trained(world, 1, {.devices = both, .shares = shares}).weights,
          "sharded states: the same bits");
}

/// Ranks without the data have the bits of those that read it.
void devices_scatter(const Group& world) {
  const auto both = two_devices();
  std::vector<double> by_rank(static_cast<std::size_t>(world.size()), 1);
  by_rank[0] = 3;
  for (const std::int64_t labels : {std::int64_t{1}, std::int64_t{4}})
    for (const auto& [shares, on] : {std::pair(shares_of(world, 9, 1), both), std::pair(by_rank, std::vector<Device>())}) {
      const auto reads = trained(world, labels, {.devices = on, .shares = shares});
      const auto gets = trained(world, labels, {.scatter_data = true, .devices = on, .shares = shares});
      require_same(gets, reads, 0, world.rank() == 0, "scattered");
    }
  const auto own = world.rank() == 1 ? both : std::vector<Device>();
  require_same(trained(world, 1, {.scatter_data = true, .devices = own}), trained(world, 1, {.devices = own}), 0,
               world.rank() == 0, "scattered to ranks of one and two devices");
}

/// What does not go is told on all ranks before the first exchange.
void refusals(const Group& world) {
  const auto both = two_devices();
  const auto all = std::to_string(2 * world.size()), ranks = std::to_string(world.size());
  const auto line = [&](const train::FitOptions& options, bool with_norm = false) {
    return refused([&] { (void)trained(world, 1, options, with_norm, with_norm); });
  };
  require(line({.devices = both, .shares = {1, 1, 1}}) == "train::fit: 3 shares for " + all + " devices of " + ranks + " ranks",
          "too few shares are refused");
  require(line({.shares = std::vector<double>(static_cast<std::size_t>(world.size()), -1)}) == "shares: -1 is no share",
          "a share below 0 is refused");
  std::vector<double> nothing(static_cast<std::size_t>(world.size()), 1);
  nothing[1] = 0;
  require(line({.shares = nothing}) == "train::fit: a batch of 16 samples has nothing for rank 1", "a rank needs a share");
  require(line({.devices = both, .share_steps = 4}) == "train::fit: share_steps with several ranks; give them shares",
          "shares over ranks are not measured");
  require(line({.devices = both}, true) ==
              "train::fit: all_reduce, as of batch norm over ranks, cannot be in the loss where a rank has several devices",
          "batch norm over ranks is refused");
}

/// Ranks with a device each have the shares that they are given.
void shares(const Group& world) {
  const bool writes = world.rank() == 0;
  for (const std::int64_t labels : {std::int64_t{1}, std::int64_t{4}}) {
    const auto alone = trained(std::nullopt, labels);
    // Of 12 and 1 the last batch has nothing for some ranks.
    for (const double first : {3.0, 12.0}) {
      std::vector<double> uneven(static_cast<std::size_t>(world.size()), 1);
      uneven[0] = first;
      const auto together = trained(world, labels, {.shares = uneven});
      require_same(together, alone, 2e-5, writes, "shares by rank");
      require(trained(world, labels, {.shares = uneven}).weights == together.weights, "the bits of shares by rank");
    }
  }
  std::vector<double> equal(static_cast<std::size_t>(world.size()), 7);
  require(trained(world, 1, {.shares = equal}).weights == trained(world, 1).weights, "equal shares are those without any");
}

/// Each rank looks at the samples that it has: those of its share and no others.
void rows(const Group& world) {
  const auto both = two_devices();
  const auto shares = shares_of(world, 3, 1);
  std::vector<std::int64_t> counts(shares.size());
  std::int64_t most = 0;
  const auto own_loss = [&](nn::Module& model, const data::Batch& batch) -> train::Step {
    // The first device's part comes first.
    const bool is_first = batch.rows.first == data::rows_of({shares, 2 * static_cast<std::size_t>(world.rank())}, 16).first;
    counts[2 * static_cast<std::size_t>(world.rank()) + (is_first ? 0 : 1)] = batch.rows.count;
    most = std::max(most, batch.rows.batch);
    return cross_entropy(model(batch.images), batch.labels);
  };
  manual_seed(11);
  Net model;
  train::fit(model, samples(1),
             {.steps = 1,
              .batch_size = 16,
              .optimizer = optim::Adam(model, 0.02),
              .step_function = own_loss,
              .group = world,
              .devices = both,
              .shares = shares,
              .progress = false});
  dist::all_reduce(counts, world);
  require(most == 16, "the rows of the whole batch");
  for (std::size_t i = 0; i < counts.size(); ++i)
    require(counts[i] == data::rows_of({shares, i}, 16).count, "the rows of device " + std::to_string(i));
}

/// What was stopped and resumed has the bits of what was not, also where statistics of batch norm are each device's own.
void devices_resume(const Group& world) {
  const auto both = two_devices();
  const auto folder = fs::temp_directory_path() / ("clnet-dist-" + mark);
  const auto wait = [&] {
    std::vector<double> sum{0};
    dist::all_reduce(sum, world);
  };
  const auto run = [&](std::int64_t steps, const std::vector<double>& shares, const std::vector<Device>& on, bool resumed,
                       bool with_norm) {
    auto made =
        trained(world, 1, {.steps = steps, .devices = on, .shares = shares, .checkpoint = folder, .resume = resumed}, with_norm);
    wait();
    return made.weights;
  };
  const auto by_device = shares_of(world, 1, 3);
  std::vector<double> by_rank(static_cast<std::size_t>(world.size()), 1);
  by_rank[0] = 3;
  const auto require_pieces = [&](const std::vector<double>& shares, const std::vector<Device>& on, bool with_norm) {
    const auto whole = run(13, shares, on, false, with_norm);
    (void)run(7, shares, on, false, with_norm);
    require(run(13, shares, on, true, with_norm) == whole, "a resumed training has the same bits");
  };
  require_pieces(by_device, both, false);
  require_pieces(by_rank, {}, false);
  // Batch norm needs two rows or none.
  std::vector<double> three(by_device.size(), 0);
  three[0] = three[1] = three[2] = 1;
  require_pieces(three, both, true);
  // From a last batch on that has nothing for some ranks.
  auto mostly_first = by_rank;
  mostly_first[0] = 12;
  const auto in_one_go = run(9, mostly_first, {}, false, false);
  (void)run(4, mostly_first, {}, false, false);
  require(run(9, mostly_first, {}, true, false) == in_one_go, "resumed before a small batch: the same bits");
  // What several devices began goes on with one each, within rounding.
  const auto whole = run(13, by_device, both, false, false);
  (void)run(7, by_device, both, false, false);
  const auto resumed = run(13, by_rank, {}, true, false);
  for (std::size_t i = 0; i < whole.size(); ++i) require_near(resumed[i], whole[i], 2e-5, "resumed on other devices: a weight");
  // Between the batches of a sum: it has the gradients of all devices.
  const auto summed = [&](std::int64_t steps, bool resumes) {
    auto made = trained(
        world, 1, {.steps = steps, .hooks = {train::accumulation(2)}, .devices = both, .checkpoint = folder, .resume = resumes});
    wait();
    return made.weights;
  };
  const auto in_one = summed(13, false);
  (void)summed(6, false);
  const auto in_pieces = summed(13, true);
  for (std::size_t i = 0; i < in_one.size(); ++i) require_near(in_pieces[i], in_one[i], 2e-5, "resumed sums: a weight");
  wait();
  if (world.rank() == 0) fs::remove_all(folder);
}

/// A device of rank 1 fails in the third step, which ends all ranks with a line that names it.
void device_fails(const Group& world) {
  const auto both = two_devices();
  manual_seed(11);
  Net model;
  int calls = 0;
  const auto failing = [&](nn::Module& net, const data::Batch& batch) -> train::Step {
    if (world.rank() == 1 && ++calls == 6) throw DeviceError("the driver is gone");
    return cross_entropy(net(batch.images), batch.labels);
  };
  train::fit(model, samples(1),
             {.steps = 12,
              .batch_size = 16,
              .optimizer = optim::Adam(model, 0.02),
              .step_function = failing,
              .group = world,
              .devices = both,
              .progress = false});
}

/// Ranks that were given other shares are told of them before the first step.
void unlike_shares(const Group& world) {
  std::vector<double> shares(static_cast<std::size_t>(world.size()), 1);
  if (world.rank() == 1) shares[0] = 3;
  (void)trained(world, 1, {.shares = shares});
}

const Ways ways{{"devices", devices},   {"devices-refused", refusals},        {"devices-resume", devices_resume},
                {"devices-rows", rows}, {"devices-scatter", devices_scatter}, {"devices-shares", devices_shares},
                {"shares", shares},     {"device-fails", device_fails},       {"unlike-shares", unlike_shares}};

}  // namespace

int main(int argc, char** argv) { return run_way(argc, argv, ways); }
