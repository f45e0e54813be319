// CSV files as columns, and columns as samples.
#include "clnet/data/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "clnet/error.h"
#include "lib/base/input_file.h"
#include "lib/data/csv_rows.h"
#include "lib/data/gather.h"

namespace clnet::data {
namespace {

constexpr std::size_t most_fields = std::size_t{1} << 28, most_categories = 1'000'000;

std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // Beyond the range of doubles it is a number all the same: 0 or infinity.
  if (error == std::errc::result_out_of_range && end == text.data() + text.size())
    return std::strtod(std::string(text).c_str(), nullptr);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// What the first pass over the rows finds out.
struct CsvLayout {
  bool has_header = false;
  std::size_t rows = 0;
  std::vector<std::string> names;
  std::vector<bool> categorical;
  std::vector<std::set<std::string>> found;  ///< categories of such columns
};

CsvLayout find_layout(CsvRows& rows, const CsvOptions& options, const std::set<std::string, std::less<>>& missing) {
  CsvLayout layout;
  std::vector<std::string> fields;
  if (!rows.next(fields)) rows.fail("has no rows");
  const auto is_number = [](const std::string& text) { return number_in(text).has_value(); };
  layout.has_header = options.header == CsvHeader::present ||
                      (options.header == CsvHeader::automatic && std::none_of(fields.begin(), fields.end(), is_number));
  std::set<std::string> seen;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    layout.names.push_back(layout.has_header ? fields[i] : std::to_string(i));
    if (!seen.insert(layout.names.back()).second) rows.fail(fmt::format("has two columns {}", in_quotes(layout.names.back())));
  }
  for (const auto& [name, list] : options.categories)
    if (!seen.contains(name)) rows.fail(fmt::format("has no column {}, which is to have categories", in_quotes(name)));
  layout.categorical.resize(layout.names.size());
  layout.found.resize(layout.names.size());
  for (std::size_t i = 0; i < layout.names.size(); ++i) layout.categorical[i] = options.categories.contains(layout.names[i]);
  rows.rewind();
  if (layout.has_header) rows.next(fields);
  while (rows.next(fields)) {
    if (fields.size() != layout.names.size())
      rows.fail_in_row(fmt::format("has {} fields, expected {}", fields.size(), layout.names.size()));
    if (++layout.rows > most_fields / fields.size())
      rows.fail_in_row(fmt::format("the file has more than {} fields", most_fields));
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (!layout.categorical[i] && !is_number(fields[i]) && !missing.contains(fields[i])) layout.categorical[i] = true;
  }
  if (layout.rows == 0) rows.fail("has no rows behind its header");
  return layout;
}

void require_csv_options(const CsvOptions& options) {
  for (const char c : {options.separator, options.quote})
    if (c == '\n' || c == '\r' || c == '\0') throw Error("read_csv: separator and quote cannot be ends of lines or zero");
  if (options.separator == options.quote) throw Error("read_csv: separator and quote are the same character");
  for (const auto& [name, list] : options.categories)
    if (std::set<std::string>(list.begin(), list.end()).size() != list.size())
      throw Error(fmt::format("read_csv: categories of {} are given twice", in_quotes(name)));
}

}  // namespace

const Column& Table::operator[](std::string_view column) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == column; });
  if (found == columns.end())
    throw Error(fmt::format("{}: has no column {}, only {}", name, in_quotes(column), fmt::join(names(), ", ")));
  return *found;
}

std::vector<std::string> Table::names() const {
  std::vector<std::string> result;
  for (const auto& column : columns) result.push_back(column.name);
  return result;
}

