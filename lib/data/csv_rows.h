// Rows of CSV files: of tables, and of lists of images.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace clnet::data {

/// The rows of a file, again and again from the front. Fields without quotes have no spaces around them. Throws FileError.
class CsvRows {
 public:
  explicit CsvRows(const std::filesystem::path& path, char separator = ',', char quote = '"');

  [[noreturn]] void fail(std::string_view reason) const;
  /// Names the line where the last row begins.
  [[noreturn]] void fail_in_row(std::string_view reason) const;

  void rewind();
  /// False at the end.
  bool next(std::vector<std::string>& fields);
  /// Where the last row begins, from 1 on.
  std::size_t line() const { return row_line_; }

 private:
  /// Whether another one follows in the row.
  bool field(std::string& out);
  void quoted(std::string& out);

  const std::filesystem::path path_;
  const char separator_, quote_;
  std::string content_;
  std::size_t at_ = 0, line_ = 1, row_line_ = 1;
};

}  // namespace clnet::data
