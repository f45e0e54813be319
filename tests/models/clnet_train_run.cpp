// clnet-train at work, on a dataset that the test writes: what it makes, and that a run which was stopped ends like one which was
// not.
#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>

#include "clnet/io.h"
#include "tests/models/process.h"
#include "tests/paths.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
namespace fs = std::filesystem;

namespace {

struct Workplace {
  clnet::test::Folder data, folder;
  Workplace() { write_idx_dataset(data.path(), 300, 60); }

  std::vector<std::string> arguments(std::vector<std::string> more) const {
    more.insert(more.begin(), {"--data", data.path(), "--model", "keras-cnn", "--batch-size", "16"});
    return more;
  }
  Outcome train(std::vector<std::string> more) const {
    auto outcome = clnet_train(folder.path(), arguments(std::move(more)));
    INFO(outcome.err);
    return outcome;
  }
};

}  // namespace

TEST_CASE("clnet-train: makes weights, log, curves and trace") {
  const Workplace place;
  const auto outcome =
      place.train({"--epochs",      "3",          "--normalize", "mean-std", "--log",        "log.jsonl", "--plot", "curves.svg",
                   "--trace",       "trace.json", "--clip-norm", "1",        "--metrics",    "f1,top2",   "--csv",  "run.csv",
                   "--tensorboard", "events",     "--ema",       "0.9",      "--accumulate", "2"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find("epoch 3/3") != std::string::npos);
  CHECK(outcome.out.find("images/s") != std::string::npos);
  CHECK(outcome.out.find("test accuracy") != std::string::npos);

  const auto weights = clnet::io::load_safetensors(place.folder / "clnet-keras-cnn.safetensors");
  REQUIRE(weights.tensors.size() == 4);
  CHECK(weights.tensors[0].first == "0.weight");
  CHECK(weights.tensors[3].first == "4.bias");

  constexpr int steps_per_epoch = 19;
  std::size_t steps = 0, epochs = 0;
  double accuracy = 0;
  const auto log = content(place.folder / "log.jsonl");
  for (std::size_t start = 0; start < log.size();) {
    const auto end = log.find('\n', start);
    REQUIRE(end != std::string::npos);
    const auto object = nlohmann::json::parse(log.substr(start, end - start));
    start = end + 1;
    if (steps == 0 && object.contains("format")) {
      CHECK(object["format"] == "clnet train log 1");
      continue;
    }
    if (object.contains("step")) {
      CHECK(object.size() == 2);
      CHECK(object["step"] == ++steps);
      CHECK(object["loss"].is_number());
    } else {
      CHECK(object["epoch"] == ++epochs);
      CHECK(steps == epochs * steps_per_epoch);
      for (const char* key : {"train_loss", "test_loss", "test_accuracy", "train_f1", "test_f1", "train_top2", "test_top2",
                              "images_per_second", "seconds"})
        CHECK(object[key].is_number());
      accuracy = object["test_accuracy"];
    }
  }
  CHECK(steps == 3 * steps_per_epoch);
  CHECK(epochs == 3);
  CHECK(accuracy > 0.9);

  const auto table = content(place.folder / "run.csv");
  CHECK(std::count(table.begin(), table.end(), '\n') == 4);
  CHECK(table.find(",validation_f1,validation_top2,") != std::string::npos);
  CHECK_FALSE(std::filesystem::is_empty(place.folder / "events"));
  const auto svg = content(place.folder / "curves.svg");
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.find("Accuracy") != std::string::npos);
  const auto trace = nlohmann::json::parse(content(place.folder / "trace.json"));
  CHECK(trace["traceEvents"].size() > 100);
}

