// clnet-train with texts: what it learns and writes, that it goes on where it was stopped, and what it refuses.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "clnet/io.h"
#include "clnet/models.h"
#include "tests/acceptance.h"
#include "tests/models/process.h"
#include "tests/models/sentences.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
namespace fs = std::filesystem;

namespace {

struct TextWorkplace {
  clnet::test::Folder folder;
  TextWorkplace() { folder.write("text.txt", sentences(6000)); }

  Outcome train(std::vector<std::string> more, const std::string& model = "char-lstm") const {
    more.insert(more.begin(), {"--data", "text.txt", "--model", model, "--context", "16"});
    return clnet_train(folder.path(), std::move(more));
  }
  Outcome run(std::vector<std::string> arguments) const { return clnet_train(folder.path(), std::move(arguments)); }

  void refuse(int code, const std::string& text, std::vector<std::string> arguments) const {
    const auto outcome = run(std::move(arguments));
    INFO(text << ": " << outcome.err);
    CHECK(outcome.code == code);
    CHECK(outcome.err.starts_with("clnet-train: "));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK(outcome.err.find(text) != std::string::npos);
  }
};

}  // namespace

TEST_CASE("clnet-train: learns a text, shows samples, and writes from the weights alone") {
  const TextWorkplace place;
  const auto outcome = place.train({"--steps", "120", "--log", "log.jsonl", "--plot", "curves.svg", "--prompt", "the cat"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.empty());
  for (const char* part :
       {"char-lstm with", "on text.txt", "bits per character", "characters/s", "    the cat", "validation loss"})
    CHECK(outcome.out.find(part) != std::string::npos);
  const auto lines = log_without_times(place.folder / "log.jsonl");
  const auto last = nlohmann::json::parse(lines.back());
  CHECK(last["test_loss"].get<double>() < 0.8);
  CHECK(last["test_accuracy"].get<double>() > 0.7);
  CHECK(content(place.folder / "log.jsonl").find("characters_per_second") != std::string::npos);
  CHECK(content(place.folder / "curves.svg").find("nats per character") != std::string::npos);

  const auto weights = clnet::io::load_safetensors(place.folder / "clnet-char-lstm.safetensors");
  CHECK(weights.metadata.at("model") == "char-lstm");
  CHECK(weights.metadata.at("alphabet").starts_with("0a202e"));  // new line, space, full stop

  const auto sample = place.run({"--model", "char-lstm", "--sample", "100", "--prompt", "my bird"});
  INFO(sample.out << sample.err);
  REQUIRE(sample.code == 0);
  CHECK(sample.err.empty());
  CHECK(sample.out.size() == 108);
  CHECK(sample.out.starts_with("my bird"));
  CHECK(sample.out.find(" you.\n") != std::string::npos);
  CHECK(place.run({"--init", "clnet-char-lstm.safetensors", "--sample", "100", "--prompt", "my bird"}).out == sample.out);
  CHECK(place.run({"--init", "clnet-char-lstm.safetensors", "--sample", "100", "--prompt", "my bird", "--seed", "2"}).out !=
        sample.out);
  const auto likeliest = place.run({"--model", "char-lstm", "--sample", "50", "--temperature", "0"});
  CHECK(likeliest.out.size() == 51);
  CHECK(place.run({"--model", "char-lstm", "--sample", "50", "--temperature", "0", "--seed", "2"}).out == likeliest.out);
  for (const auto& [option, value] : {std::pair("--top-k", "1"), std::pair("--top-p", "1e-9")})
    CHECK(place.run({"--model", "char-lstm", "--sample", "50", option, value, "--seed", "2"}).out == likeliest.out);
}

TEST_CASE("clnet-train: char-gpt is what a text is for, and writes beyond its context") {
  const TextWorkplace place;
  const auto outcome = place.run({"--data", "text.txt", "--context", "16", "--batch-size", "16", "--steps", "40"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out.find("char-gpt with") != std::string::npos);
  const auto sample = place.run({"--sample", "60", "--prompt", "a dog likes the sea. a"});
  INFO(sample.err);
  REQUIRE(sample.code == 0);
  CHECK(sample.out.size() == 83);
}

TEST_CASE("clnet-train: a text's training goes on as if it had not been stopped") {
  const TextWorkplace place;
  const auto go = [&](const std::string& steps, const std::string& name, bool resume) {
    std::vector<std::string> options{"--steps", steps, "--schedule", "constant", "--log", name + ".jsonl", "--save", name};
    if (resume) options.insert(options.end(), {"--checkpoint", "run", "--checkpoint-steps", "7", "--resume"});
    const auto outcome = place.train(options);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
  };
  go("30", "whole", false);
  for (const char* steps : {"5", "17", "30"}) go(steps, "parts", true);
  CHECK(log_without_times(place.folder / "whole.jsonl") == log_without_times(place.folder / "parts.jsonl"));
  CHECK(content(place.folder / "whole") == content(place.folder / "parts"));

  // The same structure in other characters.
  auto other = content(place.folder / "text.txt");
  std::replace(other.begin(), other.end(), 'y', 'z');
  place.folder.write("other.txt", other);
  place.refuse(1, "other samples",
               {"--data", "other.txt", "--model", "char-lstm", "--context", "16", "--steps", "30", "--schedule", "constant",
                "--checkpoint", "run", "--resume"});
  place.refuse(1, "another alphabet", {"--data", "other.txt", "--model", "char-lstm", "--context", "16", "--init", "whole"});
  const auto more = place.train({"--init", "whole", "--steps", "1"});
  CHECK(more.code == 0);
}

TEST_CASE("clnet-train: texts and options that cannot be") {
  const TextWorkplace place;
  const auto& folder = place.folder;
  folder.write("short.txt", "too short");
  folder.write("empty.txt", "");
  folder.write("binary.txt", std::string(2000, 'a') + std::string(1, '\0'));
  fs::create_directory(folder / "images");
  write_idx_dataset(folder / "images", 20, 10);
  place.refuse(1, "--data missing.txt: no such file, and char-gpt needs one of text",
               {"--data", "missing.txt", "--model", "char-gpt"});
  place.refuse(1, "short.txt: is too short: 9 characters", {"--data", "short.txt"});
  place.refuse(1, "empty.txt: is empty", {"--data", "empty.txt"});
  place.refuse(1, "binary.txt: is no text: byte 2000 is zero", {"--data", "binary.txt"});
  place.refuse(1, "cnn needs a folder of images", {"--data", "text.txt", "--model", "cnn"});
  place.refuse(1, "char-gpt needs a text", {"--data", "images", "--model", "char-gpt"});
  place.refuse(1, "fashion-mnist", {"--model", "char-gpt"});
  place.refuse(1, "--prompt: 'X' at place 0", {"--data", "text.txt", "--prompt", "X"});
  place.refuse(2, "--normalize", {"--data", "text.txt", "--normalize", "mean-std"});
  place.refuse(2, "--sample: cnn writes nothing", {"--model", "cnn", "--sample", "10"});
  place.refuse(2, "--temperature: cnn writes nothing", {"--model", "cnn", "--temperature", "1"});
  place.refuse(2, "--top-k: cnn writes nothing", {"--model", "cnn", "--top-k", "3"});
  place.refuse(2, "--top-p: cnn writes nothing", {"--model", "cnn", "--top-p", "0.5"});
  place.refuse(2, "--top-k", {"--sample", "10", "--top-k", "0"});
  for (const char* top_p : {"0", "1.5", "nan"}) place.refuse(2, "--top-p", {"--sample", "10", "--top-p", top_p});
  place.refuse(2, "--context: is for texts", {"--model", "cnn", "--context", "64"});
  place.refuse(2, "--prompt: a text is needed", {"--data", "text.txt", "--prompt", ""});
  // What only training would use.
  const std::vector<std::vector<std::string>> training{
      {"--weight-decay", "0.1"}, {"--clip-norm", "1"}, {"--precision", "f16"}, {"--early-stopping", "2"}, {"--trace", "t.json"}};
  for (auto options : training) {
    options.insert(options.end(), {"--sample", "10"});
    place.refuse(2, " excludes --", options);
  }
  place.refuse(2, "--prompt: cnn writes nothing", {"--model", "cnn", "--prompt", "a"});
  place.refuse(2, "--sample", {"--sample", "0"});
  place.refuse(2, "--sample", {"--sample", "10", "--epochs", "3"});
  place.refuse(2, "--temperature", {"--sample", "10", "--temperature", "-1"});
  place.refuse(2, "--context", {"--data", "text.txt", "--context", "0"});

  place.refuse(1, "clnet-char-gpt.safetensors", {"--sample", "10"});
  clnet::io::save_safetensors(folder / "images.safetensors", clnet::models::make("mlp", {1, 8, 8}, 10)->state_dict(),
                              {{"model", "mlp"}});
  place.refuse(1, "writes nothing", {"--sample", "10", "--init", "images.safetensors"});
  const auto state = clnet::models::make("char-lstm", {16}, 3)->state_dict();
  const auto save = [&](const std::map<std::string, std::string>& metadata) {
    clnet::io::save_safetensors(folder / "odd.safetensors", state, metadata);
  };
  const std::vector<std::string> sample{"--sample", "10", "--init", "odd.safetensors"};
  save({});
  place.refuse(1, "does not say of which model", sample);
  save({{"model", "char-lstm"}});
  place.refuse(1, "has no alphabet", sample);
  for (const char* alphabet : {"6162", "6", "616", "zz6263", "636261", "616161", "-16263"}) {
    save({{"model", "char-lstm"}, {"alphabet", alphabet}});
    place.refuse(1, "odd.safetensors: ", sample);
  }
  save({{"model", "char-lstm"}, {"alphabet", "616263"}});
  CHECK(place.run(sample).code == 0);
  place.refuse(1, "of char-lstm, not of char-gpt", {"--sample", "10", "--init", "odd.safetensors", "--model", "char-gpt"});
  place.refuse(1, "'d' at place 1", {"--sample", "10", "--init", "odd.safetensors", "--prompt", "ad"});
}

TEST_CASE("clnet-train: the odd texts of the acceptance data") {
  const auto root = acceptance("bad/text");
  if (!root) return;
  const TextWorkplace place;
  for (const char* name : {"empty.txt", "one_byte.txt"}) place.refuse(1, name, {"--data", *root / name, "--model", "char-lstm"});
  CHECK(place.run({"--data", *root / "no_newline_long.txt", "--model", "char-lstm", "--steps", "2"}).code == 0);
}
