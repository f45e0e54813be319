// clnet-convert: formats, names, dtypes, and one line for all that it refuses.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "clnet/io.h"
#include "tests/models/process.h"
#include "tests/onnx/builder.h"
#include "tests/paths.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
using namespace clnet;
using Catch::Matchers::Contains;

namespace {

struct ConvertPlace {
  Folder folder;

  Outcome run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), CLNET_CONVERT);
    // It needs no device.
    return Process(folder.path(), std::move(arguments), {"OCL_ICD_VENDORS=/nonexistent"}).wait();
  }
  void convert(const std::vector<std::string>& arguments) const {
    const auto outcome = run(arguments);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
  }
  void refused(const std::string& reason, const std::vector<std::string>& arguments) const {
    const auto outcome = run(arguments);
    CHECK(outcome.code > 0);
    CHECK_THAT(outcome.err, Catch::Matchers::StartsWith("clnet-convert: ") && Contains(reason));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
};

}  // namespace

TEST_CASE("clnet-convert: weights go through all formats and stay the same") {
  const ConvertPlace place;
  const auto path = [&](const char* name) { return place.folder / name; };
  io::save_torch(path("a.pt"), {{"model.fc.weight", Tensor::from({1.5F, -2.0F}, {1, 2})},
                                {"model.steps", Tensor::from(std::vector<std::int64_t>{7}, {})}});
  place.convert({"a.pt", "b.safetensors", "--key", "model", "--rename", "fc=head", "--rename", "=net."});
  place.convert({"b.safetensors", "c.npz"});
  place.convert({"c.npz", "d.pth", "--dtype", "f16"});
  const auto state = io::load_state(path("d.pth"));
  REQUIRE(state.size() == 2);
  CHECK(state[0].first == "net.head.weight");
  CHECK(state[0].second.dtype() == Dtype::f16);
  CHECK(state[0].second.to_vector<float>() == std::vector<float>{1.5F, -2});
  CHECK(state[1].first == "net.steps");
  CHECK(state[1].second.item<std::int64_t>() == 7);
  const auto listed = place.run({"d.pth", "--list"});
  CHECK(listed.out ==
        "net.head.weight  f16   [1, 2]\n"
        "net.steps        i64   []\n"
        "2 tensors, 3 elements\n");

  place.folder.write("model.onnx", Builder()
                                       .input("x", Type::f32, {-1, 2})
                                       .initializer("w", {1, 2}, {0, 0})
                                       .initializer("kept", {1}, {3})
                                       .node("Mul", {"x", "w"}, {"y"})
                                       .output("y")
                                       .model());
  const auto into = place.run({"a.pt", "out.onnx", "--into", "model.onnx", "--rename", "model.fc.weight=w"});
  CHECK(into.out ==
        "out.onnx: replaced 1 initializers, kept 1\n"
        "left out 1 tensors that the model has no initializer for: model.steps\n");
  place.convert({"out.onnx", "e.safetensors"});
  const auto weights = io::load_state(path("e.safetensors"));
  REQUIRE(weights.size() == 2);
  CHECK(weights[0].second.to_vector<float>() == std::vector<float>{1.5F, -2});
  CHECK(weights[1].second.to_vector<float>() == std::vector<float>{3});

  place.refused("has the shape [1, 2], the model's initializer [1]",
                {"a.pt", "bad.onnx", "--into", "model.onnx", "--rename", "model.fc.weight=kept"});
  place.refused("\"w\" is float16, the model's initializer float",
                {"a.pt", "bad.onnx", "--into", "model.onnx", "--rename", "model.fc.weight=w", "--dtype", "f16"});
  place.refused("tensor \"w\" is given twice",
                {"a.pt", "bad.onnx", "--into", "model.onnx", "--rename", "model.fc.weight=w", "--rename", "model.steps=w"});
  place.refused("no tensor has the name of an initializer", {"a.pt", "bad.onnx", "--into", "model.onnx"});
  place.refused("--into names the ONNX file that takes them", {"a.pt", "bad.onnx"});
  place.refused("--into writes an ONNX file", {"a.pt", "bad.npz", "--into", "model.onnx"});
  place.refused("OUT or --list is needed", {"a.pt"});
  place.refused("its ending is none of", {"a.pt", "bad.txt"});
  place.refused("--rename fc: expected FROM=TO", {"a.pt", "bad.npz", "--rename", "fc"});
  place.refused("no tensor's name begins with \"fc\"", {"a.pt", "bad.npz", "--rename", "fc=head"});
  place.refused("is given twice", {"a.pt", "bad.npz", "--rename", "model.fc.weight=x", "--rename", "model.steps=x"});
  place.refused("has no tensor below \"ema\"", {"b.safetensors", "bad.npz", "--key", "ema"});
  place.refused("no.pt", {"no.pt", "bad.npz"});
  place.refused("--dtype", {"a.pt", "bad.npz", "--dtype", "i8"});
  for (const char* name : {"bad.onnx", "bad.npz", "bad.txt"}) CHECK_FALSE(std::filesystem::exists(path(name)));
}
