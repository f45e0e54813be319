// libFuzzer: files of tokenizers, and texts to train them on.
#include "clnet/clnet.h"
#include "tests/readers/input.h"

CLNET_READER(tokenizer) {
  using clnet::data::Tokenizer;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const clnet::test::MemoryFile file(data, size);
  try {
    const auto tokenizer = Tokenizer::load(file.path());
    const bool is_exact = tokenizer.kind() == Tokenizer::Kind::bytes;
    if (is_exact && tokenizer.decode(tokenizer.encode(text)) != text) std::abort();
  } catch (const clnet::Error&) {
    // Also of encode(), for a character without a token.
  }
  const auto trained = Tokenizer::bpe(text, {.size = 300});
  if (trained.decode(trained.encode(text)) != text) std::abort();
  return 0;
}
