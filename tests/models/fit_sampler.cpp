// train::fit with a sampler: its epochs, and resuming in the middle of one.
#include <catch2/catch.hpp>

#include "tests/models/fit_runs.h"

namespace clnet::test {
namespace {

using Catch::Contains;

TEST_CASE("fit: a sampler gives the epochs' samples, and a run in pieces has those of a whole one") {
  const auto points = make_points(24), validation = make_points(12, 1);
  const auto sampler = data::balanced_sampler(data::labels_of(points), 20);
  train::FitOptions options{.epochs = 3};
  options.sampler = sampler;
  const auto whole = record(points, validation, options);
  CHECK(whole.losses.size() == 9);  // 20 samples in batches of 8
  const Folder folder;
  options.checkpoint = folder.path();
  options.epochs = 1;
  options.steps = 5;
  options.checkpoint_steps = 1;
  record(points, validation, options);
  options.steps = 9;
  options.resume = true;
  const auto rest = record(points, validation, options);
  REQUIRE(rest.losses.size() == 4);
  CHECK(std::vector<double>(whole.losses.begin() + 5, whole.losses.end()) == rest.losses);
  CHECK(whole.weights == rest.weights);
  // Others would be another run.
  options.steps = 12;
  options.sampler = data::balanced_sampler(data::labels_of(points), 21);
  CHECK_THROWS_WITH(record(points, validation, options), Contains("was made with samples 20, not 21"));
  options.sampler = data::weighted_sampler(std::vector<double>(24, 1), {.samples = 20, .replacement = false});
  CHECK_THROWS_WITH(record(points, validation, options), Contains("was made with other samples"));
  options.sampler = std::nullopt;
  CHECK_THROWS_WITH(record(points, validation, options), Contains("was made with samples 20, not 24"));
}

TEST_CASE("batches have the samples of a sampler, in memory and behind a subset, with any number of workers") {
  const auto points = make_points(24);
  const data::Subset half(points, {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22});
  const data::ConcatDataset twice({&half, &half});
  const auto sampler = data::weighted_sampler(std::vector<double>(24, 1), {.samples = 17, .replacement = false});
  const auto order = sampler.order(4, 2);
  for (const data::Dataset* dataset : {static_cast<const data::Dataset*>(&points), static_cast<const data::Dataset*>(&twice)})
    for (const std::int64_t workers : {0, 3}) {
      std::size_t at = 0;
      for (const auto& [x, labels] :
           data::batches(*dataset, {.batch_size = 5, .seed = 4, .epoch = 2, .workers = workers, .sampler = sampler})) {
        const auto values = x.to_vector<float>();
        const auto classes = labels.to_vector<std::int32_t>();
        for (std::size_t i = 0; i < classes.size(); ++i, ++at) {
          const auto sample = dataset->get(order.at(at), 0);
          CHECK(sample[0].values<float>()[3] == values[4 * i + 3]);
          CHECK(sample[1].values<std::int32_t>()[0] == classes[i]);
        }
      }
      CHECK(at == 17);
    }
}

TEST_CASE("fit: a sampler without samples is refused") {
  train::FitOptions options{.epochs = 1};
  options.sampler = data::Sampler{.order = [](std::uint64_t, std::uint64_t) { return std::vector<std::int64_t>(); }};
  CHECK_THROWS_WITH(record(make_points(24), make_points(12, 1), options), Contains("the sampler gives no samples"));
}

}  // namespace
}  // namespace clnet::test
