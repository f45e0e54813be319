// Texts as datasets of characters.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "clnet/data.h"
#include "clnet/error.h"
#include "lib/base/file.h"

namespace clnet::data {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t most_text_bytes = std::uint64_t{1} << 30;
constexpr int absent = -1;

std::string shown(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code > ' ' && code < 0x7f ? fmt::format("'{}'", c) : fmt::format("byte 0x{:02x}", code);
}

}  // namespace

std::string alphabet_of(std::string_view text) {
  std::array<bool, 256> found{};
  for (const char c : text) found[static_cast<unsigned char>(c)] = true;
  std::string alphabet;
  for (std::size_t c = 0; c < found.size(); ++c)
    if (found[c]) alphabet += static_cast<char>(c);
  return alphabet;
}

std::string alphabet_of(const ArrayDataset& text) {
  std::string alphabet;
  for (const auto& character : text.class_names) alphabet += character;
  return alphabet;
}

std::vector<std::int32_t> encode(std::string_view text, std::string_view alphabet) {
  if (alphabet != alphabet_of(alphabet)) throw Error("encode: the alphabet is not in order, or has a character twice");
  std::array<std::int32_t, 256> places{};
  places.fill(absent);
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    places[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int32_t>(i);
  std::vector<std::int32_t> result;
  result.reserve(text.size());
  for (const char c : text) {
    const auto place = places[static_cast<unsigned char>(c)];
    if (place == absent)
      throw Error(
          fmt::format("{} at place {} is not in the alphabet of {} characters", shown(c), result.size(), alphabet.size()));
    result.push_back(place);
  }
  return result;
}

ArrayDataset from_text(std::string_view text, std::string_view alphabet, std::int64_t length) {
  if (length < 1) throw Error(fmt::format("from_text: samples of {} characters cannot be", length));
  if (std::cmp_less_equal(text.size(), length))
    throw Error(fmt::format("a text of {} characters has no sample of {} and one that follows", text.size(), length));
  ArrayDataset dataset;
  dataset.name = "text";
  dataset.sample_shape = {length};
  dataset.text = encode(text, alphabet);
  dataset.classes = static_cast<std::int64_t>(alphabet.size());
  for (const char c : alphabet) dataset.class_names.emplace_back(1, c);
  return dataset;
}

ArrayDataset load_text(const fs::path& path, Split split, std::int64_t length) {
  const auto content = file::read(path, most_text_bytes);
  const auto fail = [&](std::string_view what) -> void { throw FileError(fmt::format("{}: {}", path.string(), what)); };
  if (content.empty()) fail("is empty");
  if (const auto zero = content.find('\0'); zero != std::string::npos) fail(fmt::format("is no text: byte {} is zero", zero));
  const auto cut = content.size() - content.size() / 10;
  if (std::cmp_less_equal(content.size() / 10, length))
    fail(fmt::format("is too short: {} characters, of which the last tenth must be a sample of {} and one that follows",
                     content.size(), length));
  const auto whole = std::string_view(content);
  auto dataset = from_text(split == Split::train ? whole.substr(0, cut) : whole.substr(cut), alphabet_of(content), length);
  dataset.name = path.filename().string();
  return dataset;
}

}  // namespace clnet::data
