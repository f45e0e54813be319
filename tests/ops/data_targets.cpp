// Datasets of numbers to be predicted and of labels for pixels and elements, and samples that are changed in each epoch.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "clnet/clnet.h"
#include "tests/ops/values.h"

using namespace clnet;
using testing::counting;
using testing::Floats;

namespace {

using Labels = std::vector<std::int32_t>;

Floats reversed_rows(Floats values, std::size_t width) {
  for (std::size_t i = 0; i < values.size(); i += width)
    std::reverse(values.begin() + static_cast<std::ptrdiff_t>(i), values.begin() + static_cast<std::ptrdiff_t>(i + width));
  return values;
}

}  // namespace

TEST_CASE("batches have several labels for each sample, or numbers") {
  const auto tagged = data::from_arrays(counting(12), {3}, Labels{0, 1, 2, 2, 1, 0, 0, -100, 1, 1, 1, 1}, Shape{3}, 3);
  CHECK(tagged.size() == 4);
  std::vector<Shape> shapes;
  Labels labels;
  for (const auto& batch : data::batches(tagged, {.batch_size = 3})) {
    shapes.push_back(batch.labels.shape());
    for (auto label : batch.labels.to_vector<std::int32_t>()) labels.push_back(label);
  }
  CHECK(shapes == std::vector<Shape>{{3, 3}, {1, 3}});
  CHECK(labels == tagged.labels);

  const auto numbers = data::from_arrays(counting(8), {2}, Floats{1.5F, -2, 3, 4}, Shape{});
  CHECK(numbers.size() == 4);
  for (const auto& batch : data::batches(numbers, {.batch_size = 4})) {
    CHECK(batch.labels.spec() == Spec{Shape{4}, Dtype::f32});
    CHECK(batch.labels.to_vector<float>() == numbers.targets);
  }
  const auto pairs = data::from_arrays(counting(8), {4}, Floats{1, 2, 3, 4}, Shape{2});
  CHECK(pairs.size() == 2);
}

TEST_CASE("datasets whose parts do not fit are refused") {
  using Catch::Contains;
  CHECK_THROWS_WITH(data::from_arrays(counting(12), {3}, Labels(11, 0), Shape{3}, 3), Contains("11 labels"));
  CHECK_THROWS_WITH(data::from_arrays(counting(12), {3}, Labels(9, 0), Shape{3}, 3), Contains("got 12"));
  CHECK_THROWS_WITH(data::from_arrays(counting(3), {3}, Labels{0, 5, 0}, Shape{3}, 3), Contains("label 5 of sample 0"));
  CHECK_THROWS_WITH(data::from_arrays(counting(3), {3}, Labels{-100}, 3), Contains("label -100"));
  CHECK_THROWS_WITH(data::from_arrays(counting(8), {2}, Floats(3, 0), Shape{}), Contains("3 targets"));
  CHECK_THROWS_WITH(data::from_arrays(Floats{}, {2}, Floats{}, Shape{}), Contains("there are no samples"));
  auto both = data::from_arrays(counting(8), {2}, Floats(4, 0), Shape{});
  both.labels = Labels(4, 0);
  CHECK_THROWS_WITH(data::batches(both, {}), Contains("both labels and targets"));
  const auto flat = data::from_arrays(counting(8), {2}, Floats(4, 0), Shape{});
  CHECK_THROWS_WITH(data::batches(flat, {.augmentation = {.flip = true}}), Contains("no images"));
  const auto image = data::from_arrays(counting(8), {2, 4}, Labels{0}, 1);
  CHECK_THROWS_WITH(data::batches(image, {.augmentation = {.shift = 2}}), Contains("out of sight"));
  CHECK_THROWS_WITH(data::batches(image, {.augmentation = {.shift = -1}}), Contains("at least 0"));
}

