// io::save_checkpoint() and load_checkpoint(): loops of one's own that go on as if they had not been stopped, and files that do
// not fit.
#include <catch2/catch.hpp>
#include <fstream>

#include "clnet/clnet.h"
#include "tests/models/fit_runs.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
namespace fs = std::filesystem;

namespace {

struct Killed {};

/// A loop of one's own with all that has a state. It saves after every other step, and dies at `end`.
struct OwnLoop {
  nn::Sequential model;
  optim::Adam adam;
  optim::EMA average;
  optim::Scheduler scheduler;
  optim::Plateau plateau{1};
  metrics::F1 f1{3};
  std::int64_t step = 0;
  double best = 1e300;
  std::vector<double> losses;

  explicit OwnLoop(std::uint64_t seed)
      : model(make_model(seed)),
        adam(model, 1e-2),
        average(model, {.decay = 0.9, .warm_up = true}),
        scheduler(adam, optim::cosine(1e-2, 20), nullptr) {}

  void save(const fs::path& path) const {
    io::save_checkpoint(path,
                        {{"model", model},
                         {"optimizer", adam},
                         {"ema", average},
                         {"schedule", scheduler},
                         {"plateau", plateau},
                         {"f1", f1},
                         {"step", step},
                         {"best", best}},
                        {{"run", "seven"}});
  }
  std::map<std::string, std::string> load(const fs::path& path) {
    return io::load_checkpoint(path, {{"model", model},
                                      {"optimizer", adam},
                                      {"ema", average},
                                      {"schedule", scheduler},
                                      {"plateau", plateau},
                                      {"f1", f1},
                                      {"step", step},
                                      {"best", best}});
  }

  void run(const data::Dataset& points, const fs::path& path, std::int64_t end) {
    while (step < 20) {
      const data::BatchOptions options{
          .batch_size = 8, .shuffle = true, .seed = 3, .epoch = static_cast<std::uint64_t>(step / 7), .start = step % 7};
      for (const auto& [x, labels] : data::batches(points, options)) {
        const Tensor output = model(x);
        auto more = f1.update(output, labels);
        const auto loss = cross_entropy(output, labels);
        if (step % 3 == 0)
          losses.push_back(adam.accumulate(loss, more).item<double>());
        else
          losses.push_back(adam.step(loss, more).item<double>());
        scheduler.step();
        average.update();
        best = std::min(best, losses.back());
        plateau.step(losses.back());
        ++step;
        if (step % 2 == 0) save(path);
        if (step >= end) throw Killed{};
        if (step == 20) break;
      }
    }
  }

  std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> all;
    for (const auto& state : {model.state_dict(), adam.state_dict(), average.state_dict(), plateau.state_dict(), f1.state_dict()})
      for (const auto& [name, tensor] : state) all.push_back(tensor.to_vector<float>());
    return all;
  }
};

std::string file_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("own checkpoints: a loop that was killed and goes on gives the numbers of a whole one, bit for bit") {
  const auto points = make_points(53);
  const clnet::test::Folder folder;
  OwnLoop whole(5);
  whole.run(points, folder / "whole.safetensors", 1000);
  REQUIRE(whole.losses.size() == 20);
  const auto path = folder / "run.safetensors";
  std::vector<double> losses;
  std::uint64_t seed = 5;
  for (const std::int64_t end : {3, 4, 9, 14, 1000}) {
    OwnLoop piece(seed);
    seed = 77;  // other weights than at the start, which the checkpoint replaces
    if (fs::exists(path)) CHECK(piece.load(path) == std::map<std::string, std::string>{{"run", "seven"}});
    losses.resize(static_cast<std::size_t>(piece.step));
    try {
      piece.run(points, path, end);
      CHECK(piece.values() == whole.values());
      CHECK(piece.best == whole.best);
      CHECK(piece.f1.value() == whole.f1.value());
    } catch (const Killed&) {
    }
    losses.insert(losses.end(), piece.losses.begin(), piece.losses.end());
  }
  CHECK(losses == whole.losses);
}

