// An operation that is given no tensor says which operation and which argument it was.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "tests/ops/catalogue/dtypes.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

using Inputs = std::vector<Tensor>;

void check_missing(const std::string& operation, const std::string& argument, const std::function<void()>& run) {
  INFO(operation << ", argument " << argument);
  CHECK_THROWS_WITH(run(), operation + ": argument '" + argument + "' is undefined");
}

/// Overloads that no example calls.
struct Overload {
  std::string operation;
  std::vector<std::string> arguments;  ///< those that must be given
  std::function<void(const Inputs&)> run;
};

std::vector<Overload> overloads() {
  const auto scalar = [](const Tensor& start) { return start.defined() ? Tensor::scalar(0, Dtype::i64) : start; };
  return {
      {"equal", {"a", "b"}, [](const Inputs& t) { (void)equal(t[0], t[1]); }},
      {"lerp", {"a", "b", "weight"}, [](const Inputs& t) { lerp(t[0], t[1], t[2]); }},
      {"reshape", {"x"}, [](const Inputs& t) { reshape(t[0], Shape{4}); }},
      {"slice_update", {"x", "start", "value"}, [=](const Inputs& t) { slice_update(t[0], 0, scalar(t[1]), t[2]); }},
      {"narrow", {"x", "start"}, [=](const Inputs& t) { narrow(t[0], 0, scalar(t[1]), 1); }},
      {"rotary_embedding",
       {"x", "positions"},
       [](const Inputs& t) { rotary_embedding(t[0], t[1].defined() ? cast(t[1], Dtype::i32) : t[1]); }},
  };
}

struct Argument {
  std::string name;  ///< of a list's tensors with their places
  bool optional;
};

std::vector<Argument> arguments_of(const Example& example) {
  std::vector<Argument> arguments;
  for (const auto& operand : ops::catalogued(example.operation).operands) {
    const std::string name(operand.name);
    if (!name.ends_with("[]")) {
      arguments.push_back({name, operand.optional});
      continue;
    }
    for (std::size_t i = 0; i < example.inputs.size(); ++i)
      arguments.push_back({name.substr(0, name.size() - 1) + std::to_string(i) + "]", false});
  }
  return arguments;
}

}  // namespace

TEST_CASE("an undefined tensor is reported with the operation's and the argument's name") {
  for (const auto& example : examples()) {
    const Inputs inputs = example_tensors(example);
    const auto arguments = arguments_of(example);
    // Beside a number: an overload.
    if (arguments.size() > inputs.size() && !example.note.empty()) continue;
    for (std::size_t missing = 0; missing < arguments.size(); ++missing) {
      const auto& [name, may_be_missing] = arguments[missing];
      INFO(example.operation << ", argument " << name);
      if (missing >= inputs.size()) {
        CHECK(may_be_missing);
        continue;
      }
      auto given = inputs;
      given[missing] = {};
      if (may_be_missing)
        CHECK_NOTHROW(example.run(given));
      else
        check_missing(example.operation, name, [&] { example.run(given); });
    }
  }
  const Tensor none;
  for (const auto& operation : ops::catalogue()) {
    const std::string name(operation.name);
    if (operation.before_number) check_missing(name, "a", [&] { operation.before_number(none, 2); });
    if (operation.behind_number) check_missing(name, "b", [&] { operation.behind_number(2, none); });
  }
  for (const auto& overload : overloads())
    for (std::size_t missing = 0; missing < overload.arguments.size(); ++missing) {
      Inputs inputs(overload.arguments.size(), ones({2, 2}));
      inputs[missing] = {};
      check_missing(overload.operation, overload.arguments[missing], [&] { overload.run(inputs); });
    }
}

TEST_CASE("undefined tensors elsewhere") {
  const Tensor x = ones({2, 2}), none;
  CHECK_THROWS_WITH(gradients(none, {x}), "gradients: the loss is undefined");
  CHECK_THROWS_WITH(gradients(sum(x), {x, none}), "gradients: input 1 is undefined");
  CHECK_THROWS_WITH(checkpoint([] { return Tensor{}; }), "checkpoint: the function's result 0 is undefined");
  CHECK_THROWS_WITH(checkpoint([&] { return std::vector{x, none}; }), "checkpoint: the function's result 1 is undefined");
  CHECK_THROWS_WITH(nn::Parameter(none), Catch::Contains("undefined"));
  CHECK_THROWS_WITH(nn::Parameter(x).set(none), Catch::Contains("undefined"));
  CHECK_THROWS_WITH(nn::assign({{nn::Parameter(x), none}}), Catch::Contains("undefined"));
}
