// Which image files a dataset has: folders by class, CSV lists, pairs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <system_error>

#include "clnet/data/images.h"
#include "clnet/error.h"
#include "lib/base/input_file.h"
#include "lib/data/csv_rows.h"
#include "lib/data/folder_entries.h"
#include "lib/data/image_changes.h"

namespace clnet::data {

namespace fs = std::filesystem;

namespace {

const FileKind image_files{"images", "png, jpg, jpeg or bmp files", {".png", ".jpg", ".jpeg", ".bmp"}};

/// Calls `take(image, fields)` for each row of a list, which must have `count` fields: a path from `root` on, and others.
template <class Take>
void for_rows(CsvRows& rows, const fs::path& csv, const fs::path& root, std::size_t count, const char* expected,
              const Take& take) {
  const auto begin = root.empty() ? csv.parent_path() : root;
  std::vector<std::string> fields;
  while (rows.next(fields)) {
    if (fields.size() != count || fields[0].empty())
      rows.fail_in_row(fmt::format("{} fields, expected {}", fields.size(), expected));
    const auto image = begin / fields[0];
    std::error_code error;
    if (!fs::exists(image, error)) {
      if (rows.line() == 1) continue;  // a header
      rows.fail_in_row(fmt::format("there is no file {}", in_quotes(image.string())));
    }
    take(image, fields);
  }
}

/// A coordinate of a box.
float coordinate_of(const std::string& field, const CsvRows& rows) {
  float value = 0;
  const auto [end, fault] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (fault != std::errc() || end != field.data() + field.size() || !(std::abs(value) <= most_coordinate))
    rows.fail_in_row(fmt::format("{} is no coordinate, at most {}", in_quotes(field), most_coordinate));
  return value;
}

/// The place of a name among the sorted ones.
std::int32_t place_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::int32_t>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

Images image_folder(const fs::path& folder, const ImageOptions& options) {
  auto found = files_by_class(folder, image_files);
  std::vector<Images::File> files;
  for (auto& [path, label] : found.files) files.push_back({.image = std::move(path), .label = label});
  return {std::move(files), std::move(found.names), options};
}

Images image_list(const fs::path& csv, const ImageOptions& options, const fs::path& root) {
  CsvRows list(csv);
  std::vector<std::pair<fs::path, std::string>> rows;
  std::set<std::string> classes;
  for_rows(list, csv, root, 2, "a path and a class", [&](const fs::path& image, auto& fields) {
    if (fields[1].empty()) list.fail_in_row("the class is empty, expected a path and a class");
    classes.insert(fields[1]);
    rows.emplace_back(image, std::move(fields[1]));
  });
  if (rows.empty()) list.fail("names no images");
  const std::vector<std::string> names(classes.begin(), classes.end());
  std::vector<Images::File> files;
  for (auto& [image, name] : rows) files.push_back({.image = std::move(image), .label = place_of(names, name)});
  return {std::move(files), names, options};
}

ImageBoxes image_boxes(const fs::path& csv, const ImageOptions& options, const fs::path& root) {
  CsvRows list(csv);
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
  for_rows(list, csv, root, 6, expected, [&](const fs::path& image, auto& fields) {
    const auto [place, is_new] = places.emplace(image, files.size());
    if (is_new) files.push_back({.image = image, .boxes = {}});
    const auto empty = std::count_if(fields.begin() + 1, fields.end(), [](const auto& field) { return field.empty(); });
    if (empty == 5) return;
    if (empty > 0) list.fail_in_row(fmt::format("{} empty fields, expected {}, or a path alone", empty, expected));
    const auto at = [&](std::size_t i) { return coordinate_of(fields[i], list); };
    const ImageBoxes::Box box{.x1 = at(1), .y1 = at(2), .x2 = at(3), .y2 = at(4)};
    if (!(box.x1 < box.x2 && box.y1 < box.y2))
      list.fail_in_row(fmt::format("a box from {}, {} to {}, {} has no area", box.x1, box.y1, box.x2, box.y2));
    classes.insert(fields[5]);
    rows.push_back({.image = place->second, .box = box, .name = std::move(fields[5])});
  });
  if (files.empty()) list.fail("names no images");
  const std::vector<std::string> names(classes.begin(), classes.end());
  for (auto& row : rows) {
    row.box.label = place_of(names, row.name);
    files[row.image].boxes.push_back(row.box);
  }
  return {std::move(files), names, options};
}

Images image_pairs(const fs::path& images, const fs::path& masks, std::int64_t classes, const ImageOptions& options) {
  if (classes < 1 || classes > 255) throw Error(fmt::format("image_pairs: {} classes, expected 1 to 255", classes));
  auto found = files_below(images, image_files);
  const auto key = [](const fs::path& path, const fs::path& folder) {
    return path.lexically_relative(folder).replace_extension().string();
  };
  std::map<std::string, fs::path> by_name;
  for (const auto& mask : files_below(masks, image_files))
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
