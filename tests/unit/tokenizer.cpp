// Tokenizers: bytes, characters, words and byte pairs, beside Hugging Face's and a slow one.
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "clnet/data.h"
#include "clnet/error.h"
#include "lib/data/text_units.h"
#include "tests/support/temporary.h"

namespace clnet::data {
namespace {

using Catch::Contains;
using Numbers = std::vector<std::int32_t>;
using Texts = std::vector<std::string>;

constexpr std::string_view shells =
    "low lower lowest, newer newest wider widest.\n\nthe lower the newer; 1984 and 2026 and 19842026.\n"
    "  she sells sea shells on the sea shore, the shells she sells are sea shells   for sure\n";

Texts texts_of(const Tokenizer& tokenizer, const Numbers& numbers) {
  Texts result;
  for (const auto number : numbers) result.push_back(tokenizer.tokens().at(static_cast<std::size_t>(number)));
  return result;
}

TEST_CASE("tokens of bytes") {
  const auto bytes = Tokenizer::bytes();
  CHECK(bytes.size() == 256);
  CHECK(bytes.encode(std::string_view("a\0\xff", 3)) == Numbers{97, 0, 255});
  CHECK(bytes.decode(Numbers{97, 0, 255}) == std::string("a\0\xff", 3));
  CHECK_THROWS_WITH(bytes.decode(Numbers{97, 256}), Contains("256 at place 1 is none of 256 tokens"));
  CHECK_THROWS_WITH(bytes.decode(Numbers{-1}), Contains("-1 at place 0"));
}

TEST_CASE("tokens of characters are UTF-8's") {
  const auto all = Tokenizer::characters(
      "b\xc3\xa4"
      "ba\xe2\x82\xac\xf0\x9f\x90\x9a\xff\xc3");
  CHECK(all.tokens() == Texts{"<unk>", "a", "b", "\xc3", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x90\x9a", "\xff"});
  CHECK(all.encode("b\xe2\x82\xac"
                   "cB") == Numbers{2, 5, 0, 0});
  CHECK(all.decode(all.encode("\xf0\x9f\x90\x9a\xc3\xa4")) == "\xf0\x9f\x90\x9a\xc3\xa4");
  const auto lower = Tokenizer::characters("AaBbb", {.lower = true, .unknown = false});
  CHECK(lower.tokens() == Texts{"a", "b"});
  CHECK(lower.encode("ABb") == Numbers{0, 1, 1});
  CHECK_THROWS_WITH(lower.encode("abc"), Contains("\"c\" at place 2 is none of 2 tokens"));
  CHECK(Tokenizer::characters("aabbbc", {.size = 3}).tokens() == Texts{"<unk>", "a", "b"});
}

TEST_CASE("tokens of words are the most frequent ones") {
  constexpr std::string_view text = "The cat's hat, the dog\tand the_1 hat!\n";
  CHECK(Tokenizer::words(text).tokens() == Texts{"<unk>", "hat", "!", ",", "The", "and", "cat's", "dog", "the", "the_1"});
  const auto words = Tokenizer::words(text, {.size = 3, .lower = true});
  CHECK(words.tokens() == Texts{"<unk>", "hat", "the"});
  CHECK(words.encode("THE hat, the bird") == Numbers{2, 1, 0, 2, 0});
  CHECK(words.decode(words.encode("the hat")) == "the hat");
  CHECK(Tokenizer::words(text, {.min_count = 2}).tokens() == Texts{"<unk>", "hat"});
  CHECK_THROWS_WITH(Tokenizer::words(text, {.unknown = false}).encode("a bird"), Contains("\"a\" at place 0"));
  CHECK_THROWS_WITH(Tokenizer::words(text, {.size = 1}), Contains("size is 1"));
  CHECK_THROWS_WITH(Tokenizer::words(text, {.min_count = 0}), Contains("min_count is 0"));
}

TEST_CASE("pieces of a text are those of GPT-2's pattern") {
  const auto pieces = [](std::string_view text) {
    Texts result;
    for (const auto piece : pieces_of(text)) result.emplace_back(piece);
    return result;
  };
  CHECK(pieces("a b12, .c  d\n e\n\nf  ") ==
        Texts{"a", " b", "12", ",", " .", "c", " ", " d", "\n", " e", "\n", "\n", "f", "  "});
  CHECK(pieces("").empty());
  CHECK(pieces(std::string(130, 'x')) == Texts{std::string(64, 'x'), std::string(64, 'x'), "xx"});
}

TEST_CASE("byte pairs are merged as Hugging Face's tokenizers 0.23.3 merges them") {
  // BpeTrainer(min_frequency=2) over pieces by GPT-2's pattern without contractions.
  const Texts wanted{" s",  "he",   "we",  "ll", " se",  " she",    "lls",  "lo",     "the",    "wer",   " a",    " n",
                     " lo", " the", "re",  "st", " sea", " shells", " ne",  " 1",     " w",     "02",    "202",   "84",
                     "984", "de",   "ide", "nd", "west", " sells",  " and", " lower", " newer", " 1984", " wide", "2026"};
  const auto bpe = Tokenizer::bpe(shells);
  REQUIRE(bpe.size() == 256 + 36);
  CHECK(Texts(bpe.tokens().begin() + 256, bpe.tokens().end()) == wanted);
  CHECK(texts_of(bpe, bpe.encode("the newest sea shell, 2026")) ==
        Texts{"the", " ne", "west", " sea", " she", "ll", ",", " ", "2026"});
  CHECK(Tokenizer::bpe(shells, {.size = 260}).merges() ==
        std::vector<std::pair<std::int32_t, std::int32_t>>{{' ', 's'}, {'h', 'e'}, {'w', 'e'}, {'l', 'l'}});
}

/// Counts all pairs again for each merge.
std::vector<std::pair<std::int32_t, std::int32_t>> slow_merges(std::string_view text, std::int32_t size) {
  std::vector<Numbers> pieces;
  for (const auto piece : pieces_of(text)) {
    pieces.emplace_back();
    for (const char c : piece) pieces.back().push_back(static_cast<unsigned char>(c));
  }
  std::vector<std::pair<std::int32_t, std::int32_t>> merges;
  for (std::int32_t next = 256; next < size; ++next) {
    std::map<std::pair<std::int32_t, std::int32_t>, int> counts;
    for (const auto& piece : pieces)
      for (std::size_t i = 0; i + 1 < piece.size(); ++i) ++counts[{piece[i], piece[i + 1]}];
    std::pair<std::int32_t, std::int32_t> best;
    int most = 1;
    for (const auto& [pair, count] : counts)
      if (count > most) {
        most = count;
        best = pair;
      }
    if (most == 1) break;
    merges.push_back(best);
    for (auto& piece : pieces) {
      Numbers merged;
      for (std::size_t i = 0; i < piece.size(); ++i)
        if (i + 1 < piece.size() && piece[i] == best.first && piece[i + 1] == best.second) {
          merged.push_back(next);
          ++i;
        } else {
          merged.push_back(piece[i]);
        }
      piece = merged;
    }
  }
  return merges;
}

TEST_CASE("byte pairs of random texts are a slow trainer's, and any text returns") {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::string text;
    const std::string_view letters = round % 2 == 0 ? "ab " : "aab c\n1.\xc3\xa4";
    for (int i = 0; i < 400; ++i) text += letters[random() % letters.size()];
    const auto bpe = Tokenizer::bpe(text, {.size = 330});
    REQUIRE(bpe.merges() == slow_merges(text, 330));
    CHECK(bpe.decode(bpe.encode(text)) == text);
    CHECK(bpe.encode(text).size() < text.size());
    std::string other;
    for (int i = 0; i < 300; ++i) other += static_cast<char>(random() % 256);
    CHECK(bpe.decode(bpe.encode(other)) == other);
  }
  CHECK(Tokenizer::bpe("").size() == 256);
  CHECK_THROWS_WITH(Tokenizer::bpe("", {.size = 255}), Contains("size is 255, expected 256"));
}

TEST_CASE("tokenizers return from their files") {
  const test::Folder folder;
  for (const auto& tokenizer : {Tokenizer::bytes(), Tokenizer::characters(shells, {.lower = true}), Tokenizer::words(shells),
                                Tokenizer::words(shells, {.unknown = false}), Tokenizer::bpe(shells, {.lower = true})}) {
    tokenizer.save(folder / "a.txt");
    const auto back = Tokenizer::load(folder / "a.txt");
    CHECK(back.kind() == tokenizer.kind());
    CHECK(back.tokens() == tokenizer.tokens());
    CHECK(back.merges() == tokenizer.merges());
    CHECK(back.encode(shells) == tokenizer.encode(shells));
    if (tokenizer.kind() != Tokenizer::Kind::bytes) CHECK(back.encode("the") == tokenizer.encode("the"));
    back.save(folder / "b.txt");
    CHECK(test::content(folder / "a.txt") == test::content(folder / "b.txt"));
  }
}

TEST_CASE("a tokenizer's file that is not one says why, with the line") {
  const test::Folder folder;
  const auto fault = [&](std::string_view content) {
    const auto path = folder.write("bad.txt", content);
    try {
      Tokenizer::load(path);
    } catch (const FileError& error) {
      CHECK(std::string(error.what()).starts_with(path.string() + ": line "));
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
      return std::string(error.what());
    }
    return std::string("read");
  };
  const std::string head = "clnet tokenizer 1\n", bpe = head + "kind bpe\nlower 0\nunknown 0\ntokens 0\nmerges ",
                    words = head + "kind words\nlower 0\nunknown 1\ntokens ";
  CHECK(fault(bpe + "1\n97 98\n") == "read");
  CHECK(fault(words + "1\n61\nmerges 0\n") == "read");
  CHECK_THAT(fault(""), Contains("line 1: is missing"));
  CHECK_THAT(fault("something\n"), Contains("is no file of Tokenizer::save()"));
  CHECK_THAT(fault("clnet tokenizer 2\n"), Contains("is of version \"2\" of this format, expected 1"));
  CHECK_THAT(fault("clnet tokenizer\n"), Contains("is of version \"\""));
  CHECK_THAT(fault(head), Contains("line 2: is missing"));
  CHECK_THAT(fault(head + "kind bpe"), Contains("line 2: has no end"));
  CHECK_THAT(fault(head + "kind other\n"), Contains("is no kind of tokenizer"));
  CHECK_THAT(fault(head + "lower 0\n"), Contains("expected \"kind\" and a value"));
  CHECK_THAT(fault(head + "kind bpe\nlower 2\n"), Contains("\"2\" is no number from 0 to 1"));
  CHECK_THAT(fault(head + "kind bpe\nlower 0\nunknown 1\n"), Contains("all bytes are known"));
  CHECK_THAT(fault(head + "kind bpe\nlower 0\nunknown 0\ntokens 1\n61\n"), Contains("tokens of bytes come from merges"));
  CHECK_THAT(fault(bpe + "1000000000\n"), Contains("is no number from 0 to"));
  CHECK_THAT(fault(bpe + "2\n97 98\n"), Contains("line 8: is missing"));
  CHECK_THAT(fault(bpe + "1\n97 256\n"), Contains("\"256\" is no number from 0 to 255"));
  CHECK_THAT(fault(bpe + "1\n97\n"), Contains("\"\" is no number"));
  CHECK_THAT(fault(bpe + "2\n97 98\n97 98\n"), Contains("a pair is merged twice"));
  CHECK_THAT(fault(bpe + "1\n97 98\nmore\n"), Contains("goes on behind the end"));
  CHECK_THAT(fault(bpe + "7\n97 97\n256 256\n257 257\n258 258\n259 259\n260 260\n261 261\n"),
             Contains("makes a token of 128 bytes"));
  CHECK_THAT(fault(words + "2\n61\n61\n"), Contains("a token is there twice"));
  CHECK_THAT(fault(words + "1\n6\n"), Contains("hexadecimal"));
  CHECK_THAT(fault(words + "1\n\n"), Contains("a token is empty"));
  CHECK_THAT(fault(words + "1\n61\nmerges 1\n97 98\n"), Contains("only byte pairs are merged"));
}

TEST_CASE("a text of tokens is a dataset") {
  const auto words = Tokenizer::words("a b c a");
  const auto text = from_text("a b c a", words, 2);
  CHECK(text.size() == 1);
  CHECK(text.classes == 4);
  CHECK(text.class_names == words.tokens());
  CHECK(text.text == Numbers{1, 2, 3, 1});
  CHECK_THROWS_WITH(from_text("a b", words, 2), Contains("2 tokens has no sample of 2"));
  CHECK_THROWS_WITH(from_text("a b", words, 0), Contains("0 tokens"));
}

}  // namespace
}  // namespace clnet::data
