// CSV files as tables, and tables as datasets.
#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/data.h"
#include "clnet/error.h"
#include "tests/support/temporary.h"

namespace clnet::data {
namespace {

using Catch::Contains;
using ColumnNames = std::vector<std::string>;

TEST_CASE("a CSV file's columns are numbers or categories") {
  const test::Folder folder;
  const auto file = folder.write(
      "a.csv", "\xef\xbb\xbfsize, colour ,\"note, long\"\r\n1.5,red,\"a \"\"b\"\"\nc\"\r\n\r\n -2e3 , blue,NA\r\n,red , x");
  const auto table = read_csv(file);
  CHECK(table.names() == ColumnNames{"size", "colour", "note, long"});
  REQUIRE(table.rows() == 3);
  CHECK(table["size"].values[0] == 1.5);
  CHECK(table["size"].values[1] == -2000);
  CHECK(std::isnan(table["size"].values[2]));
  CHECK_FALSE(table["size"].is_categorical());
  CHECK(table["colour"].categories == ColumnNames{"blue", "red"});
  CHECK(table["colour"].values == std::vector<double>{1, 0, 1});
  CHECK(table["note, long"].categories == ColumnNames{"a \"b\"\nc", "x"});
  CHECK(std::isnan(table["note, long"].values[1]));
  CHECK_THROWS_WITH(table["weight"], Contains("a.csv: has no column \"weight\", only size, colour"));
}

TEST_CASE("options of CSV files") {
  const test::Folder folder;
  const auto numbers = folder.write("a.csv", "1;2\n3;4\n");
  CHECK(read_csv(numbers, {.separator = ';'}).names() == ColumnNames{"0", "1"});
  CHECK(read_csv(numbers, {.separator = ';'}).rows() == 2);
  CHECK(read_csv(numbers, {.separator = ';', .header = CsvHeader::present}).names() == ColumnNames{"1", "2"});
  const auto words = folder.write("b.csv", "a\tb\nc\t'd\te'\n");
  CHECK(read_csv(words, {.separator = '\t', .quote = '\'', .header = CsvHeader::absent}).rows() == 2);
  CHECK(read_csv(words, {.separator = '\t', .quote = '\'', .header = CsvHeader::absent})["1"].categories ==
        ColumnNames{"b", "d\te"});
  // Categories of another file, and numbers that are names.
  const auto classes = folder.write("c.csv", "x,kind\n1,2\n2,1\n3,-\n");
  const auto table = read_csv(classes, {.missing = {"-"}, .categories = {{"kind", {"0", "1", "2"}}}});
  CHECK(table["kind"].categories == ColumnNames{"0", "1", "2"});
  CHECK(table["kind"].values[0] == 2);
  CHECK(std::isnan(table["kind"].values[2]));
  CHECK(read_csv(classes, {.missing = {"-"}, .categories = {{"kind", {}}}})["kind"].categories == ColumnNames{"1", "2"});
  CHECK_THROWS_WITH(read_csv(classes, {.missing = {"-"}, .categories = {{"kind", {"1"}}}}),
                    Contains("c.csv: line 2: column \"kind\": \"2\" is none of its categories"));
  CHECK_THROWS_WITH(read_csv(classes, {.categories = {{"no", {}}}}), Contains("no column \"no\""));
  CHECK_THROWS_WITH(read_csv(classes, {.categories = {{"kind", {"1", "1"}}}}), Contains("given twice"));
  CHECK_THROWS_WITH(read_csv(classes, {.separator = '"'}), Contains("same character"));
  CHECK_THROWS_WITH(read_csv(classes, {.separator = '\n'}), Contains("ends of lines"));
}

TEST_CASE("a CSV file that is not one says why, with the line") {
  const test::Folder folder;
  const auto fault = [&](std::string_view content) {
    const auto path = folder.write("bad.csv", content);
    try {
      return std::to_string(read_csv(path).rows());
    } catch (const FileError& error) {
      CHECK(std::string(error.what()).starts_with(path.string() + ": "));
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
      return std::string(error.what());
    }
  };
  CHECK_THAT(fault(""), Contains("has no rows"));
  CHECK_THAT(fault("a,b\n"), Contains("no rows behind its header"));
  CHECK_THAT(fault("a,a\n1,2\n"), Contains("two columns \"a\""));
  CHECK_THAT(fault("a,b\n1,\"x\n2\",\n"), Contains("line 2: has 3 fields, expected 2"));
  CHECK_THAT(fault("a,b\n1,\"x\n2\"\n\n3\n"), Contains("line 5: has 1 fields, expected 2"));
  CHECK_THAT(fault("a,b\n1,\"x"), Contains("line 2: a quote is not closed"));
  CHECK_THAT(fault("a,b\n\"1\"2,3\n"), Contains("\"2\" follows a closing quote"));
  CHECK_THAT(fault(std::string_view("a\n\0", 3)), Contains("byte 2 is zero"));
  CHECK_THAT(fault(std::string(100'001, ',')), Contains("more than 100000 fields"));
  std::string words = "a\n";
  for (int i = 0; i <= 1'000'000; ++i) words += 'w' + std::to_string(i) + '\n';
  CHECK_THAT(fault(words), Contains("line 1000002: the file has more than 1000000 categories"));
}

TEST_CASE("a table becomes samples with labels or targets") {
  const test::Folder folder;
  const auto table = read_csv(folder.write("a.csv", "size,colour,price,kind\n1,red,10,b\n?,blue,20,a\n5,,30,b\n"));
  const auto kinds = from_table(table, {.target = "kind", .features = {"colour", "size"}, .fill_missing = true});
  CHECK(kinds.sample_shape == Shape{3});
  CHECK(kinds.floats == std::vector<float>{0, 1, 1, 1, 0, 3, 0, 0, 5});
  CHECK(kinds.labels == std::vector<std::int32_t>{1, 0, 1});
  CHECK(kinds.class_names == ColumnNames{"a", "b"});
  const auto prices = from_table(table, {.target = "price", .features = {"colour"}, .one_hot = false, .fill_missing = true});
  CHECK(prices.floats == std::vector<float>{1, 0, -1});
  CHECK(prices.targets == std::vector<float>{10, 20, 30});
  CHECK(from_table(table, {.target = "price", .fill_missing = true}).sample_shape == Shape{5});
  CHECK_THROWS_WITH(from_table(table, {.target = "kind"}), Contains("a.csv: column \"size\": 1 of 3 values are missing"));
  CHECK_THROWS_WITH(from_table(table, {.target = "size", .features = {"price"}}), Contains("the value of row 1 is missing"));
  CHECK_THROWS_WITH(from_table(table, {.target = "kind", .features = {"kind"}}), Contains("both a feature and the target"));
  CHECK_THROWS_WITH(from_table(table, {.target = "none"}), Contains("no column \"none\""));
}

}  // namespace
}  // namespace clnet::data
