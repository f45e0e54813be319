// train::fit that goes on from a checkpoint: the same numbers, more steps, and the checkpoints that it refuses.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <tuple>

#include "clnet/clnet.h"
#include "lib/exec/plan/cache.h"
#include "lib/train/checkpoint.h"
#include "tests/models/fit_runs.h"
#include "tests/support/captured.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
namespace fs = std::filesystem;

TEST_CASE("fit: a run that is given more steps goes on by the schedule for all of them") {
  const auto points = make_points(24);
  const clnet::test::Folder folder;
  const auto run = [&](std::int64_t epochs, double rate) {
    auto model = make_model();
    std::vector<std::pair<std::int64_t, double>> rates;
    train::FitOptions options{.epochs = epochs, .batch_size = 8, .optimizer = optim::SGD(model, {.momentum = 0.9})};
    const auto schedule = optim::one_cycle(rate, 3 * epochs);
    options.momentum = optim::one_cycle_momentum(3 * epochs);
    bool started = false;
    options.schedule = [&](std::int64_t step) {
      if (started) rates.emplace_back(step, schedule(step));
      return schedule(step);
    };
    options.on_start = [&](std::int64_t, std::int64_t) { started = true; };
    options.on_epoch = [&](const train::EpochMetrics&) { started = false; };
    options.checkpoint = folder.path();
    options.resume = true;
    options.progress = false;
    const auto result = train::fit(model, points, options);
    return std::tuple(result.steps, result.epochs.size(), rates);
  };
  CHECK(std::get<0>(run(2, 0.1)) == 6);
  // Another schedule for the same steps, or another rate for more, is another run.
  CHECK_THROWS_WITH(run(2, 0.2), Catch::Contains("was made with another schedule of the learning rate"));
  CHECK_THROWS_WITH(run(3, 0.2),
                    Catch::Contains("another schedule of the learning rate; it goes on only with one that is about the same"));
  CHECK_THROWS_WITH(run(1, 0.1), Catch::Contains("another schedule"));
  const auto said = clnet::test::written_on_stderr([&] {
    const auto [steps, epochs, rates] = run(3, 0.1);
    CHECK(steps == 9);
    CHECK(epochs == 1);
    const auto schedule = optim::one_cycle(0.1, 9);
    CHECK(rates == std::vector<std::pair<std::int64_t, double>>{{6, schedule(6)}, {7, schedule(7)}, {8, schedule(8)}});
  });
  CHECK_THAT(said,
             Catch::Contains("6 steps were planned, and now 9: from step 6 on the learning rate is that of a schedule for all"));
  CHECK_THAT(said, Catch::Contains("from step 6 on the momentum is that of"));
  // From here on nine are the plan.
  CHECK(clnet::test::written_on_stderr([&] { CHECK(std::get<1>(run(3, 0.1)) == 0); }).empty());
}

TEST_CASE("fit: a run with a warm-up goes on with more steps, too") {
  const auto points = make_points(24);
  const clnet::test::Folder folder;
  const auto run = [&](std::int64_t epochs) {
    auto model = make_model();
    train::FitOptions options{.epochs = epochs, .batch_size = 8, .optimizer = optim::SGD(model, {})};
    options.schedule = optim::warm_up(2, optim::cosine(0.1, 3 * epochs));
    options.checkpoint = folder.path();
    options.resume = true;
    options.progress = false;
    return train::fit(model, points, options).steps;
  };
  CHECK(run(2) == 6);
  CHECK_THAT(clnet::test::written_on_stderr([&] { CHECK(run(4) == 12); }), Catch::Contains("6 steps were planned, and now 12"));
}