Table read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  require_csv_options(options);
  const std::set<std::string, std::less<>> missing(options.missing.begin(), options.missing.end());
  CsvRows rows(path, options.separator, options.quote);
  auto layout = find_layout(rows, options, missing);
  const auto count = layout.names.size();
  std::vector<std::string> fields;
  const auto each_row = [&](const auto& use) {
    rows.rewind();
    if (layout.has_header) rows.next(fields);
    while (rows.next(fields)) use();
  };
  std::size_t categories = 0;
  each_row([&] {
    for (std::size_t i = 0; i < count; ++i)
      if (layout.categorical[i] && !missing.contains(fields[i]) && layout.found[i].insert(fields[i]).second)
        if (++categories > most_categories)
          rows.fail_in_row(fmt::format("the file has more than {} categories", most_categories));
  });
  Table table{.name = path.string(), .columns = {}};
  std::vector<std::map<std::string, double, std::less<>>> codes(count);
  for (std::size_t i = 0; i < count; ++i) {
    Column column{.name = layout.names[i], .values = {}, .categories = {}};
    column.values.reserve(layout.rows);
    if (layout.categorical[i]) {
      const auto given = options.categories.find(column.name);
      if (given != options.categories.end() && !given->second.empty())
        column.categories = given->second;
      else
        column.categories.assign(layout.found[i].begin(), layout.found[i].end());
      for (const auto& category : column.categories) codes[i].emplace(category, static_cast<double>(codes[i].size()));
    }
    table.columns.push_back(std::move(column));
  }
  each_row([&] {
    for (std::size_t i = 0; i < count; ++i) {
      double value = std::numeric_limits<double>::quiet_NaN();
      if (!layout.categorical[i]) {
        value = number_in(fields[i]).value_or(value);
      } else if (const auto code = codes[i].find(fields[i]); code != codes[i].end()) {
        value = code->second;
      } else if (!missing.contains(fields[i])) {
        rows.fail_in_row(
            fmt::format("column {}: {} is none of its categories", in_quotes(layout.names[i]), in_quotes(fields[i])));
      }
      table.columns[i].values.push_back(value);
    }
  });
  return table;
}

ArrayDataset from_table(const Table& table, const TableOptions& options) {
  const auto fail = [&](const Column& column, std::string_view reason) {
    throw Error(fmt::format("{}: column {}: {}", table.name, in_quotes(column.name), reason));
  };
  const auto& target = table[options.target];
  std::vector<const Column*> features;
  for (const auto& name : options.features) features.push_back(&table[name]);
  if (options.features.empty())
    for (const auto& column : table.columns)
      if (&column != &target) features.push_back(&column);
  const auto rows = static_cast<std::size_t>(table.rows());
  std::int64_t width = 0;
  std::vector<double> fills;
  for (const auto* column : features) {
    if (column == &target) fail(*column, "is both a feature and the target");
    if (column->values.size() != rows) fail(*column, fmt::format("has {} values, expected {}", column->values.size(), rows));
    const bool is_wide = options.one_hot && column->is_categorical();
    width += is_wide ? static_cast<std::int64_t>(column->categories.size()) : 1;
    double sum = 0, known = 0;
    for (const double value : column->values) {
      sum += std::isnan(value) ? 0 : value;
      known += std::isnan(value) ? 0 : 1;
    }
    if (known < static_cast<double>(rows) && !options.fill_missing)
      fail(*column, fmt::format("{} of {} values are missing; fill_missing sets them", static_cast<double>(rows) - known, rows));
    // An index has no mean.
    fills.push_back(column->is_categorical() ? -1 : known > 0 ? sum / known : 0);
  }
  if (width == 0) throw Error(fmt::format("{}: there are no features", table.name));
  if (rows > 0 && std::cmp_greater(width, most_fields / rows))
    throw Error(fmt::format("{}: {} rows of {} features are more than {} numbers", table.name, rows, width, most_fields));
  ArrayDataset dataset;
  dataset.name = table.name;
  dataset.sample_shape = {width};
  dataset.floats.reserve(rows * static_cast<std::size_t>(width));
  if (target.values.size() != rows) fail(target, fmt::format("{} values for {} rows", target.values.size(), rows));
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < features.size(); ++i) {
      const auto& column = *features[i];
      const double value = std::isnan(column.values[row]) ? fills[i] : column.values[row];
      if (options.one_hot && column.is_categorical())
        for (std::size_t k = 0; k < column.categories.size(); ++k)
          dataset.floats.push_back(value == static_cast<double>(k) ? 1.0F : 0.0F);
      else
        dataset.floats.push_back(static_cast<float>(value));
    }
    const double answer = target.values[row];
    if (std::isnan(answer)) fail(target, fmt::format("the value of row {} is missing", row));
    if (target.is_categorical())
      dataset.labels.push_back(static_cast<std::int32_t>(answer));
    else
      dataset.targets.push_back(static_cast<float>(answer));
  }
  if (target.is_categorical()) {
    dataset.class_names = target.categories;
    dataset.classes = static_cast<std::int64_t>(target.categories.size());
  } else {
    dataset.target_shape = {1};
  }
  validate(dataset);
  return dataset;
}

}  // namespace clnet::data
