#include "lib/base/hash.h"

#include <catch2/catch.hpp>

using clnet::Hash;

TEST_CASE("the hash is FNV-1a, the same everywhere") {
  CHECK(Hash().hex() == "cbf29ce484222325");
  // The published FNV-1a of "a", followed by the text's length.
  const std::uint64_t a = 0xaf63dc4c8601ec8cULL;
  std::uint64_t expected = a;
  for (int i = 0; i < 8; ++i) expected = (expected ^ (i == 0 ? 1u : 0u)) * 0x100000001b3ULL;
  CHECK(Hash().add("a").value() == expected);
}

TEST_CASE("where one text ends and the next begins matters") {
  CHECK(Hash().add("ab").add("c").value() != Hash().add("a").add("bc").value());
  CHECK(Hash().add("").add("a").value() != Hash().add("a").add("").value());
  CHECK(Hash().add(std::uint64_t{1}).value() != Hash().add(std::uint64_t{256}).value());
}