TEST_CASE("fit: a run in pieces gives the numbers of a whole one, bit for bit") {
  const auto points = make_points(53), validation = make_points(20, 1);
  const auto whole = record(points, validation, {.epochs = 4});
  REQUIRE(whole.losses.size() == 28);

  struct Stop {};
  for (const std::int64_t interval : {0, 1, 3, 7}) {
    const clnet::test::Folder folder;
    std::vector<double> losses;
    std::vector<train::EpochMetrics> epochs;
    std::vector<std::vector<float>> weights;
    // As if killed: an exception leaves no checkpoint behind but those written on the way.
    for (const std::int64_t stop : {2, 9, 16, 24, 1000}) {
      std::int64_t done_steps = -1, done_epochs = -1;
      train::FitOptions options{.epochs = 4};
      options.checkpoint = folder / "deep/run";
      options.checkpoint_steps = interval;
      options.resume = true;
      options.on_start = [&](std::int64_t s, std::int64_t e) {
        done_steps = s;
        done_epochs = e;
      };
      std::vector<double> seen;
      std::vector<train::EpochMetrics> seen_epochs;
      try {
        // Other weights than at the start, which the checkpoint replaces.
        auto model = make_model(fs::exists(folder / "deep/run/checkpoint.safetensors") ? 77 : 5);
        set_up(options, model, validation);
        options.on_step = [&](std::int64_t step, double loss) {
          seen.push_back(loss);
          if (step >= stop) throw Stop{};
        };
        options.on_epoch = [&](const train::EpochMetrics& m) { seen_epochs.push_back(m); };
        train::fit(model, points, options);
        for (const auto& [name, tensor] : model.state_dict()) weights.push_back(tensor.to_vector<float>());
      } catch (const Stop&) {
      }
      losses.resize(static_cast<std::size_t>(done_steps));
      losses.insert(losses.end(), seen.begin(), seen.end());
      epochs.resize(static_cast<std::size_t>(done_epochs));
      epochs.insert(epochs.end(), seen_epochs.begin(), seen_epochs.end());
    }
    INFO("a checkpoint every " << interval << " steps");
    CHECK(losses == whole.losses);
    CHECK(weights == whole.weights);
    REQUIRE(epochs.size() == whole.epochs.size());
    for (std::size_t i = 0; i < epochs.size(); ++i) {
      CHECK(epochs[i].epoch == whole.epochs[i].epoch);
      CHECK(epochs[i].train_loss == whole.epochs[i].train_loss);
      CHECK(epochs[i].validation->loss == whole.epochs[i].validation->loss);
      CHECK(epochs[i].validation->accuracy == whole.epochs[i].validation->accuracy);
    }
  }
}

TEST_CASE("fit: which schedules are the same for more steps") {
  const auto points = make_points(16);
  using Make = std::function<optim::Schedule(std::int64_t steps)>;
  const auto goes_on = [&](const Make& before, std::int64_t steps, const Make& after, std::int64_t more,
                           const optim::Clipping& clipping = {}) {
    const clnet::test::Folder folder;
    const auto run = [&](const Make& schedule, std::int64_t planned, const optim::Clipping& clip) {
      auto model = make_model();
      train::FitOptions options{.batch_size = 8, .optimizer = optim::Adam(model)};
      options.optimizer.set_clipping(clip);
      options.steps = planned;
      options.schedule = schedule(planned);
      options.checkpoint = folder.path();
      options.resume = true;
      options.progress = false;
      return train::fit(model, points, options).steps;
    };
    CHECK(run(before, steps, {}) == steps);
    try {
      return run(after, more, clipping) == more;
    } catch (const FileError&) {
      return false;
    }
  };
  const Make one_cycle = [](auto n) { return optim::one_cycle(0.004, n); };
  const Make cosine = [](auto n) { return optim::cosine(0.01, n); };
  const Make warm = [](auto n) { return optim::warm_up(std::max<std::int64_t>(1, n / 10), optim::cosine(0.1, n)); };
  const Make constant = [](auto) { return optim::constant(0.01); };
  for (const auto& [steps, more] : {std::pair{2, 3}, {3, 6}, {3, 300}, {10, 11}, {20, 60}})
    for (const auto& same : {one_cycle, cosine, warm, constant}) {
      INFO(steps << " and then " << more);
      CHECK(goes_on(same, steps, same, more));
    }
  CHECK(goes_on(warm, 40, warm, 120));
  // A warm-up of one length, which is no large part of what is shorter for it.
  for (const std::int64_t length : {1, 5, 10, 30}) {
    INFO("warm-up of " << length);
    const Make after = [&](auto n) { return optim::warm_up(length, optim::cosine(0.1, n - length)); };
    const Make beside = [&](auto n) { return optim::warm_up(length, optim::cosine(0.1, n)); };
    if (length <= 10) CHECK(goes_on(after, 60, after, 120));
    CHECK(goes_on(beside, 60, beside, 120));
    CHECK(goes_on(beside, 60, beside, 70));
  }
  CHECK_FALSE(goes_on(
      one_cycle, 3, [](auto n) { return optim::one_cycle(0.1, n); }, 8));
  CHECK_FALSE(goes_on(
      constant, 10, [](auto) { return optim::constant(0.014); }, 20));
  CHECK_FALSE(goes_on(cosine, 20, constant, 40));
  CHECK_FALSE(goes_on(
      cosine, 20, [](auto n) { return optim::cosine(0.03, n); }, 40));
  CHECK_FALSE(goes_on(cosine, 20, cosine, 40, {.norm = 1}));
}

