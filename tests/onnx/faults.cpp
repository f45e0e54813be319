// ONNX files that are damaged, lie about sizes, or ask for what there is not: one line, and nothing else happens.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "clnet/error.h"
#include "clnet/onnx.h"
#include "clnet/ops/elementwise.h"
#include "tests/onnx/builder.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
using Catch::Contains;

namespace {

Builder small() {
  Builder b;
  b.initializer("w", {2}, {1, 2}).input("x").output("y").node("Mul", {"x", "w"}, {"y"}, {attribute("a", std::string("text"))});
  return b;
}

/// A tensor message with these extents and this many bytes.
std::string tensor(const std::string& name, const std::vector<std::int64_t>& extents, std::size_t bytes, int type = 1) {
  std::string out;
  protozero::pbf_writer writer(out);
  for (const auto extent : extents) writer.add_int64(1, extent);
  writer.add_int32(2, type);
  writer.add_string(8, name);
  writer.add_bytes(9, std::string(bytes, '\0'));
  return out;
}

std::string external(const std::string& location, const std::string& offset = "0") {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_int64(1, 2);
  writer.add_int32(2, 1);
  writer.add_string(8, "w");
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", location}, {"offset", offset}}) {
    std::string entry;
    protozero::pbf_writer fields(entry);
    fields.add_string(1, key);
    fields.add_string(2, value);
    writer.add_message(13, entry);
  }
  writer.add_int32(14, 1);
  return out;
}

std::string reason(const std::string& model) {
  const Folder folder;
  try {
    onnx::load(folder.write("model.onnx", model));
  } catch (const Error& error) {
    return error.what();
  }
  return "loaded";
}

}  // namespace

TEST_CASE("a file that ends anywhere is an error or a shorter network, and never more") {
  const auto whole = small().model();
  const Folder folder;
  int refused = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto path = folder.write("model.onnx", whole.substr(0, length));
    try {
      onnx::load(path);
    } catch (const FileError& error) {
      ++refused;
      CHECK_THAT(error.what(), Contains("model.onnx"));
    }
  }
  CHECK(refused > static_cast<int>(whole.size()) - 4);
}

TEST_CASE("what is no network is refused") {
  CHECK_THAT(reason(""), Contains("is empty"));
  CHECK_THAT(reason("PK\x03\x04 not a model at all"), Contains("no ONNX model"));
  CHECK_THAT(reason(small().model(99)), Contains("operator set 99"));
  Builder unknown;
  unknown.input("x").output("y").node("Relu", {"z"}, {"y"});
  CHECK_THAT(reason(unknown.model()), Contains("input \"z\" no earlier node gives"));
  Builder twice;
  twice.input("x").output("y").node("Relu", {"x"}, {"y"}).node("Tanh", {"x"}, {"y"});
  CHECK_THAT(reason(twice.model()), Contains("two nodes that give \"y\""));
  Builder none;
  none.input("x").output("z").node("Relu", {"x"}, {"y"});
  CHECK_THAT(reason(none.model()), Contains("no node that gives its output \"z\""));
}

TEST_CASE("sizes that the data do not bear out are refused before memory is taken") {
  const auto with = [](const std::string& message) {
    Builder b;
    b.raw_initializer(message).input("x").output("y").node("Mul", {"x", "w"}, {"y"});
    return reason(b.model());
  };
  CHECK_THAT(with(tensor("w", {1 << 30, 1 << 30, 1 << 30}, 8)), Contains("more than 2^31 - 1 elements"));
  CHECK_THAT(with(tensor("w", {1 << 28}, 8)), Contains("8 bytes instead of 1073741824"));
  CHECK_THAT(with(tensor("w", {-2}, 8)), Contains("negative extent -2"));
  CHECK_THAT(with(tensor("w", {0, std::int64_t{1} << 40}, 0)), Contains("more than 2^31 - 1 elements"));
  CHECK_THAT(with(tensor("w", {2}, 8, 8)), Contains("string"));
}

