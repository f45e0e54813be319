// What a saved network has beside its graph: the momentum of batch norm, metadata, and tensors in a file beside it.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/onnx/save.h"
#include "tests/onnx/builder.h"
#include "tests/onnx/one_node.h"
#include "tests/onnx/save_checks.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
using Catch::Contains;

namespace {

constexpr std::size_t mean_and_var = 2;

/// The first buffers of two elements after a step of training on {1, 2}, {3, 8}: running mean and variance.
std::vector<std::vector<double>> trained_once(nn::Module& model) {
  model.train();
  model(Tensor::from({1.0F, 2.0F, 3.0F, 8.0F}, {2, 2})).eval();
  std::vector<std::vector<double>> out;
  for (const auto& [name, buffer] : model.buffers())
    if (buffer.shape() == Shape{2} && out.size() < mean_and_var) out.push_back(buffer.value().to_vector<double>());
  return out;
}

void check_statistics(const std::vector<std::vector<double>>& found, double kept) {
  REQUIRE(found.size() == mean_and_var);
  // Means are 2 and 5, variances of the population 1 and 9; they were 0 and 1.
  const double mean[] = {2, 5}, var[] = {1, 9};
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(found[0][i] == Approx(mean[i] * (1 - kept)));
    CHECK(found[1][i] == Approx(kept + var[i] * (1 - kept)));
  }
}

}  // namespace

TEST_CASE("a saved batch norm trains on with its momentum", "[save]") {
  const Folder folder;
  const auto path = folder / "m.onnx", again = folder / "again.onnx";
  nn::Sequential net{nn::BatchNorm1d{2, {.momentum = 0.375}}};
  onnx::save(net, {ones({3, 2})}, path);
  auto loaded = onnx::load(path);
  onnx::save(loaded, {ones({3, 2})}, again);
  check_statistics(trained_once(loaded), 0.625);
  auto second = onnx::load(again);
  check_statistics(trained_once(second), 0.625);

  Builder b;
  b.initializer("scale", {2}, {1, 1}).initializer("shift", {2}, {0, 0}).initializer("mean", {2}, {0, 0});
  b.initializer("var", {2}, {1, 1}).input("x", Type::f32, {-1, 2}).output("y");
  b.node("BatchNormalization", {"x", "scale", "shift", "mean", "var"}, {"y"}, {attribute("momentum", 0.25F)});
  auto foreign = clnet::test::loaded(b, 18);
  onnx::save(foreign, {ones({3, 2})}, path);
  auto saved = onnx::load(path);
  check_statistics(trained_once(saved), 0.25);

  // A mean over all batches has no momentum; ONNX's own holds.
  nn::Sequential counts{nn::BatchNorm1d{2, {.momentum = std::nullopt}}};
  onnx::save(counts, {ones({3, 2})}, path);
  auto plain = onnx::load(path);
  check_statistics(trained_once(plain), 0.9);
}

TEST_CASE("metadata is what the file says, and one without a value goes", "[save]") {
  const Folder folder;
  nn::Sequential net{nn::Linear{3, 2}};
  onnx::save(net, {ones({2, 3})}, folder / "m.onnx", {.metadata = {{"labels", "cat,dog"}, {"author", "somebody"}, {"none", ""}}});
  auto model = onnx::load(folder / "m.onnx");
  using Entries = std::vector<std::pair<std::string, std::string>>;
  CHECK(model.metadata() ==
        Entries{{"labels", "cat,dog"}, {"author", "somebody"}, {"clnet.parameters", "0.weight\n0.bias"}, {"clnet.buffers", ""}});
  onnx::save(model, {ones({2, 3})}, folder / "again.onnx", {.metadata = {{"labels", ""}}});
  CHECK(onnx::load(folder / "again.onnx").metadata()[0] == Entries::value_type{"author", "somebody"});
}

TEST_CASE("large tensors go to a file beside the model, asked for or where it would be too large", "[save]") {
  const Folder folder;
  const Tensor table = eval_of(randn({40, 16}));
  nn::Sequential net{nn::Linear{16, 40}, nn::BatchNorm1d{40}};
  net.inference();
  const onnx::Function f = [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{matmul(net(in[0]), table)}; };
  const Tensor x = eval_of(randn({3, 16}));
  const auto check = [&](const fs::path& path, bool beside) {
    CAPTURE(path);
    CHECK(fs::exists(path.string() + ".data") == beside);
    auto loaded = onnx::load(path);
    check_state(net, loaded);
    check_same(loaded.run({x}), f({x}), true);
  };
  // 40 x 16 weights and as many constants of 4 bytes; the others are small.
  constexpr std::uint64_t all = 2 * 40 * 16 * 4 + 5 * 40 * 4 + 8;
  onnx::save_within(f, {x}, folder / "inside.onnx", {}, &net, all);
  check(folder / "inside.onnx", false);
  onnx::save_within(f, {x}, folder / "large.onnx", {}, &net, all - 1);
  check(folder / "large.onnx", true);
  onnx::save(f, {x}, folder / "asked.onnx", {.external_data = true}, &net);
  check(folder / "asked.onnx", true);
  if (export_folder()) {
    write_folder(fs::path(export_folder()) / "op_external_data", folder / "asked.onnx", {{x}}, f);
    fs::copy_file(folder / "asked.onnx.data", fs::path(export_folder()) / "op_external_data" / "asked.onnx.data",
                  fs::copy_options::overwrite_existing);
  }
  // Pages of 4096 bytes: two tensors.
  CHECK(fs::file_size(folder / "asked.onnx.data") == 4096 + 40 * 16 * 4);
  CHECK(content(folder / "asked.onnx.data") == content(folder / "large.onnx.data"));
  CHECK(fs::file_size(folder / "asked.onnx") < fs::file_size(folder / "inside.onnx") - 5000);
  // Without the data, or with less of it.
  fs::resize_file(folder / "asked.onnx.data", 5000);
  CHECK_THROWS_WITH(onnx::load(folder / "asked.onnx"), Contains("\"asked.onnx.data\" has 5000 bytes"));
  fs::remove(folder / "asked.onnx.data");
  CHECK_THROWS_WITH(onnx::load(folder / "asked.onnx"), Contains("\"asked.onnx.data\" cannot be found"));
  // Where the model cannot be written no data stay.
  fs::create_directory(folder / "taken.onnx");
  CHECK_THROWS_AS(onnx::save(f, {x}, folder / "taken.onnx", {.external_data = true}, &net), FileError);
  CHECK_FALSE(fs::exists(folder / "taken.onnx.data"));
}