TEST_CASE("fit: a checkpoint that does not fit changes nothing") {
  const auto points = make_points(24);
  const clnet::test::Folder folder;
  const auto path = checkpoint_of_an_epoch(folder);
  const auto saved = io::load_safetensors(path);

  auto model = make_model(8);
  const auto before = model.state_dict().front().second.to_vector<float>();
  const auto attempt = [&](const io::StateDict& tensors, std::map<std::string, std::string> metadata, bool sealed = true) {
    // With the right check sum, so that it is not what is refused.
    if (sealed) metadata["checksum"] = train::checkpoint_checksum(tensors, metadata);
    io::save_safetensors(path, tensors, metadata);
    train::FitOptions resume{.epochs = 2, .batch_size = 8, .optimizer = optim::Adam(model), .seed = 3};
    resume.checkpoint = folder.path();
    resume.resume = true;
    resume.progress = false;
    CHECK_THROWS_AS(train::fit(model, points, resume), FileError);
    CHECK(model.state_dict().front().second.to_vector<float>() == before);
    CHECK(resume.optimizer.steps() == 0);
  };
  const auto with = [&](const std::string& key, const std::string& value) {
    auto metadata = saved.metadata;
    metadata[key] = value;
    return metadata;
  };
  attempt(saved.tensors, {});
  attempt(saved.tensors, with("checksum", "00000000"), false);
  attempt(saved.tensors, with("dataset", "00000000"));
  attempt(saved.tensors, with("normalization", "0x1p+0 and 0x1p+0"));
  attempt(saved.tensors, with("rates", "0x1p-3, 0x1p-3, 0x1p-3"));
  attempt(saved.tensors, with("format", "clnet checkpoint 999"));
  attempt(saved.tensors, with("steps", "-1"));
  attempt(saved.tensors, with("steps", "4"));
  attempt(saved.tensors, with("epochs", "9223372036854775807"));
  attempt(saved.tensors, with("epoch loss", "nan"));
  attempt(saved.tensors, with("random offset", "many"));
  attempt(saved.tensors, with("samples", "25"));
  attempt(saved.tensors, with("solvers", "{}"));
  attempt(saved.tensors, with("solvers", saved.metadata.at("solvers") + "}"));
  auto fewer = saved.tensors;
  fewer.pop_back();
  attempt(fewer, saved.metadata);
  auto more = saved.tensors;
  more.emplace_back("stranger", zeros({1}));
  attempt(more, saved.metadata);
}

TEST_CASE("fit: a checkpoint from before samples could be changed goes on where none are") {
  const auto points = make_points(24);
  const clnet::test::Folder folder;
  auto model = make_model();
  const auto run = [&](std::int64_t epochs, const data::Augmentation& augmentation) {
    train::FitOptions options{.epochs = epochs, .batch_size = 8, .optimizer = optim::Adam(model), .augmentation = augmentation};
    options.checkpoint = folder.path();
    options.resume = epochs > 1;
    options.progress = false;
    return train::fit(model, points, options);
  };
  run(1, {});
  const auto path = folder / "checkpoint.safetensors";
  auto saved = io::load_safetensors(path);
  saved.metadata.erase("augmentation");
  saved.metadata["checksum"] = train::checkpoint_checksum(saved.tensors, saved.metadata);
  io::save_safetensors(path, saved.tensors, saved.metadata);
  CHECK_THROWS_WITH(run(2, {.change = [](const data::Sample&) {}}), Catch::Contains("samples changed otherwise"));
  CHECK(run(2, {}).epochs.size() == 1);
}

