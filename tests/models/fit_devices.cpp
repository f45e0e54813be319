// train::fit and clnet-train over several devices of one process: the steps of one device, and a run in pieces to the bit.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "tests/models/fit_runs.h"
#include "tests/models/process.h"
#include "tests/support/captured.h"
#include "tests/support/second_device.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;

namespace {

namespace fs = std::filesystem;

nn::Sequential dropping_model() {
  manual_seed(5);
  return nn::Sequential{nn::Linear{4, 16}, relu, nn::Dropout{0.25}, nn::Linear{16, 3}};
}

/// No bias in front of the norm: its gradient is rounding, which Adam would make large.
nn::Sequential normalizing_model() {
  manual_seed(5);
  return nn::Sequential{nn::Linear{4, 16, {.bias = false}}, nn::BatchNorm1d{16}, relu, nn::Dropout{0.25}, nn::Linear{16, 3}};
}

Recorded run_of(train::FitOptions options, nn::Sequential model = dropping_model()) {
  const auto points = make_points(53), validation = make_points(20, 1);
  Recorded recorded;
  set_up(options, model, validation);
  if (!options.step_function) options.metrics = {metrics::Accuracy(), metrics::F1(3)};
  options.on_step = [&](std::int64_t, double loss) { recorded.losses.push_back(loss); };
  recorded.result = train::fit(model, points, options);
  recorded.epochs = recorded.result.epochs;
  for (const auto& [name, tensor] : model.state_dict()) recorded.weights.push_back(tensor.to_vector<float>());
  return recorded;
}

void require_near(const Recorded& got, const Recorded& want, double margin) {
  REQUIRE(got.losses.size() == want.losses.size());
  for (std::size_t i = 0; i < got.losses.size(); ++i) CHECK(got.losses[i] == Approx(want.losses[i]).margin(margin));
  for (std::size_t i = 0; i < got.weights.size(); ++i)
    for (std::size_t j = 0; j < got.weights[i].size(); ++j) CHECK(got.weights[i][j] == Approx(want.weights[i][j]).margin(margin));
  REQUIRE(got.epochs.size() == want.epochs.size());
  for (std::size_t i = 0; i < got.epochs.size(); ++i) {
    CHECK(got.epochs[i].train_loss == Approx(want.epochs[i].train_loss).margin(margin));
    CHECK(got.epochs[i].validation->loss == Approx(want.epochs[i].validation->loss).margin(margin));
    for (std::size_t k = 0; k < got.epochs[i].metrics.size(); ++k)
      CHECK(got.epochs[i].metrics[k].value == Approx(want.epochs[i].metrics[k].value).margin(margin));
  }
}

std::vector<Device> two_devices() { return {Device::current(), second_device()}; }

}  // namespace

TEST_CASE("fit: several devices make the steps of one, with its metrics") {
  const auto alone = run_of({.epochs = 2});
  REQUIRE(alone.losses.size() == 14);
  require_near(run_of({.epochs = 2, .devices = two_devices()}), alone, 2e-5);
  // The last batch has five samples. Of the shares 1 and 20 the first device has none of them.
  const auto devices = two_devices();
  for (const std::vector<double>& shares : {std::vector<double>{3, 1}, {1, 20}}) {
    const auto together = run_of({.epochs = 2, .devices = devices, .shares = shares});
    require_near(together, alone, 2e-5);
    CHECK(run_of({.epochs = 2, .devices = devices, .shares = shares}).weights == together.weights);
  }
  require_near(run_of({.epochs = 2, .devices = {devices[1]}}), alone, 2e-5);
  // What is accumulated, with a rest at the end, and a loss scale.
  require_near(run_of({.epochs = 2, .hooks = {train::accumulation(3)}, .devices = devices}),
               run_of({.epochs = 2, .hooks = {train::accumulation(3)}}), 2e-5);
  // Parameters that the loss does not reach.
  const auto partly = [](nn::Module& model, const data::Batch& batch) -> train::Step {
    return mean(square(linear(batch.images, model.parameter("0.weight").value())));
  };
  require_near(run_of({.epochs = 1, .step_function = partly, .devices = devices}), run_of({.epochs = 1, .step_function = partly}),
               2e-5);
  require_near(run_of({.epochs = 2, .precision = Dtype::f16, .devices = devices}), run_of({.epochs = 2, .precision = Dtype::f16}),
               0.02);
}