TEST_CASE("half of the images are mirrored, with what lies on their pixels") {
  constexpr std::size_t samples = 64, pixels = 2 * 3;
  Labels labels(samples * pixels);
  std::iota(labels.begin(), labels.end(), 0);
  const auto dataset =
      data::from_arrays(counting(2 * samples * pixels), {2, 2, 3}, labels, Shape{2, 3}, static_cast<std::int64_t>(labels.size()));
  int mirrored = 0;
  for (const auto& [images, found] : data::batches(dataset, {.batch_size = 64, .augmentation = {.flip = true}})) {
    const auto values = images.to_vector<float>();
    const auto classes = found.to_vector<float>();
    for (std::size_t n = 0; n < samples; ++n) {
      const Floats plain(dataset.floats.begin() + static_cast<std::ptrdiff_t>(2 * n * pixels),
                         dataset.floats.begin() + static_cast<std::ptrdiff_t>(2 * (n + 1) * pixels));
      const Floats image(values.begin() + static_cast<std::ptrdiff_t>(2 * n * pixels),
                         values.begin() + static_cast<std::ptrdiff_t>(2 * (n + 1) * pixels));
      const Floats its(classes.begin() + static_cast<std::ptrdiff_t>(n * pixels),
                       classes.begin() + static_cast<std::ptrdiff_t>((n + 1) * pixels));
      Floats expected(pixels);
      std::iota(expected.begin(), expected.end(), static_cast<float>(n * pixels));
      const bool is_mirrored = image != plain;
      mirrored += is_mirrored;
      CHECK(image == (is_mirrored ? reversed_rows(plain, 3) : plain));
      CHECK(its == (is_mirrored ? reversed_rows(expected, 3) : expected));
    }
  }
  CHECK(mirrored > 16);
  CHECK(mirrored < 48);
}

TEST_CASE("shifted images come over black ones, and labels that nothing was at do not count") {
  constexpr std::size_t samples = 50;
  auto dataset = data::from_arrays(Floats(samples * 16, 5.0F), {1, 4, 4}, Labels(samples * 16, 1), Shape{4, 4}, 2);
  dataset.mean = {3.0F};
  dataset.std = {2.0F};
  std::size_t moved = 0;
  for (const auto& [images, labels] : data::batches(dataset, {.batch_size = 50, .augmentation = {.shift = 1}})) {
    const auto values = images.to_vector<float>();
    const auto classes = labels.to_vector<std::int32_t>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool black = values[i] == -1.5F;
      CHECK((black || values[i] == 1.0F));
      CHECK(classes[i] == (black ? -100 : 1));
      moved += black;
    }
  }
  CHECK(moved > samples);
}

TEST_CASE("images without channels are moved as well, over what black is in each row") {
  constexpr std::size_t samples = 50;
  auto dataset = data::from_arrays(Floats(samples * 12, 9.0F), {3, 4}, Labels(samples, 0), 1);
  dataset.mean = {3.0F, 5.0F, 7.0F};
  dataset.std = {2.0F, 2.0F, 2.0F};
  std::size_t moved = 0;
  for (const auto& [images, labels] : data::batches(dataset, {.batch_size = 50, .augmentation = {.flip = true, .shift = 1}})) {
    const auto values = images.to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto mean = dataset.mean[i / 4 % 3];
      moved += values[i] == -mean / 2;
      CHECK((values[i] == -mean / 2 || values[i] == 1.0F || values[i] == 2.0F || values[i] == 3.0F));
    }
  }
  CHECK(moved > samples);
}

TEST_CASE("changes are the same for seed, epoch and sample, whatever the batches are") {
  const auto dataset = data::from_arrays(counting(40 * 16), {1, 4, 4}, Floats(40, 0), Shape{1});
  const auto all = [&](std::int64_t batch_size, std::uint64_t seed, std::uint64_t epoch, std::int64_t start = 0) {
    Floats values;
    const auto own = [](const data::Sample& sample) { sample.targets[0] = static_cast<float>(sample.random % 1000); };
    for (const auto& [images, targets] : data::batches(dataset, {.batch_size = batch_size,
                                                                .shuffle = true,
                                                                .seed = seed,
                                                                .epoch = epoch,
                                                                .start = start,
                                                                .augmentation = {.flip = true, .shift = 2, .change = own}})) {
      const auto x = images.to_vector<float>(), y = targets.to_vector<float>();
      for (std::size_t n = 0; n < y.size(); ++n) {
        values.insert(values.end(), x.begin() + static_cast<std::ptrdiff_t>(16 * n),
                      x.begin() + static_cast<std::ptrdiff_t>(16 * (n + 1)));
        values.push_back(y[n]);
      }
    }
    return values;
  };
  const auto whole = all(8, 1, 0);
  CHECK(all(20, 1, 0) == whole);
  CHECK(all(8, 1, 0, 2) == Floats(whole.begin() + 2 * 8 * 17, whole.end()));
  CHECK(all(8, 2, 0) != whole);
  CHECK(all(8, 1, 1) != whole);
}