TEST_CASE("fit: a training that goes on computes with the solvers of its checkpoint") {
  const auto points = make_points(24);
  const clnet::test::Folder folder;
  auto& plans = exec::PlanCache::of(*context_of(Device::current()));
  const auto run = [&](std::int64_t epochs) {
    auto model = make_model(11);
    train::FitOptions options{.epochs = epochs, .batch_size = 8, .optimizer = optim::Adam(model)};
    options.checkpoint = folder.path();
    options.resume = epochs > 1;
    options.progress = false;
    return train::fit(model, points, options).epochs.size();
  };
  CHECK(run(1) == 1);
  const auto path = folder / "checkpoint.safetensors";
  auto saved = io::load_safetensors(path);
  const auto rewrite = [&](const std::string& solvers) {
    saved.metadata["solvers"] = solvers;
    saved.metadata["checksum"] = train::checkpoint_checksum(saved.tensors, saved.metadata);
    io::save_safetensors(path, saved.tensors, saved.metadata);
  };
  const auto own = nlohmann::json::parse(saved.metadata.at("solvers"));
  const auto products = [](const std::string& solvers, const auto& use) {
    auto content = nlohmann::json::parse(solvers);
    for (auto& [problem, choice] : content["choices"].items())
      if (problem.starts_with("matmul ")) use(choice);
    return content;
  };
  const auto direct_of = [&](const std::string& solvers) {
    std::pair<int, int> direct_and_others;
    products(solvers, [&](const auto& choice) { ++(choice == "direct" ? direct_and_others.first : direct_and_others.second); });
    return direct_and_others;
  };
  CHECK(direct_of(own.dump()).second > 0);
  auto others = products(own.dump(), [](auto& choice) { choice = "direct"; });
  rewrite(others.dump());
  CHECK(run(2) == 1);
  CHECK(direct_of(io::load_safetensors(path).metadata.at("solvers")).second == 0);
  // What was computed, whatever is followed.
  CHECK(plans.follow({own["for"], {}}));
  CHECK(direct_of(plans.choices()).first > 0);
  CHECK(direct_of(plans.choices()).second == 0);

  // Another device's say nothing, and are no hindrance.
  saved = io::load_safetensors(path);
  others["for"] = "another device";
  others = products(others.dump(), [](auto& choice) { choice = "skinny_cpu"; });
  rewrite(others.dump());
  CHECK(run(3) == 1);
  CHECK(direct_of(plans.choices()).second == 0);
  // Nor do those from before there were any.
  saved = io::load_safetensors(path);
  saved.metadata.erase("solvers");
  saved.metadata["checksum"] = train::checkpoint_checksum(saved.tensors, saved.metadata);
  io::save_safetensors(path, saved.tensors, saved.metadata);
  CHECK(run(4) == 1);
  CHECK(plans.follow(exec::StoredChoices::parse(own.dump())));
}

TEST_CASE("fit: a flipped bit anywhere in a checkpoint is noticed, and changes nothing") {
  const auto points = make_points(24);
  const clnet::test::Folder folder;
  const auto path = checkpoint_of_an_epoch(folder);
  const auto whole = clnet::test::content(path);
  const auto header_end =
      whole.find_last_of('}', 8 + static_cast<std::size_t>(*reinterpret_cast<const std::uint64_t*>(whole.data())));
  auto model = make_model(8);
  const auto before = model.state_dict().front().second.to_vector<float>();
  const auto data_begin = 8 + static_cast<std::size_t>(*reinterpret_cast<const std::uint64_t*>(whole.data()));
  int flipped = 0;
  for (std::size_t at = 0; at < whole.size(); at += 13) {
    if (at > header_end && at < data_begin) continue;  // blanks that fill up the header
    auto damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
    folder.write("checkpoint.safetensors", damaged);
    train::FitOptions resume{.epochs = 2, .batch_size = 8, .optimizer = optim::Adam(model, {.learning_rate = 1e-2}), .seed = 3};
    resume.checkpoint = folder.path();
    resume.resume = true;
    resume.progress = false;
    INFO("byte " << at);
    CHECK_THROWS_AS(train::fit(model, points, resume), FileError);
    ++flipped;
  }
  CHECK(flipped > 100);
  CHECK(model.state_dict().front().second.to_vector<float>() == before);
}