TEST_CASE("fit: a run in pieces over several devices has the bits of a whole one") {
  const auto points = make_points(53), validation = make_points(20, 1);
  const auto devices = two_devices();
  const auto run = [&](const Folder& folder, std::int64_t steps, bool resume) {
    return record(points, validation,
                  {.steps = steps, .devices = devices, .shares = {1, 2}, .checkpoint = folder.path(), .resume = resume});
  };
  const Folder of_whole, of_pieces;
  const auto whole = run(of_whole, 17, false);
  auto losses = run(of_pieces, 5, false).losses;
  const auto rest = run(of_pieces, 17, true);
  losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
  CHECK(losses == whole.losses);
  CHECK(rest.weights == whole.weights);
}

TEST_CASE("fit: batch norm of whole batches makes the steps of one device") {
  const auto run = [](train::FitOptions options) { return run_of(std::move(options), normalizing_model()); };
  const auto devices = two_devices();
  const auto alone = run({.epochs = 2});
  // One device has the whole batches anyway.
  CHECK(run({.epochs = 2, .devices = {devices[0]}, .sync_batch_norm = true}).weights == alone.weights);
  // The last batch has five samples. Of the shares 1 and 12 the first device has none of them.
  for (const std::vector<double>& shares : {std::vector<double>{}, {3, 1}, {1, 12}})
    require_near(run({.epochs = 2, .devices = devices, .shares = shares, .sync_batch_norm = true}), alone, 5e-5);
  require_near(run({.epochs = 2, .devices = devices, .share_steps = 4, .sync_batch_norm = true}), alone, 5e-5);
  require_near(run({.epochs = 2, .hooks = {train::accumulation(3)}, .devices = devices, .sync_batch_norm = true}),
               run({.epochs = 2, .hooks = {train::accumulation(3)}}), 5e-5);
  require_near(run({.epochs = 2, .precision = Dtype::f16, .devices = devices, .sync_batch_norm = true}),
               run({.epochs = 2, .precision = Dtype::f16}), 0.02);
  // In pieces, to the bit.
  const auto pieces = [&](const Folder& folder, std::int64_t steps, bool resume) {
    return run({.steps = steps,
                .devices = devices,
                .shares = {3, 1},
                .sync_batch_norm = true,
                .checkpoint = folder.path(),
                .resume = resume});
  };
  const Folder of_whole, of_pieces;
  const auto whole = pieces(of_whole, 17, false);
  auto losses = pieces(of_pieces, 5, false).losses;
  const auto rest = pieces(of_pieces, 17, true);
  losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
  CHECK(losses == whole.losses);
  CHECK(rest.weights == whole.weights);
  CHECK_THROWS_WITH(run({.devices = {devices[0], devices[0]}, .sync_batch_norm = true}), Catch::Contains("is given twice"));
}

TEST_CASE("fit: shares are measured once, said, and kept in the checkpoint") {
  const auto devices = two_devices();
  const Folder folder;
  const auto run = [&](std::int64_t steps, std::string& said) {
    Recorded recorded;
    said = written_on_stderr([&] {
      recorded = run_of({.steps = steps, .devices = devices, .share_steps = 4, .checkpoint = folder.path(), .resume = true});
    });
    return recorded.losses;
  };
  const auto kept = [&] {
    const auto metadata = io::load_safetensors(folder / "checkpoint.safetensors").metadata;
    return metadata.contains("device shares") ? metadata.at("device shares") : "";
  };
  std::string said;
  // Cut short within the measurement, which begins again.
  auto losses = run(3, said);
  CHECK(said.empty());
  CHECK(kept().empty());
  auto more = run(9, said);
  losses.insert(losses.end(), more.begin(), more.end());
  CHECK_THAT(said, Catch::Contains("the shares of the devices are " + kept() + " from now on, as 4 steps took them"));
  const auto shares = kept();
  CHECK(shares.find(',') != std::string::npos);
  more = run(14, said);
  losses.insert(losses.end(), more.begin(), more.end());
  CHECK(said.empty());
  CHECK(kept() == shares);
  const auto alone = run_of({.steps = 14}).losses;
  REQUIRE(losses.size() == alone.size());
  for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == Approx(alone[i]).margin(2e-5));
}

