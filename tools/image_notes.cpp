#include "tools/image_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

#include "clnet/error.h"

namespace clnet::tools {
namespace {

constexpr const char *mean_key = "clnet.mean", *deviation_key = "clnet.std", *crop_key = "clnet.crop",
                     *labels_key = "clnet.labels";

/// Names are lines of one text, and go to terminals.
std::string on_one_line(std::string name) {
  for (auto& c : name)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  return name;
}

std::string_view value_of(const onnx::Model& model, std::string_view key) {
  for (const auto& [name, value] : model.metadata())
    if (name == key) return value;
  return {};
}

/// "0.5,0.25", each above `low`.
std::vector<float> numbers_in(const onnx::Model& model, std::string_view key, double low, const std::string& file) {
  constexpr std::size_t most = 1024;
  std::vector<float> numbers;
  bool more = !value_of(model, key).empty();
  for (auto rest = value_of(model, key); more;) {
    const auto comma = std::min(rest.find(','), rest.size());
    float number = 0;
    const auto [end, code] = std::from_chars(rest.data(), rest.data() + comma, number);
    if (code != std::errc() || end != rest.data() + comma || !std::isfinite(number) || !(number > low) || numbers.size() == most)
      throw Error(fmt::format("{}: the metadata {} are \"{}\", not numbers{} with commas between them", file, key,
                              on_one_line(std::string(value_of(model, key).substr(0, 60))), low == 0 ? " above 0" : ""));
    numbers.push_back(number);
    more = comma < rest.size();
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return numbers;
}

}  // namespace

NotesMetadata metadata_of(const ImageNotes& notes) {
  return {{mean_key, fmt::format("{}", fmt::join(notes.mean, ","))},
          {deviation_key, fmt::format("{}", fmt::join(notes.std, ","))},
          {crop_key, notes.crop ? "1" : ""}};
}

std::pair<std::string, std::string> metadata_of_labels(const std::vector<std::string>& labels) {
  std::string lines;
  for (const auto& label : labels) lines += (lines.empty() ? "" : "\n") + on_one_line(label);
  return {labels_key, lines};
}

ImageNotes image_notes(const onnx::Model& model, const std::string& file) {
  return {.mean = numbers_in(model, mean_key, -INFINITY, file),
          .std = numbers_in(model, deviation_key, 0, file),
          .crop = image_crop(model, file)};
}

bool image_crop(const onnx::Model& model, const std::string& file) {
  const auto value = value_of(model, crop_key);
  if (!value.empty() && value != "1")
    throw Error(
        fmt::format("{}: the metadata {} are \"{}\", not 1", file, crop_key, on_one_line(std::string(value.substr(0, 60)))));
  return !value.empty();
}

std::vector<std::string> image_labels(const onnx::Model& model) {
  std::vector<std::string> labels;
  for (auto rest = value_of(model, labels_key); !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    labels.push_back(on_one_line(std::string(rest.substr(0, end))));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return labels;
}

}  // namespace clnet::tools
