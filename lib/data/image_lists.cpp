// Which image files a dataset has: folders by class, CSV lists, pairs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <system_error>

#include "clnet/data/images.h"
#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"
#include "lib/data/folder_entries.h"
#include "lib/data/image_changes.h"

namespace clnet::data {

namespace fs = std::filesystem;

namespace {

constexpr int most_levels = 16;
constexpr std::size_t most_files = 100'000'000;
constexpr std::uint64_t most_list_bytes = std::uint64_t{1} << 30;

bool is_image_name(const fs::path& path) {
  auto ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg" || ending == ".bmp";
}

/// All image files below the folder. Links to folders are not followed, as they may lead round.
void collect(const fs::path& folder, int levels, std::vector<fs::path>& found) {
  if (levels > most_levels) throw FileError(fmt::format("{}: lies more than {} levels deep", folder.string(), most_levels));
  for (const auto& path : entries_of(folder)) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      if (!fs::is_symlink(path, error)) collect(path, levels + 1, found);
    } else if (is_image_name(path)) {
      if (found.size() == most_files) throw FileError(fmt::format("{}: holds more than {} files", folder.string(), most_files));
      found.push_back(path);
    }
  }
}

/// The fields of a row, where quotes are closed.
std::vector<std::string> fields_of(std::string_view row, const InputFile& file, std::size_t line) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const char c = row[i];
    if (is_quoted && c == '"' && i + 1 < row.size() && row[i + 1] == '"')
      fields.back() += row[++i];
    else if (c == '"' && (is_quoted || fields.back().empty()))
      is_quoted = !is_quoted;
    else if (c == ',' && !is_quoted)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  if (is_quoted) file.fail(fmt::format("line {}: a quote is not closed", line));
  return fields;
}

/// Calls `take(image, fields, line)` for each row of a list, which must have `count` fields: a path from `root` on, and others.
template <class Take>
void for_rows(const InputFile& file, const fs::path& csv, const fs::path& root, std::size_t count, const char* expected,
              const Take& take) {
  const auto content = file::read(csv, most_list_bytes);
  const auto begin = root.empty() ? csv.parent_path() : root;
  std::size_t line = 0;
  for (std::size_t at = 0; at < content.size();) {
    auto end = std::min(content.find('\n', at), content.size());
    auto row = std::string_view(content).substr(at, end - at);
    at = end + 1;
    ++line;
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row.empty()) continue;
    auto fields = fields_of(row, file, line);
    if (fields.size() != count || fields[0].empty())
      file.fail(fmt::format("line {}: {} fields, expected {}", line, fields.size(), expected));
    const auto image = begin / fields[0];
    std::error_code error;
    if (!fs::exists(image, error)) {
      if (line == 1) continue;  // a header
      file.fail(fmt::format("line {}: there is no file {}", line, in_quotes(image.string())));
    }
    take(image, fields, line);
  }
}

/// A coordinate of a box.
float coordinate_of(const std::string& field, const InputFile& file, std::size_t line) {
  float value = 0;
  const auto [end, fault] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (fault != std::errc() || end != field.data() + field.size() || !(std::abs(value) <= most_coordinate))
    file.fail(fmt::format("line {}: {} is no coordinate, at most {}", line, in_quotes(field), most_coordinate));
  return value;
}

/// The place of a name among the sorted ones.
std::int32_t place_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::int32_t>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

Images image_folder(const fs::path& folder, const ImageOptions& options) {
  std::vector<Images::File> files;
  std::vector<std::string> names;
  fs::path without;
  for (const auto& path : entries_of(folder)) {
    std::error_code error;
    if (!fs::is_directory(path, error)) continue;
    std::vector<fs::path> found;
    collect(path, 1, found);
    // Without it the numbers of all later classes would differ from those of another folder.
    if (found.empty() && without.empty()) without = path;
    for (auto& image : found) files.push_back({.image = std::move(image), .label = static_cast<std::int32_t>(names.size())});
    names.push_back(path.filename().string());
  }
  if (files.empty())
    throw FileError(fmt::format("{}: holds no folders of images; expected a folder per class with png, jpg, jpeg or bmp files",
                                folder.string()));
  if (!without.empty())
    throw FileError(fmt::format("{}: is the folder of a class and holds no png, jpg, jpeg or bmp files", without.string()));
  return {std::move(files), std::move(names), options};
}

