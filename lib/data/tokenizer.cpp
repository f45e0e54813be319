#include "clnet/data/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"
#include "lib/data/byte_pairs.h"
#include "lib/data/gather.h"
#include "lib/data/text_units.h"

namespace clnet::data {
namespace {

constexpr std::string_view tokenizer_format = "clnet tokenizer", tokenizer_version = "1";
constexpr std::uint64_t most_tokenizer_bytes = std::uint64_t{128} << 20;
constexpr std::int64_t most_tokens = std::int64_t{1} << 22, bytes_in_all = 256;
constexpr std::array<std::string_view, 4> kind_names{"bytes", "characters", "words", "bpe"};
constexpr const char* unknown_text = "<unk>";

void require_token_options(const TokenizerOptions& options, std::int64_t least) {
  if (options.size != 0 && (options.size < least || options.size > most_tokens))
    throw Error(fmt::format("tokenizer: size is {}, expected {} to {}, or 0", options.size, least, most_tokens));
  if (options.min_count < 1) throw Error(fmt::format("tokenizer: min_count is {}, expected at least 1", options.min_count));
}

/// Those with most occurrences, first by them and then by their bytes.
std::vector<std::string> frequent(const std::vector<std::string_view>& units, const TokenizerOptions& options) {
  std::map<std::string_view, std::int64_t> counts;
  for (const auto unit : units) ++counts[unit];
  std::vector<std::pair<std::int64_t, std::string_view>> order;
  for (const auto& [unit, count] : counts)
    if (count >= options.min_count) order.emplace_back(-count, unit);
  std::sort(order.begin(), order.end());
  const auto most = static_cast<std::size_t>((options.size == 0 ? most_tokens : options.size) - (options.unknown ? 1 : 0));
  if (order.size() > most) order.resize(most);
  std::vector<std::string> result;
  for (const auto& [count, unit] : order) result.emplace_back(unit);
  return result;
}

std::string hexadecimal(std::string_view bytes) {
  std::string digits;
  for (const char c : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return digits;
}

/// Reads line by line; faults name file and line.
class TokenizerFile {
 public:
  explicit TokenizerFile(const std::filesystem::path& path) : path_(path), content_(file::read(path, most_tokenizer_bytes)) {
    const auto first = line();
    if (!first.starts_with(tokenizer_format)) fail("is no file of Tokenizer::save()");
    const auto version = first.substr(std::min(first.size(), tokenizer_format.size() + 1));
    if (version != tokenizer_version)
      fail(fmt::format("is of version {} of this format, expected {}", in_quotes(version), tokenizer_version));
  }

  [[noreturn]] void fail(std::string_view reason) const {
    throw FileError(fmt::format("{}: line {}: {}", path_.string(), number_, reason));
  }
  std::string_view line() {
    ++number_;
    if (at_ >= content_.size()) fail("is missing");
    const auto end = content_.find('\n', at_);
    if (end == std::string::npos) fail("has no end");
    const auto result = std::string_view(content_).substr(at_, end - at_);
    at_ = end + 1;
    return result;
  }
  /// What stands behind "NAME ".
  std::string_view field(std::string_view name) {
    const auto text = line();
    if (!text.starts_with(name) || text.size() <= name.size() || text[name.size()] != ' ')
      fail(fmt::format("expected {} and a value, got {}", in_quotes(name), in_quotes(text)));
    return text.substr(name.size() + 1);
  }
  std::int64_t number(std::string_view text, std::int64_t most) const {
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > most)
      fail(fmt::format("{} is no number from 0 to {}", in_quotes(text), most));
    return value;
  }
  /// A count of lines that follow, each with its end.
  std::int64_t count(std::string_view name) {
    return number(field(name), std::min<std::int64_t>(most_tokens, static_cast<std::int64_t>(content_.size() - at_)));
  }
  std::string bytes() {
    const auto text = line();
    std::string result;
    for (std::size_t i = 0; i < text.size(); i += 2) {
      unsigned value = 0;
      const auto digits = text.substr(i, 2);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
      if (error != std::errc() || digits.size() != 2 || end != digits.data() + 2) fail("is no text of hexadecimal digits");
      result += static_cast<char>(value);
    }
    return result;
  }
  void expect_end() {
    if (at_ == content_.size()) return;
    ++number_;
    fail("goes on behind the end");
  }

 private:
  const std::filesystem::path path_;
  const std::string content_;
  std::size_t at_ = 0, number_ = 0;
};

}  // namespace

void Tokenizer::index_tokens() {
  for (std::size_t i = unknown_ ? 1 : 0; i < tokens_.size(); ++i) numbers_.emplace(tokens_[i], static_cast<std::int32_t>(i));
}

/// All tokens of bytes and their merges.
void Tokenizer::index_merges() {
  tokens_.clear();
  for (std::int64_t i = 0; i < bytes_in_all; ++i) tokens_.emplace_back(1, static_cast<char>(i));
  for (const auto& pair : merges_) {
    merged_.emplace(pair, static_cast<std::int32_t>(tokens_.size()));
    tokens_.push_back(tokens_[static_cast<std::size_t>(pair.first)] + tokens_[static_cast<std::size_t>(pair.second)]);
  }
}

Tokenizer Tokenizer::bytes() {
  Tokenizer result;
  result.index_merges();
  return result;
}

Tokenizer Tokenizer::of_units(Kind kind, std::string_view text, const TokenizerOptions& options) {
  require_token_options(options, 2);
  const auto lowered = options.lower ? lower_case(text) : std::string(text);
  Tokenizer result;
  result.kind_ = kind;
  result.lower_ = options.lower;
  result.unknown_ = options.unknown;
  auto kept = frequent(kind == Kind::characters ? characters_of(lowered) : words_of(lowered), options);
  // Few characters: a person who reads them looks for the order of their bytes.
  if (kind == Kind::characters) std::sort(kept.begin(), kept.end());
  if (options.unknown) result.tokens_.emplace_back(unknown_text);
  result.tokens_.insert(result.tokens_.end(), kept.begin(), kept.end());
  result.index_tokens();
  return result;
}

Tokenizer Tokenizer::characters(std::string_view text, const TokenizerOptions& options) {
  return of_units(Kind::characters, text, options);
}

Tokenizer Tokenizer::words(std::string_view text, const TokenizerOptions& options) {
  return of_units(Kind::words, text, options);
}

Tokenizer Tokenizer::bpe(std::string_view text, const TokenizerOptions& options) {
  constexpr std::int64_t usual_size = 1024;
  require_token_options(options, bytes_in_all);
  Tokenizer result;
  result.kind_ = Kind::bpe;
  result.lower_ = options.lower;
  result.merges_ = frequent_merges(options.lower ? lower_case(text) : std::string(text),
                                   (options.size == 0 ? usual_size : options.size) - bytes_in_all,
                                   std::max<std::int64_t>(options.min_count, 2));
  result.index_merges();
  return result;
}

std::int32_t Tokenizer::token_of(std::string_view unit, std::size_t place) const {
  if (const auto found = numbers_.find(unit); found != numbers_.end()) return found->second;
  if (!unknown_) throw Error(fmt::format("tokenizer: {} at place {} is none of {} tokens", in_quotes(unit), place, size()));
  return 0;
}

void Tokenizer::encode_piece(std::string_view piece, std::vector<std::int32_t>& out) const {
  std::vector<std::int32_t> parts;
  for (const char c : piece) parts.push_back(static_cast<unsigned char>(c));
  for (;;) {
    // The merge that was learned first, and of these the first in the piece.
    auto best = std::numeric_limits<std::int32_t>::max();
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto found = merged_.find({parts[i], parts[i + 1]}); found != merged_.end() && found->second < best) {
        best = found->second;
        place = i;
      }
    if (best == std::numeric_limits<std::int32_t>::max()) break;
    parts[place] = best;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  out.insert(out.end(), parts.begin(), parts.end());
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view given) const {
  const auto lowered = lower_ ? lower_case(given) : std::string();
  const auto text = lower_ ? std::string_view(lowered) : given;
  std::vector<std::int32_t> result;
  switch (kind_) {
    case Kind::bytes:
      for (const char c : text) result.push_back(static_cast<unsigned char>(c));
      break;
    case Kind::characters:
      for (const auto unit : characters_of(text)) result.push_back(token_of(unit, result.size()));
      break;
    case Kind::words:
      for (const auto unit : words_of(text)) result.push_back(token_of(unit, result.size()));
      break;
    case Kind::bpe:
      for (const auto piece : pieces_of(text)) encode_piece(piece, result);
      break;
  }
  return result;
}

std::string Tokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= size())
      throw Error(fmt::format("tokenizer: {} at place {} is none of {} tokens", tokens[i], i, size()));
    if (kind_ == Kind::words && i > 0) text += ' ';
    text += tokens_[static_cast<std::size_t>(tokens[i])];
  }
  return text;
}