TEST_CASE("own checkpoints: what does not fit is named, and nothing changes") {
  const clnet::test::Folder folder;
  const auto path = folder / "run.safetensors";
  auto model = make_model();
  optim::Adam adam(model, 1e-3);
  std::int64_t step = 7;
  io::save_checkpoint(path, {{"model", model}, {"optimizer", adam}, {"step", step}});

  auto other = make_model(8);
  const auto before = other.state_dict();
  optim::Adam its(other, 1e-3);
  optim::EMA average(other, 0.9);
  const auto is_unchanged = [&] {
    const auto after = other.state_dict();
    for (std::size_t i = 0; i < after.size(); ++i)
      if (!equal(after[i].second, before[i].second)) return false;
    return true;
  };
  std::int64_t now = 1;
  CHECK_THROWS_WITH(io::load_checkpoint(path, {{"model", other}, {"ema", average}}),
                    Catch::Contains("run.safetensors: has no part 'ema', only model, optimizer, step"));
  CHECK_THROWS_WITH(io::load_checkpoint(path, {{"model", other}, {"step", now}}),
                    Catch::Contains("has a part 'optimizer', for which nothing was given"));
  // The model fits, and takes back its own weights when the optimizer does not.
  optim::SGD sgd(other, {.learning_rate = 0.1, .momentum = 0.9});
  CHECK_THROWS_WITH(io::load_checkpoint(path, {{"model", other}, {"optimizer", sgd}, {"step", now}}),
                    Catch::Contains("part 'optimizer': the state does not fit the optimizer: "));
  CHECK(is_unchanged());
  CHECK(now == 1);
  nn::Sequential small{nn::Linear{4, 3}};
  CHECK_THROWS_WITH(io::load_checkpoint(path, {{"model", small}}, {.some_parts = true}), Catch::Contains("part 'model': "));
  double real = 0;
  CHECK_THROWS_WITH(io::load_checkpoint(path, {{"step", real}}, {.some_parts = true}),
                    Catch::Contains("part 'step': the state does not fit the number: value is i64[], not f32[3]"));
  CHECK(is_unchanged());

  // A part of it, without the random state.
  manual_seed(99);
  io::load_checkpoint(path, {{"model", other}}, {.some_parts = true, .random_state = false});
  CHECK(random_state().seed == 99);
  CHECK_FALSE(is_unchanged());
  io::load_checkpoint(path, {{"model", other}, {"optimizer", its}, {"step", now}});
  CHECK(now == 7);

  CHECK_THROWS_WITH(io::save_checkpoint(path, {{"a.b", model}}), Catch::Contains("'a.b' is no name of a part"));
  CHECK_THROWS_WITH(io::save_checkpoint(path, {{"a", model}, {"a", adam}}), Catch::Contains("two parts are called 'a'"));
  CHECK_THROWS_WITH(io::save_checkpoint(path, {{"a", model}}, {{"clnet.x", ""}}), Catch::Contains("are clnet's"));
  CHECK_THROWS_WITH(io::load_checkpoint(folder / "none", {{"model", other}}), Catch::Contains("none: "));
  io::save_safetensors(folder / "weights", model.state_dict());
  CHECK_THROWS_WITH(io::load_checkpoint(folder / "weights", {{"model", other}}),
                    Catch::Contains("weights: is no checkpoint of io::save_checkpoint()"));
}

TEST_CASE("own checkpoints: a flipped bit anywhere is noticed, and changes nothing") {
  const clnet::test::Folder folder;
  const auto path = folder / "run.safetensors";
  nn::Sequential model{nn::Linear{2, 2}};
  std::int64_t step = 7;
  double rate = 0.1;
  io::save_checkpoint(path, {{"model", model}, {"step", step}, {"rate", rate}});
  const auto good = file_bytes(path);
  const auto weights = model.state_dict()[0].second.to_vector<float>();
  for (std::size_t at = 0; at < good.size(); at += 3) {
    auto bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    std::ofstream(path, std::ios::binary) << bad;
    INFO("byte " << at);
    CHECK_THROWS_AS(io::load_checkpoint(path, {{"model", model}, {"step", step}, {"rate", rate}}), Error);
  }
  CHECK(model.state_dict()[0].second.to_vector<float>() == weights);
  CHECK(step == 7);
}

TEST_CASE("own checkpoints: a scheduler goes on by the same schedule only") {
  auto model = make_model();
  optim::SGD sgd(model, {.learning_rate = 0.5, .momentum = 0.9});
  optim::Scheduler scheduler(sgd, optim::one_cycle(0.1, 10), optim::one_cycle_momentum(10));
  CHECK(sgd.learning_rate() == optim::one_cycle(0.1, 10)(0));
  for (int i = 0; i < 4; ++i) scheduler.step();
  CHECK(sgd.learning_rate() == optim::one_cycle(0.1, 10)(4));
  const auto state = scheduler.state_dict();
  optim::Scheduler same(sgd, optim::one_cycle(0.1, 10), optim::one_cycle_momentum(10));
  CHECK(sgd.learning_rate() == optim::one_cycle(0.1, 10)(0));
  same.load_state_dict(state);
  CHECK(same.steps() == 4);
  CHECK(sgd.learning_rate() == optim::one_cycle(0.1, 10)(4));
  CHECK(*sgd.momentum() == optim::one_cycle_momentum(10)(4));
  optim::Scheduler other(sgd, optim::one_cycle(0.2, 10), optim::one_cycle_momentum(10));
  CHECK_THROWS_WITH(other.load_state_dict(state), Catch::Contains("the state does not fit the schedule: the rate of step 4 is "));
  CHECK(other.steps() == 0);
  optim::Scheduler less(sgd, optim::one_cycle(0.1, 10));
  CHECK_THROWS_WITH(less.load_state_dict(state), Catch::Contains("momentum is not known"));
  CHECK_THROWS_WITH(optim::Scheduler(sgd, nullptr), Catch::Contains("without a schedule"));
  const auto compiled = compile([&](const Tensor& x) {
    same.step();
    return x + 1.0;
  });
  CHECK_THROWS_WITH(compiled(ones({1})), Catch::Contains("Scheduler::step: not inside compile()"));
}