TEST_CASE("numbers are learned to be predicted") {
  Floats samples, targets;
  for (int i = 0; i < 200; ++i) {
    const auto a = static_cast<float>(i % 17) / 17, b = static_cast<float>(i % 11) / 11;
    samples.insert(samples.end(), {a, b});
    targets.push_back(2 * a - b + 0.5F);
  }
  const auto dataset = data::from_arrays(samples, {2}, targets, Shape{1});
  nn::Sequential model{nn::Linear{2, 1}};
  const auto result = train::fit(model, dataset,
                                 {.epochs = 30,
                                  .batch_size = 20,
                                  .optimizer = optim::Adam{model, {.learning_rate = 0.05}},
                                  .validation = dataset,
                                  .progress = false});
  CHECK(result.epochs.back().validation->loss < 1e-3);
  CHECK(std::isnan(result.epochs.back().validation->accuracy));
  nn::Sequential wrong{nn::Linear{2, 3}};
  CHECK_THROWS_WITH(train::evaluate(wrong, dataset), Catch::Contains("targets"));
}

TEST_CASE("a batch in which no label counts teaches nothing, and ends nothing") {
  const std::vector<float> samples(8 * 4, 0.5F);
  Labels labels(8 * 4, 1);
  std::fill(labels.begin(), labels.begin() + 8, -100);
  const auto dataset = data::from_arrays(samples, {1, 2, 2}, labels, Shape{2, 2}, 2);
  nn::Sequential model{nn::Conv2d{1, 2, 1}};
  const auto before = train::evaluate(model, dataset, 2).loss;
  CHECK(before == Approx(train::evaluate(model, dataset, 8).loss));
  const auto result = train::fit(model, dataset,
                                 {.epochs = 4,
                                  .batch_size = 2,
                                  .optimizer = optim::SGD{model, {.learning_rate = 0.1}},
                                  .validation = dataset,
                                  .shuffle = false,
                                  .progress = false});
  CHECK(result.epochs.back().validation->loss < before);
}

TEST_CASE("pixels are learned to be told apart, and what is ignored does not count") {
  Floats samples;
  Labels labels;
  for (int n = 0; n < 32; ++n)
    for (int i = 0; i < 36; ++i) {
      const bool bright = (i * 7 + n * 5) % 3 == 0;
      samples.push_back(bright ? 1.0F : 0.0F);
      labels.push_back(i == 0 ? -100 : bright);
    }
  const auto dataset = data::from_arrays(samples, {1, 6, 6}, labels, Shape{6, 6}, 2);
  nn::Sequential model{nn::Conv2d{1, 4, 3, {.padding = 1}}, relu, nn::Conv2d{4, 2, 1}};
  const auto result = train::fit(model, dataset,
                                 {.epochs = 25,
                                  .batch_size = 8,
                                  .optimizer = optim::Adam{model, {.learning_rate = 0.05}},
                                  .validation = dataset,
                                  .augmentation = {.flip = true},
                                  .progress = false});
  CHECK(result.epochs.back().validation->accuracy > 0.99);
  CHECK(result.epochs.back().validation->accuracy <= 1.0);
  nn::Sequential wrong{nn::Conv2d{1, 2, 3}};
  CHECK_THROWS_WITH(train::evaluate(wrong, dataset), Catch::Contains("dimension of classes"));
}