TEST_CASE("fit: a checkpoint goes on only with its data, normalisation and schedule") {
  const auto points = make_points(24), validation = make_points(12, 1);
  const clnet::test::Folder folder;
  const auto go_on = [&](const data::Dataset& dataset, const optim::Schedule& schedule, std::int64_t epochs,
                         const optim::Schedule& momentum = nullptr) {
    auto model = make_model();
    const optim::SGD sgd(model, {.momentum = 0.9});
    train::FitOptions options{.epochs = epochs, .batch_size = 8, .optimizer = sgd, .schedule = schedule, .momentum = momentum};
    options.checkpoint = folder.path();
    options.resume = true;
    options.progress = false;
    train::fit(model, dataset, options);
  };
  go_on(points, optim::cosine(0.1, 30), 1);
  using Catch::Contains;
  CHECK_THROWS_WITH(go_on(make_points(24, 1), optim::cosine(0.1, 30), 2), Contains("other samples"));
  auto normalised = points;
  normalised.mean.assign(4, 0.5F);
  normalised.std.assign(4, 2.0F);
  CHECK_THROWS_WITH(go_on(normalised, optim::cosine(0.1, 30), 2), Contains("normalised otherwise"));
  CHECK_THROWS_WITH(go_on(points, optim::cosine(0.1, 40), 1), Contains("schedule"));
  CHECK_THROWS_WITH(go_on(points, optim::constant(0.2), 2), Contains("schedule"));
  CHECK_THROWS_WITH(go_on(points, nullptr, 2), Contains("schedule"));
  CHECK_THROWS_WITH(go_on(points, optim::cosine(0.1, 30), 2, optim::constant(0.9)), Contains("schedule of the momentum"));
  // One from before momenta had schedules.
  const auto path = folder / "checkpoint.safetensors";
  auto saved = io::load_safetensors(path);
  CHECK(saved.metadata.erase("momenta") == 1);
  saved.metadata["checksum"] = train::checkpoint_checksum(saved.tensors, saved.metadata);
  io::save_safetensors(path, saved.tensors, saved.metadata);
  CHECK_THROWS_WITH(go_on(points, optim::cosine(0.1, 30), 2, optim::constant(0.9)), Contains("schedule of the momentum"));
  CHECK_NOTHROW(go_on(points, optim::cosine(0.1, 30), 2));
}

TEST_CASE("fit: a stopped training goes on through a cycle of rate and momentum") {
  const auto points = make_points(24);
  const auto rate = optim::cyclic(0.01, 0.05, {.up = 3}), momentum = optim::cyclic_momentum({.up = 3});
  const auto trained = [&](const clnet::test::Folder& folder, const std::vector<std::int64_t>& stops) {
    std::vector<float> weights;
    for (const auto steps : stops) {
      manual_seed(7);
      auto model = make_model();
      train::FitOptions options{
          .steps = steps, .batch_size = 8, .optimizer = optim::AdamW(model), .schedule = rate, .momentum = momentum};
      options.checkpoint = folder.path();
      options.resume = true;
      options.progress = false;
      train::fit(model, points, options);
      weights = model.state_dict().front().second.to_vector<float>();
    }
    return weights;
  };
  const clnet::test::Folder at_once, in_parts;
  CHECK(trained(at_once, {9}) == trained(in_parts, {4, 9}));
}

TEST_CASE("fit: a checkpoint knows samples of bytes, too") {
  auto samples = make_points(24);
  for (float value : samples.floats) samples.bytes.push_back(static_cast<std::uint8_t>(100 + 30 * value));
  samples.floats.clear();
  const clnet::test::Folder folder;
  const auto go_on = [&](std::int64_t epochs) {
    auto model = make_model();
    train::FitOptions options{.epochs = epochs, .batch_size = 8, .optimizer = optim::SGD(model, {})};
    options.checkpoint = folder.path();
    options.resume = true;
    options.progress = false;
    train::fit(model, samples, options);
  };
  go_on(1);
  ++samples.bytes[5];
  CHECK_THROWS_WITH(go_on(2), Catch::Contains("other samples"));
  --samples.bytes[5];
  CHECK_NOTHROW(go_on(2));
}
