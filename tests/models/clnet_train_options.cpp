// What clnet-train says to options, files and data that are wrong: one line on stderr, an exit code, and nothing left behind.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "clnet/io.h"
#include "clnet/models.h"
#include "tests/acceptance.h"
#include "tests/models/process.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// Runs in a folder of its own, which must hold nothing but the captured output afterwards.
void require_refused(int code, const std::string& text, std::vector<std::string> arguments,
                     const std::vector<std::string>& environment = {}) {
  const clnet::test::Folder folder;
  const auto outcome = clnet_train(folder.path(), arguments, environment);
  std::string line = "clnet-train";
  for (const auto& argument : arguments) line += ' ' + argument;
  INFO(line << "\n" << outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.err.starts_with("clnet-train: "));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK(outcome.err.find(text) != std::string::npos);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"stderr.txt", "stdout.txt"});
}

}  // namespace

TEST_CASE("clnet-train: help and version") {
  const clnet::test::Folder folder;
  const auto help = clnet_train(folder.path(), {"--help"});
  CHECK(help.code == 0);
  for (const char* option :
       {"--data",      "--model",    "--epochs",         "--steps",        "--batch-size", "--optimizer",  "--lr",
        "--momentum",  "--nesterov", "--cycle-momentum", "--weight-decay", "--schedule",   "--seed",       "--no-shuffle",
        "--normalize", "--init",     "--save",           "--checkpoint",   "--resume",     "--log",        "--plot",
        "--trace",     "--device",   "--precision",      "--metrics",      "--ema",        "--accumulate", "--tensorboard",
        "--csv",       "--sheet",    "Examples:"}) {
    INFO(option);
    CHECK(help.out.find(option) != std::string::npos);
  }
  CHECK(clnet_train(folder.path(), {"--version"}).code == 0);
}

TEST_CASE("clnet-train: wrong options end with 2") {
  require_refused(2, "--epochs", {"--epochs", "0"});
  require_refused(2, "--epochs", {"--epochs", "many"});
  require_refused(2, "--steps", {"--steps", "-3"});
  require_refused(2, "--steps", {"--steps", "99999999999999999999"});
  require_refused(2, "--batch-size", {"--batch-size", "1.5"});
  require_refused(2, "--lr", {"--lr", "nan"});
  require_refused(2, "--lr", {"--lr", "0"});
  require_refused(2, "--momentum", {"--optimizer", "sgd", "--momentum", "1"});
  require_refused(2, "--weight-decay", {"--weight-decay", "-1"});
  require_refused(2, "--seed", {"--seed", "-1"});
  require_refused(2, "--save and --plot: both are same", {"--plot", "same", "--save", "same"});
  require_refused(2, "--save and --csv: both are same", {"--csv", "same", "--save", "same"});
  require_refused(2, "--plot and --sheet: both are a.bmp", {"--plot", "a.bmp", "--sheet", "a.bmp"});
  require_refused(2, "'acc' is no metric; known are accuracy", {"--metrics", "f1,acc"});
  require_refused(2, "--ema", {"--ema", "1"});
  require_refused(2, "--accumulate", {"--accumulate", "0"});
  require_refused(2, "--log and --trace: both are ./log", {"--log", "log", "--trace", "./log"});
  require_refused(2, "'perceptron' is not one of mlp, keras-cnn", {"--model", "perceptron"});
  require_refused(2, "'lbfgs' is not one of", {"--optimizer", "lbfgs"});
  require_refused(2, "'linear' is not one of", {"--schedule", "linear"});
  require_refused(2, "'f64' is not one of f32, f16, bf16", {"--precision", "f64"});
  require_refused(2, "'minmax' is not one of", {"--normalize", "minmax"});
  require_refused(2, "clnet-train: there is no option --unknown (see --help)", {"--unknown"});
  require_refused(2, "clnet-train: there is no option --epoch; did you mean --epochs? (see --help)", {"--epoch", "1"});
  require_refused(2, "there is no option --batchsize; did you mean --batch-size?", {"--batchsize=16", "--steps", "3"});
  require_refused(2, "there is no option --check; did you mean --checkpoint?", {"--check", "run"});
  require_refused(2, "there is no option --k (", {"--k"});
  require_refused(2, "clnet-train: 'stray' is no option (see --help)", {"stray"});
  require_refused(2, "--save", {"--save"});
  require_refused(2, "--save", {"--save", ""});
  require_refused(2, "--resume requires --checkpoint", {"--resume"});
  require_refused(2, "--momentum", {"--momentum", "0.9"});
  require_refused(2, "--nesterov", {"--optimizer", "sgd", "--nesterov"});
  require_refused(2, "--cycle-momentum: goes with --schedule one-cycle, not cosine",
                  {"--cycle-momentum", "--schedule", "cosine"});
  require_refused(2, "sgd has no momentum that could change; give it --momentum", {"--cycle-momentum", "--optimizer", "sgd"});
  require_refused(2, "adagrad has no momentum that could change (", {"--cycle-momentum", "--optimizer", "adagrad"});
  require_refused(2, "--warmup-steps", {"--warmup-steps", "10"});
  require_refused(2, "--decay-steps", {"--decay-steps", "10"});
  require_refused(2, "--scatter-data: give --model", {"--scatter-data", "--data", "some.txt"});
}

