#include "clnet/data/mixing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "clnet/error.h"
#include "lib/data/epoch_order.h"

namespace clnet::data {
namespace {

constexpr std::int64_t most_classes = 1'000'000;

double standard_normal(SampleRandom& random) {
  const double radius = std::sqrt(-2 * std::log(random.inside_unit()));
  return radius * std::cos(2 * std::numbers::pi * random.inside_unit());
}

/// The logarithm of a number with the density x^(alpha - 1) e^-x (Marsaglia, Tsang: A simple method for generating gamma
/// variables, 2000). Logarithms, as small alphas give numbers near 0.
double log_gamma_variate(SampleRandom& random, double alpha) {
  if (alpha < 1) return log_gamma_variate(random, alpha + 1) + std::log(random.inside_unit()) / alpha;
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = standard_normal(random), v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(random.inside_unit()) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

double beta_variate(SampleRandom& random, double alpha) {
  const double a = log_gamma_variate(random, alpha), b = log_gamma_variate(random, alpha);
  return 1 / (1 + std::exp(b - a));
}

/// A rectangle of about `share` of the area.
struct Rectangle {
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;
};

Rectangle random_rectangle(std::int64_t height, std::int64_t width, double share, SampleRandom& random) {
  const auto y = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(height)));
  const auto x = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(width)));
  const double half = 0.5 * std::sqrt(share);
  const auto half_height = static_cast<std::int64_t>(half * static_cast<double>(height));
  const auto half_width = static_cast<std::int64_t>(half * static_cast<double>(width));
  return {.top = std::max<std::int64_t>(0, y - half_height),
          .bottom = std::min(height, y + half_height),
          .left = std::max<std::int64_t>(0, x - half_width),
          .right = std::min(width, x + half_width)};
}

template <class T>
void paste(Array& into, const Array& from, const Rectangle& part) {
  const auto height = into.shape[into.shape.rank() - 2], width = into.shape[into.shape.rank() - 1];
  const auto to = into.values<T>();
  const auto in = from.values<T>();
  for (std::size_t plane = 0; plane < to.size(); plane += static_cast<std::size_t>(height * width))
    for (auto y = part.top; y < part.bottom; ++y) {
      const auto row = plane + static_cast<std::size_t>(y * width);
      std::copy(in.begin() + static_cast<std::ptrdiff_t>(row) + part.left,
                in.begin() + static_cast<std::ptrdiff_t>(row) + part.right,
                to.begin() + static_cast<std::ptrdiff_t>(row) + part.left);
    }
}

void require_sample(const Example& example) {
  if (example.size() != 2) throw ShapeError(fmt::format("a sample of {} arrays, expected an input and a label", example.size()));
  if (example[0].dtype != Dtype::f32 || example[1].dtype != Dtype::i32)
    throw DtypeError(fmt::format("a sample of {} and {}, expected f32 and a label of i32", to_string(example[0].spec()),
                                 to_string(example[1].spec())));
}

void require_image(const Array& image) {
  if (image.shape.rank() < 2 || image.shape.numel() == 0)
    throw ShapeError(fmt::format("cutmix of {}, expected an image", to_string(image.spec())));
}

/// Adds a label's share to the probabilities.
void add_label(Array& probabilities, const Array& label, double share) {
  const auto values = probabilities.values<float>();
  const auto name = label.values<std::int32_t>()[0];
  if (name < 0 || std::cmp_greater_equal(name, values.size()))
    throw Error(fmt::format("the label {} is none of {} classes", name, values.size()));
  values[static_cast<std::size_t>(name)] += static_cast<float>(share);
}

}  // namespace

Mixed::Mixed(const Dataset& dataset, const MixOptions& options) : dataset_(&dataset), options_(options) {
  const auto invalid = [](const std::string& reason) { throw Error("mixed: " + reason); };
  constexpr double most_alpha = 1e6, least_alpha = 1e-3;
  if (dataset.size() < 1) invalid("the dataset is a stream, or empty");
  if (options.classes < 1 || options.classes > most_classes)
    invalid(fmt::format("{} classes, expected 1 to {}", options.classes, most_classes));
  if (options.mixup == 0 && options.cutmix == 0) invalid("neither mixup nor cutmix is above 0");
  for (const auto& [name, alpha] : {std::pair{"mixup", options.mixup}, std::pair{"cutmix", options.cutmix}})
    if (alpha != 0 && !(alpha >= least_alpha && alpha <= most_alpha))
      invalid(fmt::format("{} is {}, expected 0, or {} to {}", name, alpha, least_alpha, most_alpha));
  if (!(options.share >= 0 && options.share <= 1)) invalid(fmt::format("share is {}, expected 0 to 1", options.share));
}

std::int64_t Mixed::size() const { return dataset_->size(); }

Example Mixed::get(std::int64_t index, std::uint64_t seed) const {
  constexpr std::uint64_t own_stream = 1;  // the dataset draws from stream 0 of its seed
  SampleRandom random(seed, own_stream, 0);
  auto example = dataset_->get(index, seed);
  require_sample(example);
  const bool is_mask = example[1].shape.rank() > 0;
  double own = 1;
  Example other;
  if (random.unit() < options_.share) {
    const bool is_cut = options_.mixup == 0 || (options_.cutmix > 0 && random.below(2) == 1);
    const auto partner = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(size())));
    own = beta_variate(random, is_cut ? options_.cutmix : options_.mixup);
    other = dataset_->get(partner, random.next());
    require_sample(other);
    for (std::size_t i = 0; i < 2; ++i)
      if (other[i].shape != example[i].shape)
        throw ShapeError(fmt::format("a sample of {} is mixed with {} of {}", to_string(example[i].spec()),
                                     to_string(other[i].spec()), dataset_->name_of(partner)));
    if (is_cut) {
      require_image(example[0]);
      const auto rank = example[0].shape.rank();
      const auto height = example[0].shape[rank - 2], width = example[0].shape[rank - 1];
      if (is_mask && example[1].shape != Shape{height, width})
        throw ShapeError(fmt::format("cutmix of labels of {}, expected a class or a mask", to_string(example[1].spec())));
      const auto part = random_rectangle(height, width, 1 - own, random);
      paste<float>(example[0], other[0], part);
      if (is_mask) paste<std::int32_t>(example[1], other[1], part);
      own = 1 - static_cast<double>((part.bottom - part.top) * (part.right - part.left)) / static_cast<double>(height * width);
    } else {
      if (is_mask) throw ShapeError(fmt::format("mixup of labels of {}, expected one class", to_string(example[1].spec())));
      const auto values = example[0].values<float>();
      const auto others = std::as_const(other[0]).values<float>();
      const auto by = static_cast<float>(own);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = by * values[i] + (1 - by) * others[i];
    }
  }
  if (is_mask) return example;
  Array probabilities(Shape{options_.classes}, Dtype::f32, example[1].name);
  add_label(probabilities, example[1], own);
  if (!other.empty()) add_label(probabilities, other[1], 1 - own);
  example[1] = std::move(probabilities);
  return example;
}

std::string Mixed::name_of(std::int64_t index) const { return dataset_->name_of(index); }

std::string Mixed::fingerprint() const {
  return fmt::format("{}, mixed over {} classes by mixup {}, cutmix {}, share {}", dataset_->fingerprint(), options_.classes,
                     options_.mixup, options_.cutmix, options_.share);
}

}  // namespace clnet::data
