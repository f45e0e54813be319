// Saved networks: load() gives them again, with the same parameters and outputs, and another batch.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/onnx/save_cases.h"
#include "tests/onnx/save_checks.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

void check_network(const NetworkCase& network) {
  const onnx::Function own = [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{(*network.module)(in[0])}; };
  check_saved(network.name, own, {network.example}, *network.module, network.exact);
}

}  // namespace

TEST_CASE("saved operations compute the same", "[save]") {
  for (const auto& each : save_cases()) {
    DYNAMIC_SECTION(each.name) {
      const Folder folder;
      const auto path = folder / "model.onnx";
      onnx::save(each.function, each.examples, path, {.opset = each.opset});
      auto loaded = onnx::load(path);
      CHECK(loaded.missing_operators().empty());
      check_same(loaded.run(each.examples), each.function(each.examples), each.exact);
      CHECK((loaded.inputs()[0].extents[0] == "batch") == each.follows_batch);
      std::vector<std::vector<Tensor>> inputs{each.examples};
      if (each.follows_batch) {
        inputs.push_back(other_batch(each.examples));
        check_same(loaded.run(inputs[1]), each.function(inputs[1]), each.exact);
      }
      if (export_folder()) write_folder(fs::path(export_folder()) / ("op_" + each.name), path, inputs, each.function);
    }
  }
}

TEST_CASE("saved operations compute the same in the newest operator set", "[save][long]") {
  for (const auto& each : save_cases()) {
    DYNAMIC_SECTION(each.name) {
      const Folder folder;
      const auto path = folder / "model.onnx";
      onnx::save(each.function, each.examples, path, {.opset = 26});
      check_same(onnx::load(path).run(each.examples), each.function(each.examples), false);
      if (export_folder()) write_folder(fs::path(export_folder()) / ("op26_" + each.name), path, {each.examples}, each.function);
    }
  }
}

TEST_CASE("saved networks compute the same", "[save]") {
  for (const std::string name : {"mlp", "keras-cnn", "cnn", "lenet5", "resnet20", "char-lstm", "char-gpt"})
    DYNAMIC_SECTION(name) { check_network(network_case(name)); }
}

TEST_CASE("large saved networks compute the same", "[save][long]") {
  for (const std::string name : {"resnet18", "resnet50", "vgg16", "mobilenetv2"}) DYNAMIC_SECTION(name) {
      check_network(network_case(name));
    }
}

TEST_CASE("a batch norm is one node, and a GELU is one from operator set 20 on", "[save]") {
  const Folder folder;
  onnx::save(*network_case("resnet20").module, {ones({2, 3, 32, 32})}, folder / "r.onnx");
  const auto operators = onnx::load(folder / "r.onnx").operators();
  std::int64_t norms = 0, all = 0;
  for (const auto& [name, count] : operators) {
    if (name == "BatchNormalization") norms = count;
    all += count;
  }
  CHECK(norms == 21);
  CHECK(all == 73);
  onnx::save([](const std::vector<Tensor>& in) { return std::vector<Tensor>{gelu(in[0])}; }, {ones({2, 3})}, folder / "g.onnx",
             {.opset = 20});
  CHECK(onnx::load(folder / "g.onnx").operators() == std::vector<std::pair<std::string, std::int64_t>>{{"Gelu", 1}});
}

TEST_CASE("a module is saved in inference and keeps its mode", "[save]") {
  const Folder folder;
  nn::Sequential net{nn::Linear{4, 3}, nn::Dropout{0.5}, nn::BatchNorm1d{3}};
  const auto before = net.state_dict();
  onnx::save(net, {ones({2, 4})}, folder / "m.onnx", {.metadata = {{"author", "somebody"}}});
  CHECK(net.training());
  auto loaded = onnx::load(folder / "m.onnx");
  check_state(net, loaded);
  net.inference();
  CHECK(same_bits(loaded(ones({5, 4})), net(ones({5, 4}))));
}

TEST_CASE("names of inputs and outputs are those that are asked for", "[save]") {
  const Folder folder;
  const onnx::Function f = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[1], in[0]}; };
  onnx::save(f, {ones({2, 4}), ones({2, 4})}, folder / "m.onnx", {.input_names = {"a", "b"}, .output_names = {"sum", "same"}});
  const auto loaded = onnx::load(folder / "m.onnx");
  CHECK(loaded.inputs()[1].name == "b");
  CHECK(loaded.outputs()[0].name == "sum");
  CHECK(loaded.outputs()[1].name == "same");
}

TEST_CASE("a loaded network is saved with its names, and again has the same bits", "[save]") {
  const Folder folder;
  const auto network = network_case("cnn");
  onnx::save(*network.module, {network.example}, folder / "first.onnx", {.input_names = {"pixels"}, .output_names = {"logits"}});
  auto first = onnx::load(folder / "first.onnx");
  onnx::save(first, {network.example}, folder / "second.onnx");
  auto second = onnx::load(folder / "second.onnx");
  CHECK(second.inputs()[0].name == "pixels");
  CHECK(second.outputs()[0].name == "logits");
  check_state(first, second);
  CHECK(same_bits(first(network.example), second(network.example)));
}

TEST_CASE("where a graph is made for one batch, that is what is written", "[save]") {
  const Folder folder;
  const onnx::Function f = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{reshape(in[0], {2, 4})}; };
  onnx::save(f, {ones({2, 4, 1})}, folder / "m.onnx");
  CHECK(onnx::load(folder / "m.onnx").inputs()[0].extents == std::vector<std::string>{"2", "4", "1"});
  const onnx::Function g = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2}; };
  onnx::save(g, {ones({2, 4})}, folder / "m.onnx", {.dynamic_batch = false});
  CHECK(onnx::load(folder / "m.onnx").inputs()[0].extents == std::vector<std::string>{"2", "4"});
}

TEST_CASE("what ONNX lacks is refused by name, and no file is written", "[save]") {
  const Folder folder;
  const auto path = folder / "m.onnx";
  const auto refused = [&](const onnx::Function& f, const char* why) {
    CHECK_THROWS_WITH(onnx::save(f, {rand({2, 4})}, path), Contains(why));
    CHECK_FALSE(fs::exists(path));
  };
  refused([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + rand({2, 4})}; }, "rand is random");
  refused([](const std::vector<Tensor>& in) { return std::vector<Tensor>{dropout(in[0], 0.5)}; }, "dropout is random");
  refused([](const std::vector<Tensor>& in) { return std::vector<Tensor>{lgamma(in[0])}; }, "lgamma has no operator of ONNX");
  refused([](const std::vector<Tensor>& in) { return std::vector<Tensor>{batch_norm_training(in[0], {}, {}).y}; },
          "batch_norm is of training");
  refused([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * in[0].to_vector<double>()[0]}; }, "value");
  CHECK_THROWS_WITH(onnx::save([](const auto& in) { return in; }, {ones({2})}, path, {.opset = 17}), Contains("18 to 26"));
  CHECK_THROWS_WITH(onnx::save([](const auto& in) { return in; }, {ones({2})}, path, {.input_names = {"a", "b"}}),
                    Contains("2 names for 1 inputs"));
  CHECK_THROWS_WITH(onnx::save([](const auto& in) { return in; }, {Tensor{}}, path), Contains("example 0"));
  nn::Linear linear{3, 2};
  CHECK_THROWS_WITH(onnx::save(linear, {ones({2, 3}), ones({2, 3})}, path), Contains("takes one input"));
  CHECK_FALSE(fs::exists(path));
}