void Tokenizer::save(const std::filesystem::path& path) const {
  const bool has_merges = kind_ == Kind::bytes || kind_ == Kind::bpe;
  std::string text = fmt::format("{} {}\nkind {}\nlower {}\nunknown {}\n", tokenizer_format, tokenizer_version,
                                 kind_names[static_cast<std::size_t>(kind_)], lower_ ? 1 : 0, unknown_ ? 1 : 0);
  const std::size_t first = has_merges ? tokens_.size() : unknown_ ? 1 : 0;
  text += fmt::format("tokens {}\n", tokens_.size() - first);
  for (std::size_t i = first; i < tokens_.size(); ++i) text += hexadecimal(tokens_[i]) + '\n';
  text += fmt::format("merges {}\n", merges_.size());
  for (const auto& [left, right] : merges_) text += fmt::format("{} {}\n", left, right);
  file::replace(path, text);
}

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  TokenizerFile in(path);
  Tokenizer result;
  const auto kind = std::find(kind_names.begin(), kind_names.end(), in.field("kind"));
  if (kind == kind_names.end()) in.fail("is no kind of tokenizer");
  result.kind_ = static_cast<Kind>(kind - kind_names.begin());
  result.lower_ = in.number(in.field("lower"), 1) == 1;
  result.unknown_ = in.number(in.field("unknown"), 1) == 1;
  const bool has_tokens = result.kind_ == Kind::characters || result.kind_ == Kind::words;
  if (result.unknown_ && !has_tokens) in.fail("all bytes are known");
  if (result.unknown_) result.tokens_.emplace_back(unknown_text);
  const auto tokens = in.count("tokens");
  if (tokens > 0 && !has_tokens) in.fail("tokens of bytes come from merges");
  for (std::int64_t i = 0; i < tokens; ++i) {
    result.tokens_.push_back(in.bytes());
    if (result.tokens_.back().empty()) in.fail("a token is empty");
    if (!result.numbers_.emplace(result.tokens_.back(), static_cast<std::int32_t>(result.tokens_.size() - 1)).second)
      in.fail("a token is there twice");
  }
  const auto merges = in.count("merges");
  if (merges > 0 && result.kind_ != Kind::bpe) in.fail("only byte pairs are merged");
  std::vector<std::size_t> lengths(bytes_in_all, 1);
  for (std::int64_t i = 0; i < merges; ++i) {
    const auto text = in.line();
    const auto space = std::min(text.find(' '), text.size());
    const auto left = in.number(text.substr(0, space), bytes_in_all + i - 1),
               right = in.number(text.substr(std::min(space + 1, text.size())), bytes_in_all + i - 1);
    // Else a few lines would make tokens that no memory holds.
    const auto length = lengths[static_cast<std::size_t>(left)] + lengths[static_cast<std::size_t>(right)];
    if (length > most_piece_bytes)
      in.fail(fmt::format("makes a token of {} bytes, expected at most {}", length, most_piece_bytes));
    lengths.push_back(length);
    const std::pair pair(static_cast<std::int32_t>(left), static_cast<std::int32_t>(right));
    if (!result.merged_.emplace(pair, static_cast<std::int32_t>(bytes_in_all + i)).second) in.fail("a pair is merged twice");
    result.merges_.push_back(pair);
  }
  in.expect_end();
  if (!has_tokens) result.index_merges();
  return result;
}

ArrayDataset from_text(std::string_view text, const Tokenizer& tokenizer, std::int64_t length) {
  if (length < 1) throw Error(fmt::format("from_text: samples of {} tokens cannot be", length));
  ArrayDataset dataset;
  dataset.name = "text";
  dataset.sample_shape = {length};
  dataset.text = tokenizer.encode(text);
  if (std::cmp_less_equal(dataset.text.size(), length))
    throw Error(fmt::format("a text of {} tokens has no sample of {} and one that follows", dataset.text.size(), length));
  dataset.classes = tokenizer.size();
  dataset.class_names = tokenizer.tokens();
  validate(dataset);
  return dataset;
}

}  // namespace clnet::data