TEST_CASE("clnet-train: every optimizer, schedule and model learns something") {
  const Workplace place;
  const auto last_loss = [&](const std::vector<std::string>& options) {
    auto all = options;
    all.insert(all.end(), {"--steps", "8", "--log", "log.jsonl"});
    const auto outcome = place.train(all);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const auto lines = log_without_times(place.folder / "log.jsonl");
    REQUIRE(lines.size() == 9);
    return nlohmann::json::parse(lines.back())["train_loss"].get<double>();
  };
  CHECK(last_loss({"--optimizer", "sgd", "--momentum", "0.9", "--nesterov", "--weight-decay", "1e-4"}) < 2.4);
  CHECK(last_loss({"--optimizer", "sgd", "--momentum", "0.9", "--cycle-momentum"}) !=
        last_loss({"--optimizer", "sgd", "--momentum", "0.9"}));
  CHECK(last_loss({"--optimizer", "adamw", "--schedule", "cosine", "--warmup-steps", "2"}) < 2.4);
  CHECK(last_loss({"--optimizer", "rmsprop", "--schedule", "step", "--decay-steps", "4"}) < 2.4);
  CHECK(last_loss({"--schedule", "constant", "--lr", "1e-3", "--no-shuffle"}) < 2.4);
  CHECK(last_loss({"--model", "mlp"}) < 2.4);
  CHECK(last_loss({"--model", "resnet20"}) < 3);
}

TEST_CASE("clnet-train: the same seed gives the same log, --init the weights") {
  const Workplace place;
  for (const char* name : {"a", "b"})
    REQUIRE(place.train({"--steps", "12", "--log", std::string(name) + ".jsonl", "--save", std::string(name)}).code == 0);
  CHECK(log_without_times(place.folder / "a.jsonl") == log_without_times(place.folder / "b.jsonl"));
  CHECK(content(place.folder / "a") == content(place.folder / "b"));
  REQUIRE(place.train({"--steps", "12", "--log", "c.jsonl", "--seed", "2"}).code == 0);
  CHECK(log_without_times(place.folder / "a.jsonl") != log_without_times(place.folder / "c.jsonl"));

  // Trained weights start where training ended, whatever the seed.
  REQUIRE(
      place.train({"--steps", "1", "--init", "a", "--seed", "3", "--lr", "1e-9", "--schedule", "constant", "--log", "d.jsonl"})
          .code == 0);
  const auto before = nlohmann::json::parse(log_without_times(place.folder / "a.jsonl").back());
  const auto after = nlohmann::json::parse(log_without_times(place.folder / "d.jsonl").back());
  CHECK(after["test_loss"].get<double>() == Approx(before["test_loss"].get<double>()).epsilon(1e-4));
}

TEST_CASE("clnet-train: a run that was killed goes on as if nothing had been") {
  const Workplace place;
  const std::vector<std::string> common{"--epochs", "6", "--log"};
  auto whole = common, parts = common;
  whole.insert(whole.end(), {"whole.jsonl", "--save", "whole.safetensors"});
  parts.insert(parts.end(),
               {"parts.jsonl", "--save", "parts.safetensors", "--checkpoint", "run", "--checkpoint-steps", "5", "--resume"});
  REQUIRE(place.train(whole).code == 0);

  const auto lines = [&] {
    const auto text = content(place.folder / "parts.jsonl");
    return std::count(text.begin(), text.end(), '\n');
  };
  std::ptrdiff_t before = 0;
  for (const std::ptrdiff_t steps : {7, 20, 45}) {
    Process process(place.folder.path(), clnet_train_command(place.arguments(parts)));
    REQUIRE(wait_until([&] { return lines() >= steps; }));
    process.signal(SIGKILL);
    REQUIRE(process.wait().code == -SIGKILL);
    CHECK(lines() > before);
    before = lines();
  }
  const auto last = place.train(parts);
  REQUIRE(last.code == 0);
  // At most one interval of the checkpoints is lost.
  const auto text = std::string("going on after step ");
  REQUIRE(last.out.find(text) != std::string::npos);
  const auto resumed = std::stol(last.out.substr(last.out.find(text) + text.size()));
  CHECK(resumed >= 40);

  CHECK(log_without_times(place.folder / "whole.jsonl") == log_without_times(place.folder / "parts.jsonl"));
  CHECK(content(place.folder / "whole.safetensors") == content(place.folder / "parts.safetensors"));
}

