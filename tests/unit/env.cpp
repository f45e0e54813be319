#include "lib/base/env.h"

#include <catch2/catch.hpp>
#include <set>

#include "clnet/error.h"
#include "tests/support/temporary.h"

using namespace clnet;
using Set = clnet::test::Variable;

namespace {

/// What env::check() throws while the variable has the value; empty: nothing.
std::string error_with(const char* name, const char* value) {
  const Set set(name, value);
  try {
    env::check();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("an unset or empty variable has no value") {
  const Set unset("CLNET_DEVICE", nullptr);
  CHECK_FALSE(env::text("CLNET_DEVICE"));
  const Set empty("CLNET_DEVICE", "");
  CHECK_FALSE(env::text("CLNET_DEVICE"));
  const Set cpu("CLNET_DEVICE", "cpu");
  CHECK(env::text("CLNET_DEVICE") == "cpu");
}

TEST_CASE("a variable that is not in the table is a mistake") { CHECK_THROWS_AS(env::text("CLNET_NO_SUCH_THING"), Error); }

TEST_CASE("the table names each variable once") {
  std::set<std::string_view> names;
  for (const auto& variable : env::table()) {
    CHECK(names.insert(variable.name).second);
    CHECK(variable.name.starts_with("CLNET_"));
    CHECK_FALSE(variable.values.empty());
    CHECK_FALSE(variable.meaning.empty());
  }
  CHECK(names.contains("CLNET_TRACE"));
}

TEST_CASE("integers are whole and within bounds") {
  const auto with = [](const char* value) {
    const Set set("CLNET_DEBUG", value);
    return env::integer("CLNET_DEBUG", 0, 4);
  };
  CHECK(with("0") == 0);
  CHECK(with("4") == 4);
  CHECK_FALSE(with(nullptr));
  for (const char* wrong : {"5", "-1", "x", "1x", " 1", "1.0", "99999999999999999999"}) CHECK_THROWS_AS(with(wrong), Error);
  CHECK_THROWS_WITH(with("7"), "CLNET_DEBUG=7: expected an integer from 0 to 4");
}

TEST_CASE("flags are 0 or 1") {
  const auto with = [](const char* value) {
    const Set set("CLNET_POISON", value);
    return env::flag("CLNET_POISON");
  };
  CHECK_FALSE(with(nullptr));
  CHECK_FALSE(with("0"));
  CHECK(with("1"));
  CHECK_THROWS_WITH(with("yes"), "CLNET_POISON=yes: expected 0 or 1");
}

TEST_CASE("sizes take a unit") {
  const auto with = [](const char* value) {
    const Set set("CLNET_MEMORY_LIMIT", value);
    return env::bytes("CLNET_MEMORY_LIMIT");
  };
  CHECK_FALSE(with(nullptr));
  CHECK(with("1000000") == 1000000);
  CHECK(with("3K") == 3072);
  CHECK(with("512M") == std::size_t{512} << 20);
  CHECK(with("2g") == std::size_t{2} << 30);
  CHECK(with("1T") == std::size_t{1} << 40);
  for (const char* wrong : {"-1", "M", "1.5G", "2GB", "1 G", "2P", "18446744073709551616", "99999999999T"}) {
    CHECK_THROWS_AS(with(wrong), Error);
  }
}

TEST_CASE("the cache folder follows its own variable, then XDG, then home") {
  const Set home("HOME", "/home/somebody");
  {
    const Set own("CLNET_CACHE_DIR", "/own"), xdg("XDG_CACHE_HOME", "/xdg");
    CHECK(env::cache_folder() == "/own");
  }
  const Set own("CLNET_CACHE_DIR", nullptr);
  {
    const Set xdg("XDG_CACHE_HOME", "/xdg");
    CHECK(env::cache_folder() == "/xdg/clnet");
  }
  {
    const Set xdg("XDG_CACHE_HOME", "relative");
    CHECK(env::cache_folder() == "/home/somebody/.cache/clnet");
  }
  const Set xdg("XDG_CACHE_HOME", nullptr);
  CHECK(env::cache_folder() == "/home/somebody/.cache/clnet");
  const Set homeless("HOME", nullptr);
  CHECK_FALSE(env::cache_folder());
}

TEST_CASE("a variable with a name from before is an error that says the new one") {
  CHECK(error_with("CLNET_REUSE", "0") ==
        "CLNET_REUSE=0: the variable is called CLNET_MEMORY_SHARING now: CLNET_MEMORY_SHARING=0");
  CHECK(error_with("CLNET_CHAINS", "now") ==
        "CLNET_CHAINS=now: the variable is called CLNET_LAUNCH_BATCHES now: CLNET_LAUNCH_BATCHES=eager");
  CHECK(error_with("CLNET_CHAINS", "off").ends_with("CLNET_LAUNCH_BATCHES=off"));
  CHECK(error_with("CLNET_STREAM_FROM", "1G").ends_with("CLNET_NONTEMPORAL_STORES_FROM=1G"));
  CHECK(error_with("CLNET_REUSE", "").empty());
  CHECK(error_with("CLNET_CHAINS", "0") == "CLNET_CHAINS=0: the variable is called CLNET_LAUNCH_BATCHES now");
  CHECK(error_with("CLNET_LAUNCH_BATCHES", "always") == "CLNET_LAUNCH_BATCHES=always: the value is called force now");
  CHECK(error_with("CLNET_LAUNCH_BATCHES", "soon") == "CLNET_LAUNCH_BATCHES=soon: expected auto, off, eager or force");
}

TEST_CASE("a variable with a value that it cannot have is named with what it expects") {
  CHECK_NOTHROW(env::check());
  CHECK(error_with("CLNET_EAGER", "2") == "CLNET_EAGER=2: expected 0 or 1");
  CHECK(error_with("CLNET_DRIVER_HABITS", "off") == "CLNET_DRIVER_HABITS=off: expected 0 or 1");
  CHECK(error_with("CLNET_FUSION", "garbage") == "CLNET_FUSION=garbage: expected 0 or 1");
  CHECK(error_with("CLNET_WINOGRAD", "no") == "CLNET_WINOGRAD=no: expected 0 or 1");
  CHECK(error_with("CLNET_TF32", "yes") == "CLNET_TF32=yes: expected 0 or 1");
  CHECK(error_with("CLNET_POISON", "on") == "CLNET_POISON=on: expected 0 or 1");
  CHECK(error_with("CLNET_DEBUG", "all") == "CLNET_DEBUG=all: expected an integer from 0 to 4");
  CHECK(error_with("CLNET_TUNE", "fast") == "CLNET_TUNE=fast: expected on, off or seconds from 1 to 86400");
  CHECK(error_with("CLNET_CACHE", "never") == "CLNET_CACHE=never: expected on, off or force");
  CHECK(error_with("CLNET_VECTOR_WIDTH", "6") == "CLNET_VECTOR_WIDTH=6: expected 1, 4, 8 or 16");
  CHECK(error_with("CLNET_MEMORY_LIMIT", "much") ==
        "CLNET_MEMORY_LIMIT=much: expected a size in bytes, as in 1000000, 512M or 2G");
  CHECK(error_with("CLNET_KERNEL_DIR", "/nonexistent") == "CLNET_KERNEL_DIR=/nonexistent: expected a folder");
  for (const char* right : {"on", "off", "30"}) CHECK(error_with("CLNET_TUNE", right).empty());
  CHECK(error_with("CLNET_FUSION", "0").empty());
}
