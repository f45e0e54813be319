// clnet-run: its output, and one line for all that it refuses.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "clnet/io.h"
#include "tests/models/process.h"
#include "tests/onnx/builder.h"
#include "tests/paths.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
using namespace clnet;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE("clnet-run: rows, files of outputs, multiply-adds, and inputs given twice") {
  const Folder folder;
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CLNET_RUN);
    return Process(folder.path(), std::move(arguments)).wait();
  };
  folder.write("model.onnx", Builder()
                                 .input("x", Type::f32, {-1, 2})
                                 .initializer("w", {2, 3}, {1, 2, 3, 6, 5, 4})
                                 .node("MatMul", {"x", "w"}, {"y"})
                                 .output("y")
                                 .model());
  folder.write("sequence.onnx",
               Builder().input("x", Type::f32, {-1, 2}).node("SequenceConstruct", {"x", "x"}, {"y"}).output("y").model());
  io::save_npy(folder / "x.npy", Tensor::from({1.0F, 0.0F, 0.0F, 1.0F}, {2, 2}));
  const auto found = run({"model.onnx", "x.npy", "--top", "1", "--output-dir", "out", "--format", "npy"});
  INFO(found.err);
  CHECK(found.code == 0);
  CHECK_THAT(found.out, StartsWith("y: float [2, 3]\n  row 0:\n    3.0000  2\n  row 1:\n    6.0000  0\nfirst run "));
  CHECK(io::load_npy(folder / "out/output_0.npy").to_vector<float>() == std::vector<float>{1, 2, 3, 6, 5, 4});
  CHECK_THAT(run({"model.onnx", "--info"}).out, Contains("\n6 multiply-adds in "));
  // What is short is shown whole, a long vector by its largest numbers.
  const auto vector = [&](std::int64_t size) {
    folder.write("vector.onnx", Builder().input("x", Type::f32, {size}).node("Neg", {"x"}, {"y"}).output("y").model());
    std::vector<float> numbers(static_cast<std::size_t>(size));
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    io::save_npy(folder / "v.npy", Tensor::from(numbers));
    return run({"vector.onnx", "v.npy"}).out;
  };
  CHECK_THAT(vector(3), StartsWith("y: float [3]\n  -0  -1  -2\nfirst run "));
  CHECK_THAT(vector(9), StartsWith("y: float [9]\n   -0.0000  0\n   -1.0000  1\n"));
  const auto refused = [&](const std::string& reason, const std::vector<std::string>& arguments) {
    const auto outcome = run(arguments);
    CHECK(outcome.code > 0);
    CHECK_THAT(outcome.err, StartsWith("clnet-run: ") && Contains(reason));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  };
  refused("x.npy: input x is given twice", {"model.onnx", "x=x.npy", "x=x.npy"});
  refused("output y is a sequence, which only pb holds", {"sequence.onnx", "x.npy", "--output-dir", "out", "--format", "npy"});
}

TEST_CASE("clnet-run: a loop without an end ends by --timeout and by Ctrl-C, and --info does not wait for it") {
  const Folder folder;
  Builder body, b;
  body.input("i", Type::i64).input("go", Type::boolean).input("v").node("Add", {"v", "v"}, {"next"}).output("go", Type::boolean);
  b.input("x", Type::f32, {2}).output("y").initializer("on", {}, {1}, Type::boolean);
  b.node("Loop", {"", "on", "x"}, {"y"}, {graph_attribute("body", body.output("next").graph())});
  folder.write("loop.onnx", b.model());
  io::save_npy(folder / "x.npy", Tensor::from({1.0F, 0.0F}));
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{CLNET_RUN, "loop.onnx"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Process(folder.path(), std::move(arguments)).wait();
  };
  const auto late = run({"x.npy", "--timeout", "0.5"});
  CHECK(late.code == 1);
  CHECK_THAT(late.err, StartsWith("clnet-run: ") && Contains("took longer than the 0.5 s of --timeout"));
  const auto shown = run({"--info", "--timeout", "0.5"});
  CHECK(shown.code == 0);
  CHECK_THAT(shown.out, Contains("unknown multiply-adds") && Contains("it takes too long"));
  for (const char* what : {"x.npy", "--info"}) {
    CAPTURE(what);
    Process endless(folder.path(), {CLNET_RUN, "loop.onnx", what});
    // The handler is there before the file is read.
    std::this_thread::sleep_for(std::chrono::seconds(2));
    endless.signal(SIGINT);
    const auto ended = endless.wait();
    CHECK(ended.code == 130);
    CHECK(ended.err == "clnet-run: interrupted\n");
  }
}
