// Texts as datasets: alphabets, files, and which pieces an epoch has.
#include <catch2/catch.hpp>

#include "clnet/data.h"
#include "clnet/error.h"
#include "lib/data/epoch_order.h"
#include "lib/data/gather.h"
#include "tests/support/temporary.h"

namespace clnet::data {
namespace {

using Catch::Contains;

std::vector<std::int32_t> characters(const ArrayDataset& text, const std::vector<std::int64_t>& indices, std::int64_t shift) {
  std::vector<std::int32_t> out(indices.size() * static_cast<std::size_t>(text.sample_shape[0]));
  Gather(text).characters(indices, shift, out.data());
  return out;
}
std::vector<std::int32_t> next_characters(const ArrayDataset& text, const std::vector<std::int64_t>& indices,
                                          std::int64_t shift) {
  std::vector<std::int32_t> out(indices.size() * static_cast<std::size_t>(text.sample_shape[0]));
  Gather(text).next_characters(indices, shift, out.data());
  return out;
}

TEST_CASE("an alphabet is a text's bytes in order") {
  CHECK(alphabet_of("").empty());
  CHECK(alphabet_of("hello\n") == "\nehlo");
  CHECK(alphabet_of("\xc3\xa4z") == "z\xa4\xc3");
  CHECK(encode("hole", "ehlo") == std::vector<std::int32_t>{1, 3, 2, 0});
  CHECK(encode("", "").empty());
  CHECK(encode("\xff\x01", "\x01\xff") == std::vector<std::int32_t>{1, 0});
  CHECK_THROWS_WITH(encode("hallo", "ehlo"), Contains("'a' at place 1 is not in the alphabet of 4"));
  CHECK_THROWS_WITH(encode("\t", "ehlo"), Contains("byte 0x09"));
  CHECK_THROWS_WITH(encode("a", "ba"), Contains("not in order"));
  CHECK_THROWS_WITH(encode("a", "aab"), Contains("not in order"));
}

TEST_CASE("a text's samples lie behind each other, and labels are what follows") {
  const auto text = from_text("abcdefgh", "abcdefgh", 3);
  CHECK(text.is_text());
  CHECK(text.size() == 2);
  CHECK(text.classes == 8);
  CHECK(text.class_names.back() == "h");
  CHECK(alphabet_of(text) == "abcdefgh");
  CHECK(characters(text, {1, 0}, 0) == std::vector<std::int32_t>{3, 4, 5, 0, 1, 2});
  CHECK(next_characters(text, {1, 0}, 0) == std::vector<std::int32_t>{4, 5, 6, 1, 2, 3});
  // Shifted by two, the last one would have no character that follows.
  CHECK(characters(text, {0, 1}, 2) == std::vector<std::int32_t>{2, 3, 4, 4, 5, 6});
  CHECK(next_characters(text, {0, 1}, 2) == std::vector<std::int32_t>{3, 4, 5, 5, 6, 7});
  CHECK(from_text("abcd", "abcd", 3).size() == 1);
  CHECK_THROWS_WITH(from_text("abc", "abc", 3), Contains("3 characters"));
  CHECK_THROWS_WITH(from_text("abc", "abc", 0), Contains("0 characters"));
  CHECK_THROWS_WITH(from_text("abcx", "abc", 2), Contains("'x'"));
}

TEST_CASE("an epoch's shift is the same everywhere, and another one in each") {
  CHECK(epoch_shift(64, false, 1, 2) == 0);
  CHECK(epoch_shift(1, true, 1, 2) == 0);
  std::vector<int> counts(4);
  for (std::uint64_t epoch = 0; epoch < 4000; ++epoch) ++counts.at(static_cast<std::size_t>(epoch_shift(4, true, 1, epoch)));
  for (const int count : counts) CHECK(std::abs(count - 1000) < 140);  // 5 standard deviations
  // Fixed numbers: others would change every seeded training run.
  CHECK(epoch_shift(64, true, 1, 0) == 56);
  CHECK(epoch_shift(64, true, 1, 1) == 61);
}

TEST_CASE("a text that contradicts itself is refused") {
  auto text = from_text("abcdefgh", "abcdefgh", 3);
  text.text[5] = 8;
  CHECK_THROWS_WITH(validate(text), Contains("character 8 at place 5"));
  text.text[5] = -1;
  CHECK_THROWS_WITH(validate(text), Contains("character -1"));
  text = from_text("abcdefgh", "abcdefgh", 3);
  text.sample_shape = {2, 3};
  CHECK_THROWS_WITH(validate(text), Contains("{length}"));
  text.sample_shape = {8};
  CHECK_THROWS_WITH(validate(text), Contains("no sample of 8"));
  text.sample_shape = {3};
  text.labels = {1, 2};
  CHECK_THROWS_WITH(validate(text), Contains("beside samples"));
}

TEST_CASE("a file of text: the last tenth is for validation, what is no text is refused") {
  const clnet::test::Folder folder;
  const auto file = [&](const std::string& content) {
    folder.write("text.txt", content);
    return folder / "text.txt";
  };
  std::string content;
  for (int i = 0; i < 95; ++i) content += static_cast<char>('a' + i % 3);
  content += "zzzzz";
  const auto train = load_text(file(content), Split::train, 4), test = load_text(folder / "text.txt", Split::test, 4);
  CHECK(train.text.size() == 90);
  CHECK(test.text.size() == 10);
  CHECK(train.name == "text.txt");
  CHECK(train.class_names == std::vector<std::string>{"a", "b", "c", "z"});
  CHECK(test.class_names == train.class_names);
  CHECK(test.text.back() == 3);

  CHECK_THROWS_WITH(load_text(folder / "missing.txt", Split::train, 4), Contains("missing.txt"));
  CHECK_THROWS_WITH(load_text(folder.path(), Split::train, 4), Contains("is a folder"));
  CHECK_THROWS_WITH(load_text(file(""), Split::train, 4), Contains("is empty"));
  CHECK_THROWS_WITH(load_text(file(content), Split::test, 10), Contains("is too short: 100 characters"));
  CHECK_THROWS_WITH(load_text(file(content + std::string(1, '\0')), Split::train, 4), Contains("byte 100 is zero"));
}

}  // namespace
}  // namespace clnet::data
