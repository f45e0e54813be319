// Texts as numbers: bytes, characters, words, or pairs of bytes that belong together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/data/arrays.h"
#include "clnet/export.h"

namespace clnet::data {

/// Options of Tokenizer::characters(), words() and bpe().
struct TokenizerOptions {
  std::int64_t size = 0;       ///< tokens at most, the most frequent ones; 0: no limit, and of bpe() 1,024
  std::int64_t min_count = 1;  ///< occurrences in the text that a token needs; bpe() merges no pair that comes but once
  bool lower = false;          ///< A to Z become a to z, in training and encode()
  bool unknown = true;         ///< characters() and words(): token 0 stands for all others; false: they are an error
};

/// A vocabulary and its rules. The same text and options give the same tokens on every machine.
class CLNET_API Tokenizer {
 public:
  enum class Kind : std::uint8_t { bytes, characters, words, bpe };

  /// 256 tokens: token i is the byte i.
  static Tokenizer bytes();
  /// The characters of a text in UTF-8, in the order of their bytes. A byte that is not UTF-8 is a character.
  static Tokenizer characters(std::string_view text, const TokenizerOptions& options = {});
  /// The words of a text, the most frequent ones first: runs of letters, digits, apostrophes, underscores and bytes above 127,
  /// and other characters one by one. Spaces and ends of lines separate words, and decode() writes one space between two.
  static Tokenizer words(std::string_view text, const TokenizerOptions& options = {});
  /// Byte pair encoding (R. Sennrich, B. Haddow, A. Birch, 2016) of bytes, as GPT-2's: 256 bytes, then merges of the most
  /// frequent pair of neighbours, of equal ones the pair with the lower numbers. Pairs lie in pieces of at most 64 bytes: a run
  /// of letters and bytes above 127, of digits or of other characters, each with a space before it, or spaces. Any text returns
  /// exactly.
  static Tokenizer bpe(std::string_view text, const TokenizerOptions& options = {});

  Kind kind() const { return kind_; }
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// The text of each token; "<unk>" for the unknown one.
  const std::vector<std::string>& tokens() const { return tokens_; }
  /// The pairs that bpe() merges, in order; merge i makes token 256 + i.
  const std::vector<std::pair<std::int32_t, std::int32_t>>& merges() const { return merges_; }

  /// Throws Error for a character or word without a token, where there is no unknown one.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// Throws Error for a number that is no token.
  std::string decode(std::span<const std::int32_t> tokens) const;

  /// Writes "clnet tokenizer 1", a text file, by a temporary file.
  void save(const std::filesystem::path& path) const;
  /// Throws FileError with path and line, also for another version, and above 128 MiB.
  static Tokenizer load(const std::filesystem::path& path);

 private:
  Tokenizer() = default;
  static Tokenizer of_units(Kind kind, std::string_view text, const TokenizerOptions& options);
  void index_tokens();
  void index_merges();
  std::int32_t token_of(std::string_view unit, std::size_t place) const;
  void encode_piece(std::string_view piece, std::vector<std::int32_t>& out) const;

  Kind kind_ = Kind::bytes;
  bool lower_ = false, unknown_ = false;
  std::vector<std::string> tokens_;
  std::vector<std::pair<std::int32_t, std::int32_t>> merges_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;              ///< of characters and words
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> merged_;  ///< what a pair becomes
};

/// A dataset with samples of `length` tokens. Throws Error for a text of fewer than length + 1 tokens, and as encode().
CLNET_API ArrayDataset from_text(std::string_view text, const Tokenizer& tokenizer, std::int64_t length);

}  // namespace clnet::data