TEST_CASE("fit: refuses devices and shares that do not fit") {
  const auto devices = two_devices();
  CHECK_THROWS_WITH(run_of({.devices = devices, .shares = {1}}), "train::fit: 1 shares for 2 devices");
  CHECK_THROWS_WITH(run_of({.shares = {1, 1}}), "train::fit: 2 shares for 0 devices");
  CHECK_THROWS_WITH(run_of({.devices = devices, .shares = {1, -1}}), "shares: -1 is no share");
  CHECK_THROWS_WITH(run_of({.devices = {devices[0]}, .share_steps = 4}), "train::fit: share_steps needs several devices");
  CHECK_THROWS_WITH(run_of({.devices = devices, .shares = {1, 1}, .share_steps = 4}),
                    "train::fit: shares that are given are not measured");
}

TEST_CASE("clnet-train: several devices, stopped and resumed") {
  const Folder data, folder;
  write_idx_dataset(data.path(), 200, 40);
  const auto train = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--data", data.path(), "--model", "keras-cnn", "--batch-size", "16", "--devices", "0:0,0:1"});
    return clnet_train(folder.path(), more, {"POCL_DEVICES=pthread basic", "POCL_MAX_PTHREAD_COUNT=1"});
  };
  const auto whole = train({"--steps", "20", "--shares", "3,1", "--log", "whole.jsonl", "--save", "whole"});
  INFO(whole.err);
  REQUIRE(whole.code == 0);
  CHECK_THAT(whole.out, Catch::Contains(", 3:1 shares"));
  CHECK_THAT(whole.out, Catch::Contains("test accuracy"));
  for (const char* steps : {"7", "20"})
    REQUIRE(train({"--steps", steps, "--schedule", "constant", "--shares", "3,1", "--checkpoint", "run", "--resume", "--log",
                   "pieces.jsonl", "--save", "pieces"})
                .code == 0);
  REQUIRE(train({"--steps", "20", "--schedule", "constant", "--shares", "3,1", "--log", "constant.jsonl", "--save", "constant"})
              .code == 0);
  CHECK(content(folder / "pieces") == content(folder / "constant"));

  const auto measured = train({"--steps", "20", "--shares", "auto", "--strict-devices", "--save", "measured"});
  CHECK(measured.code == 0);
  CHECK_THAT(measured.out, Catch::Contains(", measured shares"));
  CHECK_THAT(measured.err, Catch::Contains("the shares of the devices are "));

  const auto refused = [&](std::vector<std::string> more, int code) {
    const auto outcome = train(std::move(more));
    CHECK(outcome.code == code);
    return outcome.err;
  };
  // Devices of one rank are joined by +, which is a comma where there is one process.
  const auto joined = clnet_train(folder.path(),
                                  {"--data", data.path(), "--model", "keras-cnn", "--batch-size", "16", "--devices", "0:0+0:1",
                                   "--steps", "20", "--shares", "3,1", "--save", "plus"},
                                  {"POCL_DEVICES=pthread basic", "POCL_MAX_PTHREAD_COUNT=1"});
  CHECK(joined.code == 0);
  CHECK(content(folder / "plus") == content(folder / "whole"));
  CHECK_THAT(refused({"--devices", "0:0+"}, 2), Catch::Contains("--devices: a name is needed, got nothing"));
  CHECK_THAT(refused({"--devices", "0:0,,0:1"}, 2), Catch::Contains("--devices: a name is needed, got nothing"));
  CHECK_THAT(refused({"--devices", "0:0,"}, 2), Catch::Contains("--devices: a name is needed, got nothing"));
  CHECK_THAT(refused({"--shares", "1"}, 2), Catch::Contains("--shares: 1 for 2 devices"));
  CHECK_THAT(refused({"--shares", "1e-400,0"}, 2), Catch::Contains("--shares: all are 0"));
  CHECK_THAT(refused({"--shares", "0,0"}, 2), Catch::Contains("--shares: all are 0"));
  CHECK_THAT(refused({"--shares", "1,x"}, 2), Catch::Contains("--shares: x is not a number from 0"));
  CHECK_THAT(refused({"--shares", "auto,1"}, 2), Catch::Contains("--shares: auto beside numbers"));
}

