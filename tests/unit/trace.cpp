#include "lib/cl/trace.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::ocl;
using nlohmann::json;

namespace {

json load(const std::string& path) { return json::parse(file::read(path, 1 << 20)); }

}  // namespace

TEST_CASE("a trace is valid JSON from the start and after every flush") {
  const clnet::test::Folder folder;
  const std::string path = folder / "trace.json";
  const auto trace = TraceFile::open(path);
  CHECK(load(path).at("traceEvents").empty());
  const int track = trace->add_track("a \"device\"");
  trace->flush();
  CHECK(load(path).at("traceEvents").size() == 1);
  for (int i = 0; i < 3; ++i) {
    trace->add(track, {"conv2d", "1x3x4x4\nsolver\\direct \xff", 10.5 + i, 2.25, 1e9, 3e12});
    if (i == 1) trace->flush();
  }
  CHECK(load(path).at("traceEvents").size() == 3);
  trace->flush();
  trace->flush();

  const json events = load(path).at("traceEvents");
  REQUIRE(events.size() == 4);
  CHECK(events[0].at("ph") == "M");
  CHECK(events[0].at("name") == "thread_name");
  CHECK(events[0].at("args").at("name") == "a \"device\"");
  // Fields of a complete event, as the trace event format asks for: numbers in microseconds, integer pid and tid.
  const json& event = events[2];
  CHECK(event.at("ph") == "X");
  CHECK(event.at("name") == "conv2d");
  CHECK(event.at("ts") == 11.5);
  CHECK(event.at("dur") == 2.25);
  CHECK(event.at("pid").is_number_integer());
  CHECK(event.at("tid") == track);
  CHECK(event.at("args").at("bytes") == 1e9);
  CHECK(event.at("args").at("flops") == 3e12);
}

TEST_CASE("a trace for which there is no room says so, once and for good") {
  const clnet::test::Folder folder;
  CHECK_THROWS_WITH(TraceFile("/dev/full"), Catch::Contains("No space left"));
  TraceFile trace(folder / "trace.json");
  const int track = trace.add_track("device");
  trace.flush();
  CHECK(trace.failure().empty());
  // What a full disk does, a limit on the size of files does too.
  auto* const before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{}, small{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  small = {512, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  for (int i = 0; i < 100; ++i) trace.add(track, {"kernel", "detail", 1, 2, 3, 4});
  trace.flush();
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  std::signal(SIGXFSZ, before);
  CHECK_THAT(trace.failure(), Catch::Contains("trace.json: trace is cut short: File too large"));
  trace.add(track, {"kernel", "detail", 1, 2, 3, 4});
  trace.flush();
  CHECK_FALSE(trace.failure().empty());
  // What was there before is there still.
  CHECK(load(folder / "trace.json").at("traceEvents").size() == 1);
}

TEST_CASE("devices share the trace of one path, each on its own track") {
  const clnet::test::Folder folder;
  const auto one = TraceFile::open(folder / "t"), two = TraceFile::open(folder / "t");
  CHECK(one == two);
  CHECK(one->add_track("a") != two->add_track("b"));
  CHECK(TraceFile::open(folder / "other") != one);
}

TEST_CASE("a trace that cannot be written is an error at once") {
  CHECK_THROWS_AS(TraceFile::open("/nonexistent/folder/t.json"), FileError);
}