TEST_CASE("clnet-train: what is missing or damaged ends with 1 before anything is written") {
  const clnet::test::Folder data;
  write_idx_dataset(data.path(), 20, 10);
  const std::string good = data.path();
  require_refused(1, "no such folder", {"--data", "/nonexistent/folder"});
  require_refused(1, "holds no dataset", {"--data", "/proc/self/fdinfo"});
  require_refused(1, "set CLNET_DATA_DIR", {"--data", "mnist"}, {"CLNET_DATA_DIR="});
  require_refused(1, good + "/mnist", {"--data", "mnist"}, {"CLNET_DATA_DIR=" + good});
  require_refused(1, "no device fits", {"--device", "quantum"});
  require_refused(1, "/nonexistent", {"--data", good, "--save", "/nonexistent/weights.safetensors"});
  require_refused(1, "is a folder", {"--data", good, "--save", good});
  require_refused(1, "not a regular file", {"--data", good, "--save", "/dev/null"});
  require_refused(1, "--plot /nonexistent", {"--data", good, "--plot", "/nonexistent/curves.svg"});
  require_refused(1, "--log /nonexistent", {"--data", good, "--log", "/nonexistent/log.jsonl"});
  require_refused(1, "--trace /nonexistent", {"--data", good, "--trace", "/nonexistent/trace.json"});
  require_refused(1, "/dev/null", {"--data", good, "--checkpoint", "/dev/null"});
}

TEST_CASE("clnet-train: images that do not fit, weights that do not fit") {
  const clnet::test::Folder data;
  write_idx_dataset(data.path(), 20, 10);
  const std::string good = data.path();
  const auto weights = data / "mlp.safetensors";
  clnet::io::save_safetensors(weights, clnet::models::make("mlp", {1, 28, 28}, 10)->state_dict());
  require_refused(1, "1.weight", {"--data", good, "--model", "mlp", "--init", weights});
  require_refused(1, "cannot open", {"--data", good, "--model", "mlp", "--init", "/nonexistent.safetensors"});
  data.write("broken.safetensors", "not at all");
  require_refused(1, "broken.safetensors", {"--data", good, "--model", "mlp", "--init", data / "broken.safetensors"});

  // 8x8 images are too small for it.
  require_refused(1, "model lenet5 cannot take images of", {"--data", good, "--model", "lenet5"});

  // Test images of another size than the training images.
  const clnet::test::Folder other;
  write_idx_dataset(other.path(), 20, 10);
  if (const auto acceptance_data = acceptance("bad/idx/valid_control")) {
    for (const char* name : {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
      fs::remove(other / name);
      fs::copy(*acceptance_data / (name + std::string(".gz")), other / (name + std::string(".gz")));
    }
    require_refused(1, "test images", {"--data", other.path(), "--model", "mlp"});
  }
}

TEST_CASE("clnet-train: malformed data sets") {
  const auto root = acceptance("bad");
  if (!root) return;
  const auto manifest = content(*root / "manifest.json");
  REQUIRE_FALSE(manifest.empty());
  for (const char* kind : {"idx", "cifar"}) {
    for (const auto& entry : fs::directory_iterator(*root / kind)) {
      const auto name = entry.path().filename().string();
      if (name.starts_with("valid") || name == "gz_two_members" || name == "gz_bomb") {
        const clnet::test::Folder folder;
        const auto outcome = clnet_train(folder.path(), {"--data", entry.path(), "--model", "mlp", "--epochs", "1"});
        INFO(name << "\n" << outcome.err);
        CHECK((outcome.code == 0 || name == "gz_bomb"));
      } else {
        require_refused(1, "/" + std::string(kind) + "/" + name, {"--data", entry.path(), "--model", "mlp", "--epochs", "1"});
      }
    }
  }
}
