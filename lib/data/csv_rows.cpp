#include "lib/data/csv_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"

namespace clnet::data {
namespace {

constexpr std::uint64_t most_csv_bytes = std::uint64_t{1} << 30;
constexpr std::size_t most_columns = 100'000;

bool is_line_end(char c) { return c == '\n' || c == '\r'; }

std::string_view without_spaces(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

CsvRows::CsvRows(const std::filesystem::path& path, char separator, char quote)
    : path_(path), separator_(separator), quote_(quote), content_(file::read(path, most_csv_bytes)) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (content_.starts_with(byte_order_mark)) content_.erase(0, byte_order_mark.size());
  if (const auto zero = content_.find('\0'); zero != std::string::npos) fail(fmt::format("is no text: byte {} is zero", zero));
}

void CsvRows::fail(std::string_view reason) const { throw FileError(fmt::format("{}: {}", path_.string(), reason)); }
void CsvRows::fail_in_row(std::string_view reason) const { fail(fmt::format("line {}: {}", row_line_, reason)); }

void CsvRows::rewind() {
  at_ = 0;
  line_ = 1;
}

bool CsvRows::next(std::vector<std::string>& fields) {
  while (at_ < content_.size() && is_line_end(content_[at_])) line_ += content_[at_++] == '\n' ? 1 : 0;
  row_line_ = line_;
  std::size_t count = 0;
  if (at_ >= content_.size()) return false;
  for (bool goes_on = true; goes_on;) {
    if (count == most_columns) fail_in_row(fmt::format("has more than {} fields", most_columns));
    if (count == fields.size()) fields.emplace_back();
    goes_on = field(fields[count++]);
  }
  fields.resize(count);
  return true;
}

bool CsvRows::field(std::string& out) {
  out.clear();
  auto begin = at_;
  while (begin < content_.size() && content_[begin] == ' ' && separator_ != ' ') ++begin;
  if (begin < content_.size() && content_[begin] == quote_) {
    at_ = begin + 1;
    quoted(out);
  } else {
    const auto end = std::find_if(content_.begin() + static_cast<std::ptrdiff_t>(at_), content_.end(),
                                  [&](char c) { return c == separator_ || is_line_end(c); });
    const auto length = static_cast<std::size_t>(end - content_.begin()) - at_;
    out = without_spaces(std::string_view(content_).substr(at_, length));
    at_ += length;
  }
  if (at_ < content_.size() && content_[at_] == separator_) {
    ++at_;
    return true;
  }
  return false;
}

void CsvRows::quoted(std::string& out) {
  for (;; ++at_) {
    if (at_ >= content_.size()) fail_in_row("a quote is not closed");
    if (content_[at_] == '\n') ++line_;
    if (content_[at_] == quote_) {
      if (at_ + 1 >= content_.size() || content_[at_ + 1] != quote_) break;
      ++at_;
    }
    out += content_[at_];
  }
  ++at_;
  while (at_ < content_.size() && content_[at_] == ' ' && separator_ != ' ') ++at_;
  if (at_ < content_.size() && content_[at_] != separator_ && !is_line_end(content_[at_]))
    fail_in_row(fmt::format("{} follows a closing quote", in_quotes(content_.substr(at_, 1))));
}

}  // namespace clnet::data