TEST_CASE("clnet-train: ranks with one device and with two, and shares of all", "[sweep]") {
  const Folder data, folder;
  write_idx_dataset(data.path(), 200, 40);
  if (!fs::exists(fs::path(clnet_train_command({})[0]).parent_path().parent_path() / "clnet/clnet-mpi-openmpi.so"))
    return skip("clnet was built without Open MPI");
  const auto train = [&](std::vector<std::string> more) {
    auto command = clnet_train_command({"--data", data.path(), "--model", "keras-cnn", "--batch-size", "16", "--steps", "13"});
    command.insert(command.begin(), {"/usr/bin/env", "mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", "2"});
    command.insert(command.end(), more.begin(), more.end());
    return Process(folder.path(), command,
                   {"POCL_DEVICES=pthread basic", "POCL_MAX_PTHREAD_COUNT=1", "OMPI_ALLOW_RUN_AS_ROOT=1",
                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"})
        .wait();
  };
  const std::vector<std::string> options{"--devices", "0:0+0:1,0:1", "--shares", "4,2,1", "--save", "first"};
  const auto first = train(options);
  if (first.code == 127) return skip("mpirun.openmpi is not installed");
  INFO(first.err);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.out, Catch::Contains("2 ranks, each with its share of every batch: 4:2:1"));
  CHECK_THAT(first.out, Catch::Contains(" and "));
  auto again = options;
  again.back() = "again";
  REQUIRE(train(again).code == 0);
  CHECK(content(folder / "again") == content(folder / "first"));
  CHECK(train({"--devices", "0:0,0:1", "--shares", "3,1", "--save", "each"}).code == 0);

  const auto few = train({"--devices", "0:0+0:1,0:1", "--shares", "2,1"});
  CHECK(few.code != 0);
  CHECK_THAT(few.err, Catch::Contains("train::fit: 2 shares for 3 devices of 2 ranks"));
  const auto measured = train({"--devices", "0:0,0:1", "--shares", "auto"});
  CHECK(measured.code != 0);
  CHECK_THAT(measured.err, Catch::Contains("--shares: auto is for one process"));
  const auto sync = train({"--devices", "0:0+0:1,0:1", "--sync-batch-norm"});
  CHECK(sync.code != 0);
  CHECK_THAT(sync.err, Catch::Contains("sync_batch_norm with several devices in one rank of several"));
}

TEST_CASE("clnet-train: batch norm of whole batches over several devices") {
  const Folder data, folder;
  write_idx_dataset(data.path(), 64, 16);
  const auto train = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--data", data.path(), "--model", "resnet20", "--batch-size", "16", "--steps", "3", "--optimizer",
                               "sgd", "--schedule", "constant", "--log", "log.jsonl"});
    return clnet_train(folder.path(), more, {"POCL_DEVICES=pthread basic", "POCL_MAX_PTHREAD_COUNT=1"});
  };
  const auto losses = [&](const std::vector<std::string>& more) {
    const auto outcome = train(more);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    std::vector<double> all;
    for (const auto& line : log_without_times(folder / "log.jsonl")) {
      const auto object = nlohmann::json::parse(line);
      if (object.contains("step") && object.contains("loss")) all.push_back(object["loss"]);
    }
    REQUIRE(all.size() == 3);
    return all;
  };
  const auto alone = losses({"--device", "0:0"}), together = losses({"--devices", "0:0,0:1", "--sync-batch-norm"}),
             apart = losses({"--devices", "0:0,0:1"});
  for (std::size_t i = 0; i < 3; ++i) CHECK(together[i] == Approx(alone[i]).epsilon(1e-3));
  CHECK(std::fabs(apart[0] - alone[0]) > 1e-2 * alone[0]);
  const auto twice = train({"--devices", "0:0,0:0", "--sync-batch-norm"});
  CHECK(twice.code == 1);
  CHECK_THAT(twice.err, Catch::StartsWith("clnet-train: Replicas: the device ") &&
                            Catch::EndsWith(" is given twice; with sync_batch_norm it would wait for itself\n"));
}
