#include "tools/clnet_train_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace clnet::tools {
namespace {

/// A wider matrix does not fit a terminal's line.
constexpr std::size_t most_shown_classes = 20;

constexpr std::int64_t columns = 5, rows = 5;
/// Of a picture's place, of its frame, and between frames, in pixels.
constexpr std::int64_t side = 180, frame = 4, gap = 6;
constexpr std::int64_t pitch = side + 2 * frame + gap;

using Colour = std::array<std::uint8_t, 3>;
constexpr Colour paper{255, 255, 255}, none{32, 32, 32}, mistaken{214, 39, 40}, recognized{44, 160, 44};

void fill(data::Array& sheet, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width,
          const Colour& colour) {
  const auto values = sheet.values<std::uint8_t>();
  for (std::int64_t c = 0; c < 3; ++c)
    for (auto y = top; y < top + height; ++y)
      for (auto x = left; x < left + width; ++x)
        values[static_cast<std::size_t>((c * sheet.shape[1] + y) * sheet.shape[2] + x)] = colour[static_cast<std::size_t>(c)];
}

/// The whole picture, in the middle of its place.
void place(data::Array& sheet, std::int64_t top, std::int64_t left, const data::Array& image) {
  const auto height = image.shape[1], width = image.shape[2], longer = std::max(height, width);
  const auto fitted = [&](std::int64_t extent) { return std::max<std::int64_t>(1, extent * side / longer); };
  const auto small = data::resize_image(image, fitted(height), fitted(width));
  const auto from = small.values<std::uint8_t>();
  const auto to = sheet.values<std::uint8_t>();
  const auto first_y = top + (side - small.shape[1]) / 2, first_x = left + (side - small.shape[2]) / 2;
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < small.shape[1]; ++y)
      std::copy_n(from.begin() + (c * small.shape[1] + y) * small.shape[2], small.shape[2],
                  to.begin() + (c * sheet.shape[1] + first_y + y) * sheet.shape[2] + first_x);
}

}  // namespace

std::vector<Prediction> predict(nn::Module& model, const data::Dataset& images, std::int64_t batch_size, std::int64_t workers) {
  model.inference();
  std::vector<Prediction> predictions;
  for (const auto& [x, labels] : data::batches(images, {.batch_size = batch_size, .workers = workers})) {
    const auto outputs = model(x).to(Dtype::f32).to_vector<float>();
    const auto names = labels.to_vector<std::int32_t>();
    const auto classes = outputs.size() / names.size();
    for (std::size_t n = 0; n < names.size(); ++n) {
      const auto first = outputs.begin() + static_cast<std::ptrdiff_t>(n * classes),
                 end = first + static_cast<std::ptrdiff_t>(classes);
      const auto most = std::max_element(first, end);
      double sum = 0;
      for (auto at = first; at != end; ++at) sum += std::exp(static_cast<double>(*at) - static_cast<double>(*most));
      const auto label = static_cast<std::size_t>(names[n]);
      const double loss = std::log(sum) + static_cast<double>(*most) - static_cast<double>(first[names[n]]);
      predictions.push_back({.label = label,
                             .taken = static_cast<std::size_t>(most - first),
                             .loss = std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss});
    }
  }
  return predictions;
}

std::vector<std::string> class_report(const std::vector<Prediction>& predictions, const std::vector<std::string>& names) {
  std::vector<std::vector<std::int64_t>> counts(names.size(), std::vector<std::int64_t>(names.size()));
  for (const auto& prediction : predictions) ++counts[prediction.label][prediction.taken];
  std::size_t widest = 5;
  for (const auto& name : names) widest = std::max(widest, name.size());
  std::vector<std::string> lines{fmt::format("{:<{}}  images  accuracy", "class", widest)};
  for (std::size_t c = 0; c < counts.size(); ++c) {
    std::int64_t all = 0;
    for (const auto count : counts[c]) all += count;
    const auto share =
        all == 0 ? "-" : fmt::format("{:.2f} %", 100 * static_cast<double>(counts[c][c]) / static_cast<double>(all));
    lines.push_back(fmt::format("{:<{}}  {:>6}  {:>8}", names[c], widest, all, share));
  }
  if (counts.size() > most_shown_classes) return lines;
  std::string head = fmt::format("{:<{}}", "true\\taken for", std::max<std::size_t>(widest, 14));
  for (std::size_t c = 0; c < counts.size(); ++c) head += fmt::format(" {:>6}", names[c].substr(0, 6));
  lines.push_back(head);
  for (std::size_t c = 0; c < counts.size(); ++c) {
    std::string line = fmt::format("{:<{}}", names[c], std::max<std::size_t>(widest, 14));
    for (const auto count : counts[c]) line += fmt::format(" {:>6}", count);
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> write_sheet(const std::string& path, const std::vector<Prediction>& predictions,
                                     const data::Images& images) {
  std::vector<std::size_t> order(predictions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return predictions[a].loss > predictions[b].loss; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(columns * rows)));
  const auto count = static_cast<std::int64_t>(order.size()), lines = (count + columns - 1) / columns;
  data::Array sheet(Shape{3, lines * pitch + gap, std::min(count, columns) * pitch + gap}, Dtype::u8);
  fill(sheet, 0, 0, sheet.shape[1], sheet.shape[2], paper);
  std::vector<std::string> text{fmt::format("{:>5}  {:>7}  class, taken for, file", "worst", "loss")};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = order[static_cast<std::size_t>(i)];
    const auto& prediction = predictions[index];
    const auto top = gap + i / columns * pitch, left = gap + i % columns * pitch;
    fill(sheet, top, left, side + 2 * frame, side + 2 * frame, prediction.label == prediction.taken ? recognized : mistaken);
    fill(sheet, top + frame, left + frame, side, side, none);
    const auto file = images.name_of(static_cast<std::int64_t>(index));
    place(sheet, top + frame, left + frame, data::read_image(file));
    text.push_back(fmt::format("{:>5}  {:>7.4f}  {}, {}, {}", i + 1, prediction.loss, images.class_names()[prediction.label],
                               images.class_names()[prediction.taken], file));
  }
  data::write_image(path, sheet);
  text.push_back(fmt::format("their pictures, row by row: {}", path));
  return text;
}

}  // namespace clnet::tools
