// Measured choices of solvers: the fastest right one wins, and is remembered for the same device and kernels only.
#include "lib/exec/tune/tuning.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>

#include "lib/base/file.h"
#include "lib/exec/choose/solver.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::exec;

TEST_CASE("the fastest right solver wins, wrong ones are discarded") {
  const auto trial = [](const char* solver, std::vector<float> values, double seconds, std::vector<std::size_t> ends = {}) {
    return Trial{solver, std::move(values), seconds, std::move(ends)};
  };
  const std::vector<Trial> trials{trial("wrong", {1, 2, 3.5F}, 0.1),   trial("not a number", {1, NAN, 3}, 0.1),
                                  trial("too short", {1, 2}, 0.1),     trial("slow", {1, 2, 3}, 2),
                                  trial("fast", {1, 2.0001F, 3}, 0.5), trial("reference", {1, 2, 3}, 10)};
  CHECK(fastest_right(trials, 1e-4, "p").solver == "fast");
  CHECK(fastest_right(trials, 1e-6, "p").solver == "slow");
  CHECK(fastest_right(trials, 1, "p").solver == "wrong");
  CHECK(fastest_right(std::span(trials).last(1), 0, "p").solver == "reference");
  // Each output by its own largest value: a sum over a batch hides no wrong gradient.
  const std::vector<Trial> outputs{trial("wrong", {1, 2, 30'000}, 0.1, {2, 3}), trial("right", {1, 1.0001F, 30'002}, 1, {2, 3}),
                                   trial("reference", {1, 1, 30'000}, 10, {2, 3})};
  CHECK(fastest_right(outputs, 1e-4, "p").solver == "right");
}

TEST_CASE("a solver and a configuration are written and read alike") {
  for (const char* text : {"cpu", "cpu{lanes=8}", "gpu{tile=64,parts=2}"}) CHECK(Choice::parse(text).text() == text);
  const auto choice = Choice::parse("gpu{tile=64,parts=2}");
  CHECK(choice.solver == "gpu");
  CHECK(choice.config["parts"] == 2);
  CHECK_THROWS_AS(choice.config["lanes"], Error);
  CHECK(choice.config.agrees(Choice::parse("gpu").config));
  CHECK(choice.config.agrees(Choice::parse("gpu{parts=2}").config));
  CHECK_FALSE(choice.config.agrees(Choice::parse("gpu{parts=3}").config));
  CHECK_FALSE(choice.config.agrees(Choice::parse("gpu{lanes=2}").config));
  for (const char* text : {"cpu{", "cpu{}", "cpu{lanes}", "cpu{lanes=}", "cpu{=8}", "cpu{lanes=8", "cpu{lanes=8x}",
                           "cpu{lanes=8,}", "cpu{lanes=99999999999999999999}"}) {
    INFO(text);
    CHECK_THROWS_AS(Choice::parse(text), Error);
  }
}

TEST_CASE("choices are kept for one identity, and damaged files are ignored") {
  const clnet::test::Folder folder;
  const auto path = (folder.path() / "deeper" / "tuning.json").string();
  {
    TuningFile file(path, "device A");
    CHECK(file.empty());
    file.set("problem", {"cpu{lanes=8}", 1.5});
    file.save();
    TuningFile other(path, "device A");
    other.set("another", {"direct", 2});
    other.save();
    file.set("third", {"cpu", 3});
    file.save();
  }
  const TuningFile again(path, "device A");
  REQUIRE(again.find("problem"));
  CHECK(again.find("problem")->choice == "cpu{lanes=8}");
  CHECK(again.find("problem")->milliseconds == 1.5);
  CHECK(again.find("another"));
  CHECK(again.find("third"));
  CHECK_FALSE(again.find("fourth"));
  CHECK(TuningFile(path, "device B").empty());
  for (const char* content : {"", "{", "[1]", R"({"for": 3})", R"({"for": "device A", "choices": {"problem": 3}})"}) {
    INFO(content);
    file::replace(path, content);
    CHECK(TuningFile(path, "device A").empty());
  }
}

TEST_CASE("choices that are followed are those of the same identity") {
  const auto stored = [](const Choices& choices) { return StoredChoices::parse(choices.text()); };
  Choices first("device A"), second("device A"), other("device B");
  CHECK(first.text() == Choices("device A").text());
  first.note("a problem", Choice::parse("cpu{lanes=8}"));
  first.note("a problem", Choice::parse("cpu{lanes=8}"));
  first.note("seen twice", Choice::parse("cpu{lanes=8}"));
  first.note("seen twice", Choice::parse("cpu{lanes=16}"));
  CHECK(first.is_noted("a problem"));
  CHECK_FALSE(first.is_noted("another"));
  CHECK_FALSE(second.follows());
  CHECK(second.follow(stored(first)) == Choices::Follows::yes);
  CHECK(second.follows());
  REQUIRE(second.followed("a problem"));
  CHECK(second.followed("a problem")->text() == "cpu{lanes=8}");
  CHECK_FALSE(second.followed("seen twice"));
  CHECK_FALSE(second.followed("another"));
  CHECK(other.follow(stored(first)) == Choices::Follows::no);
  CHECK_FALSE(other.follows());

  Choices third("device A");
  third.note("a problem", Choice::parse("direct"));
  third.note("its own", Choice::parse("direct"));
  CHECK(third.follow(stored(first)) == Choices::Follows::changed);
  third.note("a problem", *third.followed("a problem"));
  CHECK(third.follow(stored(first)) == Choices::Follows::yes);
  // Another device's end it.
  CHECK(third.follow(stored(other)) == Choices::Follows::no);
  CHECK_FALSE(third.follows());

  for (const char* text :
       {"", "{", "[1]", R"({"for": 3})", R"({"for": "device A"})", R"({"for": "device A", "choices": {"a": 3}})",
        R"({"for": "device A", "choices": {"a": "cpu{lanes}"}})"}) {
    INFO(text);
    CHECK_THROWS_AS(StoredChoices::parse(text), Error);
  }
}

TEST_CASE("a solver with a name from before is told by the new one") {
  CHECK(no_such_solver("matmul", "cpu_packed") == "matmul: solver 'cpu_packed' is called 'packed_cpu' now");
  CHECK(no_such_solver("softmax", "cpu_packed") == "softmax: there is no solver named 'cpu_packed'");
}

TEST_CASE("choices of an older version are followed by the names that solvers have now") {
  const std::string name = "AMD EPYC | 3.1 | clnet ";
  const auto old = StoredChoices::parse(R"({"for": "AMD EPYC | 3.1 | clnet 0.1.0 | kernels 12", "choices": {
      "matmul {} of f32{2, 3} f32{3, 4}": "cpu_packed{lanes=8}", "conv2d {} of f32{1}": "cpu_planes",
      "conv2d_backward_weights {} of f32{1}": "gpu_matrix_units", "attention_backward {} of f32{1}": "cpu_few",
      "softmax {} of f32{1}": "cpu_packed", "reduce {} of f32{1}": "direct"}})");
  std::map<std::string, std::string> got;
  for (const auto& [problem, choice] : old.solvers) got[problem.substr(0, problem.find(' '))] = choice.text();
  CHECK(got == std::map<std::string, std::string>{{"matmul", "packed_cpu{lanes=8}"},
                                                  {"conv2d", "nchw_cpu"},
                                                  {"conv2d_backward_weights", "matrix_units_gpu"},
                                                  {"attention_backward", "few_queries_cpu"},
                                                  {"softmax", "cpu_packed"},
                                                  {"reduce", "direct"}});
  Choices later(name + "0.2.0 | kernels 13"), driver("AMD EPYC | 3.2 | clnet 0.1.0 | kernels 12");
  CHECK(later.follow(old) == Choices::Follows::yes);
  REQUIRE(later.followed("conv2d {} of f32{1}"));
  CHECK(later.followed("conv2d {} of f32{1}")->text() == "nchw_cpu");
  CHECK(StoredChoices::parse(later.text()).solvers.at("conv2d {} of f32{1}").text() == "nchw_cpu");
  CHECK(driver.follow(old) == Choices::Follows::no);
}

TEST_CASE("choices that are followed are stored again, met or not") {
  Choices first("device A"), second("device A");
  first.note("met again", Choice::parse("cpu{lanes=8}"));
  first.note("not yet", Choice::parse("cpu{lanes=8}"));
  first.note("now of none", Choice::parse("cpu{lanes=8}"));
  second.follow(StoredChoices::parse(first.text()));
  second.note("met again", Choice::parse("direct"));
  second.note("now of none", Choice::parse("direct"));
  second.note("now of none", Choice::parse("cpu{lanes=8}"));
  const auto again = StoredChoices::parse(second.text()).solvers;
  REQUIRE(again.size() == 2);
  CHECK(again.at("met again").text() == "direct");
  CHECK(again.at("not yet").text() == "cpu{lanes=8}");
}

TEST_CASE("only so many problems are noted") {
  Choices choices("device A");
  for (std::size_t i = 0; i < 2 * Choices::most; ++i) choices.note(std::to_string(i), Choice::parse("cpu"));
  const auto stored = StoredChoices::parse(choices.text());
  CHECK(stored.solvers.size() == Choices::most);
  CHECK(stored.solvers.contains(std::to_string(Choices::most - 1)));
  choices.follow({"device A", {{"one more", Choice::parse("cpu")}}});
  CHECK(StoredChoices::parse(choices.text()).solvers.size() == Choices::most);
}