TEST_CASE("clnet-train: Ctrl-C saves and ends with 130, and --resume finishes") {
  const Workplace place;
  REQUIRE(place.train({"--epochs", "4", "--log", "whole.jsonl", "--save", "whole"}).code == 0);
  const std::vector<std::string> parts{"--epochs",     "4",   "--log",   "parts.jsonl", "--save", "parts",
                                       "--checkpoint", "run", "--resume"};
  {
    Process process(place.folder.path(), clnet_train_command(place.arguments(parts)));
    REQUIRE(wait_until([&] { return !content(place.folder / "parts.jsonl").empty(); }));
    process.signal(SIGINT);
    const auto outcome = process.wait();
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 130);
    CHECK(outcome.out.find("interrupted after step") != std::string::npos);
    CHECK(fs::exists(place.folder / "parts"));
    CHECK(fs::exists(place.folder / "run/checkpoint.safetensors"));
  }
  REQUIRE(place.train(parts).code == 0);
  CHECK(log_without_times(place.folder / "whole.jsonl") == log_without_times(place.folder / "parts.jsonl"));
  CHECK(content(place.folder / "whole") == content(place.folder / "parts"));

  // More steps, later.
  REQUIRE(place.train({"--steps", "10", "--schedule", "constant", "--log", "long.jsonl", "--save", "long"}).code == 0);
  for (const char* steps : {"4", "10", "10"})
    REQUIRE(place
                .train({"--steps", steps, "--schedule", "constant", "--log", "more.jsonl", "--save", "more", "--checkpoint",
                        "run2", "--resume"})
                .code == 0);
  CHECK(log_without_times(place.folder / "long.jsonl") == log_without_times(place.folder / "more.jsonl"));
  // By one-cycle the rates are others, which is told.
  const auto more = [&](const char* epochs) {
    return place.train({"--epochs", epochs, "--checkpoint", "run3", "--resume", "--save", "last"});
  };
  REQUIRE(more("1").code == 0);
  const auto second = more("2");
  REQUIRE(second.code == 0);
  CHECK(second.out.find("going on after step 19") != std::string::npos);
  CHECK(second.out.find("38 steps in ") != std::string::npos);
  CHECK(second.err.find("19 steps were planned, and now 38: from step 19 on the learning rate is") != std::string::npos);
}

TEST_CASE("clnet-train: a checkpoint of another run, a log of something else") {
  const Workplace place;
  REQUIRE(place.train({"--steps", "3", "--checkpoint", "run"}).code == 0);
  const auto refused = [&](const std::string& text, std::vector<std::string> options) {
    options.insert(options.end(), {"--steps", "3", "--checkpoint", "run", "--resume", "--save", "new.safetensors"});
    const auto before = content(place.folder / "run/checkpoint.safetensors");
    const auto outcome = place.train(options);
    INFO(outcome.err);
    CHECK(outcome.code == 1);
    CHECK(outcome.err.find(text) != std::string::npos);
    CHECK_FALSE(fs::exists(place.folder / "new.safetensors"));
    CHECK(content(place.folder / "run/checkpoint.safetensors") == before);
  };
  refused("batch size 16, not 8", {"--batch-size", "8"});
  refused("seed 1, not 9", {"--seed", "9"});
  refused("another schedule", {"--schedule", "cosine"});
  refused("another schedule of the momentum", {"--cycle-momentum"});
  refused("normalised otherwise", {"--normalize", "mean-std"});
  refused("1.weight is missing", {"--model", "mlp"});
  refused("momentum_buffer", {"--optimizer", "sgd", "--momentum", "0.9", "--lr", "0.004"});
  place.folder.write("notes.txt", "milk\neggs\n");
  refused("notes.txt: line 1", {"--log", "notes.txt"});
  CHECK(content(place.folder / "notes.txt") == "milk\neggs\n");
  place.folder.write("newer.jsonl", "{\"format\": \"clnet train log 9\"}\n");
  refused("newer.jsonl: is of the format \"clnet train log 9\", expected 'clnet train log 1'", {"--log", "newer.jsonl"});
  // A log of this format from before: lines behind the checkpoint go.
  place.folder.write("kept.jsonl", content(CLNET_SOURCE_DIR "/tests/golden/formats/train-log-1.jsonl"));
  REQUIRE(place.train({"--steps", "3", "--checkpoint", "run", "--resume", "--save", "kept", "--log", "kept.jsonl"}).code == 0);
  const auto kept = content(place.folder / "kept.jsonl");
  CHECK_THAT(kept, Catch::StartsWith("{\"format\": \"clnet train log 1\"}\n{\"step\": 1, \"loss\": 2.5}\n"));
  CHECK(kept.find("\"step\": 99") == std::string::npos);
  place.folder.write("run/checkpoint.safetensors", "damaged");
  refused("checkpoint.safetensors", {});
}
