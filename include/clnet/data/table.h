// Tables of numbers and categories from CSV files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/data/arrays.h"
#include "clnet/export.h"

namespace clnet::data {

/// Whether the first row of a CSV file has the columns' names.
enum class CsvHeader : std::uint8_t { automatic, present, absent };

/// Options of read_csv().
struct CsvOptions {
  char separator = ',';
  char quote = '"';                         ///< around fields with separators or line ends; twice inside for itself
  CsvHeader header = CsvHeader::automatic;  ///< automatic: where no field of the first row is a number
  std::vector<std::string> missing = {"", "NA", "N/A", "NaN", "nan", "null", "?"};  ///< fields without a value
  /// Columns of categories, by name: their categories in order, as those of the training set for a test set. An empty list: all
  /// that the file has, sorted. Columns with other fields than numbers are categories unasked.
  std::map<std::string, std::vector<std::string>> categories = {};
};

/// A column of numbers, or of categories.
struct Column {
  std::string name;
  std::vector<double> values;           ///< a category is its index; NaN is missing
  std::vector<std::string> categories;  ///< empty for numbers

  bool is_categorical() const { return !categories.empty(); }
};

/// Columns of one length.
struct CLNET_API Table {
  std::string name;  ///< in errors: the file's path
  std::vector<Column> columns;

  std::int64_t rows() const { return columns.empty() ? 0 : static_cast<std::int64_t>(columns[0].values.size()); }
  /// The column of this name. Throws Error where there is none.
  const Column& operator[](std::string_view column) const;
  std::vector<std::string> names() const;
};

/// A CSV file (RFC 4180). Columns without a header are called "0", "1", ... Empty lines and a byte order mark are skipped. Throws
/// FileError with the line: for a row with another number of fields, a quote that is not closed, a category that is not in
/// CsvOptions::categories, and above 1 GiB, 100,000 columns, 2^28 fields or a
/// million categories. Throws Error where options contradict each other.
CLNET_API Table read_csv(const std::filesystem::path& file, const CsvOptions& options = {});

/// Options of from_table().
struct TableOptions {
  std::string target;                      ///< the column to predict: categories become labels, numbers targets
  std::vector<std::string> features = {};  ///< empty: all other columns
  bool one_hot = true;                     ///< a feature of k categories becomes k numbers, 0 or 1; false: its index
  bool fill_missing = false;  ///< a missing number becomes its column's mean, a missing category has no 1; false: an error
};
/// A dataset with a sample for each row: f32 {features} and its label or target {1}. compute_normalization() gives mean and
/// deviation of each feature. Throws Error, with table and column, for a name that is not there and for missing values.
CLNET_API ArrayDataset from_table(const Table& table, const TableOptions& options);

}  // namespace clnet::data