Images image_list(const fs::path& csv, const ImageOptions& options, const fs::path& root) {
  const InputFile file(csv);
  std::vector<std::pair<fs::path, std::string>> rows;
  std::set<std::string> classes;
  for_rows(file, csv, root, 2, "a path and a class", [&](const fs::path& image, auto& fields, std::size_t line) {
    if (fields[1].empty()) file.fail(fmt::format("line {}: the class is empty, expected a path and a class", line));
    classes.insert(fields[1]);
    rows.emplace_back(image, std::move(fields[1]));
  });
  if (rows.empty()) file.fail("names no images");
  const std::vector<std::string> names(classes.begin(), classes.end());
  std::vector<Images::File> files;
  for (auto& [image, name] : rows) files.push_back({.image = std::move(image), .label = place_of(names, name)});
  return {std::move(files), names, options};
}

ImageBoxes image_boxes(const fs::path& csv, const ImageOptions& options, const fs::path& root) {
  const InputFile file(csv);
  struct Row {
    std::size_t image = 0;
    ImageBoxes::Box box;
    std::string name;
  };
  std::vector<ImageBoxes::File> files;
  std::map<fs::path, std::size_t> places;
  std::vector<Row> rows;
  std::set<std::string> classes;
  const auto* expected = "a path, x1, y1, x2, y2 and a class";
  for_rows(file, csv, root, 6, expected, [&](const fs::path& image, auto& fields, std::size_t line) {
    const auto [place, is_new] = places.emplace(image, files.size());
    if (is_new) files.push_back({.image = image, .boxes = {}});
    const auto empty = std::count_if(fields.begin() + 1, fields.end(), [](const auto& field) { return field.empty(); });
    if (empty == 5) return;
    if (empty > 0) file.fail(fmt::format("line {}: {} empty fields, expected {}, or a path alone", line, empty, expected));
    const auto at = [&](std::size_t i) { return coordinate_of(fields[i], file, line); };
    const ImageBoxes::Box box{.x1 = at(1), .y1 = at(2), .x2 = at(3), .y2 = at(4)};
    if (!(box.x1 < box.x2 && box.y1 < box.y2))
      file.fail(fmt::format("line {}: a box from {}, {} to {}, {} has no area", line, box.x1, box.y1, box.x2, box.y2));
    classes.insert(fields[5]);
    rows.push_back({.image = place->second, .box = box, .name = std::move(fields[5])});
  });
  if (files.empty()) file.fail("names no images");
  const std::vector<std::string> names(classes.begin(), classes.end());
  for (auto& row : rows) {
    row.box.label = place_of(names, row.name);
    files[row.image].boxes.push_back(row.box);
  }
  return {std::move(files), names, options};
}

Images image_pairs(const fs::path& images, const fs::path& masks, std::int64_t classes, const ImageOptions& options) {
  if (classes < 1 || classes > 255) throw Error(fmt::format("image_pairs: {} classes, expected 1 to 255", classes));
  std::vector<fs::path> found, found_masks;
  collect(images, 1, found);
  collect(masks, 1, found_masks);
  const auto key = [](const fs::path& path, const fs::path& folder) {
    return path.lexically_relative(folder).replace_extension().string();
  };
  std::map<std::string, fs::path> by_name;
  for (const auto& mask : found_masks)
    if (!by_name.emplace(key(mask, masks), mask).second)
      throw FileError(fmt::format("{}: is a second mask of its name", mask.string()));
  std::vector<Images::File> files;
  for (auto& image : found) {
    const auto mask = by_name.find(key(image, images));
    if (mask == by_name.end()) throw FileError(fmt::format("{}: has no mask of its name in {}", image.string(), masks.string()));
    files.push_back({.image = std::move(image), .label = 0, .mask = mask->second});
  }
  if (files.empty()) throw FileError(fmt::format("{}: holds no images", images.string()));
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < classes; ++c) names.push_back(std::to_string(c));
  return {std::move(files), std::move(names), options};
}

}  // namespace clnet::data