TEST_CASE("data in other files are read from the network's own folder only") {
  const Folder folder;
  const auto with = [&](const std::string& message) {
    Builder b;
    b.raw_initializer(message).input("x").output("y").node("Mul", {"x", "w"}, {"y"});
    try {
      const auto model = onnx::load(folder.write("model.onnx", b.model()));
      return std::to_string(model.parameters().at(0).second.value().to_vector<float>()[1]);
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  const float values[] = {9, 1, 2.5F};
  folder.write("data.bin", {reinterpret_cast<const char*>(values), sizeof values});
  CHECK(with(external("data.bin", "4")) == "2.500000");
  CHECK_THAT(with(external("data.bin", "8")), Contains("has 12 bytes, the tensor needs 8 from byte 8"));
  CHECK_THAT(with(external("data.bin", "-4")), Contains("offset or length"));
  CHECK_THAT(with(external("../data.bin")), Contains("outside of the model's folder"));
  CHECK_THAT(with(external("/etc/passwd")), Contains("outside of the model's folder"));
  CHECK_THAT(with(external("missing.bin")), Contains("cannot be found"));
  std::filesystem::create_symlink("/etc/passwd", folder / "link");
  CHECK_THAT(with(external("link")), Contains("leads out of the model's folder"));
}

TEST_CASE("many tensors of the same external data take no more memory than some of them") {
  const Folder folder;
  folder.write("data.bin", std::string(std::size_t{1} << 20, '\0'));
  const auto with = [&](int tensors) {
    Builder b;
    b.input("x").output("x");
    for (int i = 0; i < tensors; ++i)
      b.raw_initializer(
          onnx::write_external_tensor(Type::f32, {1 << 18}, "w" + std::to_string(i), {"data.bin", 0, std::uint64_t{1} << 20}));
    return folder.write("model.onnx", b.model());
  };
  // Two weights may be one. 8 MiB, and 128 more, are the most of this file.
  CHECK(onnx::load(with(2)).inputs().size() == 1);
  CHECK(onnx::load(with(136)).inputs().size() == 1);
  CHECK_THROWS_WITH(onnx::load(with(137)),
                    Contains("model.onnx: its tensors take 143654912 bytes of the same 1048576 in \"data.bin\""));
}

TEST_CASE("missing operators are listed, and a run names the first before it computes anything") {
  Builder b;
  b.input("x").output("y").node("Relu", {"x"}, {"a"}).node("Frobnicate", {"a"}, {"y"}, {}, "com.example");
  const Folder folder;
  auto model = onnx::load(folder.write("model.onnx", b.model()));
  REQUIRE(model.missing_operators().size() == 1);
  CHECK(model.missing_operators()[0].operation == "com.example.Frobnicate");
  CHECK(model.missing_operators()[0].node == "the_Frobnicate");
  CHECK_THROWS_AS(model(zeros({2})), Unsupported);
  CHECK_THROWS_WITH(model(zeros({2})), Contains("com.example.Frobnicate") && Contains("the_Frobnicate"));
}

TEST_CASE("errors of a node name it, its operator and the operator set") {
  const Folder folder;
  auto model = onnx::load(folder.write("model.onnx", small().model(17)));
  CHECK_THROWS_WITH(model(zeros({3})), Contains("the_Mul (Mul of opset 17)"));
  CHECK_THROWS_WITH(model.run({}), Contains("input \"x\" is missing"));
  CHECK_THROWS_WITH(model.run(std::vector<Tensor>(3, zeros({2}))), Contains("3 inputs"));
}

TEST_CASE("a constant index that is not there is an error") {
  Builder b;
  b.initializer("places", {2}, {0, -4}, Type::i64).input("x").output("y").node("Gather", {"x", "places"}, {"y"});
  const Folder folder;
  auto model = onnx::load(folder.write("model.onnx", b.model()));
  CHECK_THROWS_WITH(model(zeros({3})), Contains("index -4 of 3 elements"));
  CHECK(model(zeros({4})).shape() == Shape{2});
  Builder tuples;
  tuples.initializer("places", {2, 1}, {0, 3}, Type::i64).input("x").output("y").node("GatherND", {"x", "places"}, {"y"});
  CHECK_THROWS_WITH(onnx::load(folder.write("tuples.onnx", tuples.model()))(zeros({3})), Contains("index 3 of 3 elements"));
  Builder lengths;
  lengths.initializer("lengths", {2}, {1, 4}, Type::i64).input("x").output("y").node("ReverseSequence", {"x", "lengths"}, {"y"});
  CHECK_THROWS_WITH(onnx::load(folder.write("lengths.onnx", lengths.model()))(zeros({3, 2})),
                    Contains("a sequence of 4 in 3 places"));
}

TEST_CASE("graphs within graphs have an end") {
  std::string graph = Builder().node("Relu", {"x"}, {"y"}).output("y").graph();
  for (int i = 0; i < 200; ++i) {
    Builder outer;
    outer.node("If", {"c"}, {"y"}, {graph_attribute("then_branch", graph), graph_attribute("else_branch", "")}).output("y");
    graph = outer.graph();
  }
  std::string model, imported;
  protozero::pbf_writer(imported).add_int64(2, 18);
  protozero::pbf_writer writer(model);
  writer.add_message(8, imported);
  writer.add_message(7, graph);
  CHECK_THAT(reason(model), Contains("nested more than"));
}

TEST_CASE("files of more parts than a network has are refused") {
  // Each part is two bytes of the file, and some hundred in memory.
  for (const int field : {1, 5, 11}) {
    std::string graph, model;
    for (int i = 0; i < 600000; ++i) graph += {static_cast<char>(field << 3 | 2), '\0'};
    protozero::pbf_writer writer(model);
    writer.add_message(8, std::string());
    writer.add_message(7, graph);
    CHECK_THAT(reason(model), Contains("too many parts"));
  }
}

TEST_CASE("names of initializers take no time, however they are made") {
  Builder b;
  std::string dots = "a";
  for (int i = 0; i < 100000; ++i) dots += ".a";
  b.initializer(dots, {2}, {1, 2});
  // All of these are one name without dots.
  for (int i = 0; i < 4096; ++i) {
    std::string name = "_";
    for (int bit = 0; bit < 12; ++bit) name += (i >> bit & 1) != 0 ? '.' : '_';
    b.initializer(name + ".", {2}, {1, 2});
  }
  b.input("x").output("y").node("Relu", {"x"}, {"y"});
  const Folder folder;
  CHECK(onnx::load(folder.write("model.onnx", b.model())).parameters().size() == 4097);
}

TEST_CASE("a check ends a loop without an end") {
  Builder body, b;
  body.input("i", Type::i64).input("go", Type::boolean).input("v");
  SECTION("with nodes") {
    body.node("Identity", {"go"}, {"more"}).node("Identity", {"v"}, {"next"}).output("more", Type::boolean).output("next");
  }
  SECTION("without any") { body.output("go", Type::boolean).output("v"); }
  b.input("x").output("y").node("Loop", {"", "", "x"}, {"y"}, {graph_attribute("body", body.graph())});
  const Folder folder;
  auto model = onnx::load(folder.write("model.onnx", b.model()));
  int turns = 0;
  model.set_check([&] {
    if (++turns > 1000) throw Error("enough");
  });
  CHECK_THROWS_WITH(model(zeros({2})), Contains("enough"));
}
