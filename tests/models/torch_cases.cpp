// The programs that run PyTorch's own cases: what they say of the acceptance data, and of folders that are wrong.
#include <catch2/catch.hpp>
#include <fstream>

#include "clnet/clnet.h"
#include "tests/acceptance.h"
#include "tests/models/process.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;

namespace {

Outcome reference(const char* program, const std::filesystem::path& cases) {
  const Folder folder;
  return Process(folder.path(), {program, cases.string()}).wait();
}

/// One case of y = x + x with the given output and gradient, under an operation's name.
void write_case(const Folder& folder, const std::string& op, float out, float grad) {
  io::save_safetensors((folder / "case.safetensors").string(), {{"in.a", Tensor::from({1.5F})},
                                                                {"in.b", Tensor::from({2.F})},
                                                                {"out.y", Tensor::from({out})},
                                                                {"gout.y", Tensor::from({1.F})},
                                                                {"grad.a", Tensor::from({grad})}});
  folder.write("manifest.json", R"({"cases": [{"name": "one", "op": ")" + op +
                                    R"(", "attrs": {"fn": "mul"}, "file": "case.safetensors",
                                      "f32_out_err": 0, "f32_grad_err": 0}]})");
}

}  // namespace

TEST_CASE("operations agree with PyTorch's reference cases") {
  const auto folder = acceptance("torchref");
  if (!folder) return;
  const auto outcome = reference(TORCH_REFERENCE, *folder);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("\n142 passed, 0 failed\n") != std::string::npos);
}

TEST_CASE("training agrees with PyTorch's reference curves") {
  const auto folder = acceptance("trainref");
  if (!folder) return;
  const auto outcome = reference(TRAIN_REFERENCE, *folder);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("\n18 passed, 0 failed\n") != std::string::npos);
}

TEST_CASE("torch_reference tells right from wrong") {
  const Folder folder;
  write_case(folder, "elementwise", 3, 2);
  const auto right = reference(TORCH_REFERENCE, folder.path());
  CHECK(right.code == 0);
  CHECK(right.out == "passed one\n1 passed, 0 failed\n");

  write_case(folder, "elementwise", 3.001F, 2);
  const auto output = reference(TORCH_REFERENCE, folder.path());
  CHECK(output.code == 1);
  CHECK(output.out.starts_with("failed one: output y is off by"));
  CHECK(output.out.ends_with("\n0 passed, 1 failed\n"));

  write_case(folder, "elementwise", 3, 2.001F);
  CHECK(reference(TORCH_REFERENCE, folder.path()).out.starts_with("failed one: gradient of a is off by"));

  write_case(folder, "no_such_operation", 3, 2);
  CHECK(reference(TORCH_REFERENCE, folder.path()).out == "failed one: unknown operation no_such_operation\n0 passed, 1 failed\n");
}

TEST_CASE("a folder without cases is one clear line") {
  const Folder folder;
  const auto empty = reference(TORCH_REFERENCE, folder.path());
  CHECK(empty.code == 2);
  CHECK(empty.err.find("there is no manifest.json to read") != std::string::npos);
  const auto nowhere = reference(TRAIN_REFERENCE, folder / "nowhere");
  CHECK(nowhere.code == 2);
  CHECK(nowhere.err.find("nowhere") != std::string::npos);
}
