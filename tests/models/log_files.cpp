// TensorBoard's event files and tables of train::fit, read back by what their formats say.
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "clnet/clnet.h"
#include "lib/train/event_file.h"
#include "tests/models/fit_runs.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;
namespace fs = std::filesystem;

namespace {

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// CRC-32C bit by bit, from its definition.
std::uint32_t slow_masked_crc(const std::string& bytes) {
  std::uint32_t sum = ~0U;
  for (const char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const auto low = (sum ^ (static_cast<std::uint32_t>(static_cast<unsigned char>(byte)) >> bit)) & 1;
      sum = (sum >> 1) ^ (low != 0 ? 0x82f63b78U : 0U);
    }
  sum = ~sum;
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8U;
}

template <class T>
T take(const std::string& bytes, std::size_t& at) {
  T value;
  REQUIRE(at + sizeof value <= bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof value);
  at += sizeof value;
  return value;
}

/// The fields of a message of Protocol Buffers, by number; numbers as they are stored.
struct Message {
  std::multimap<std::uint64_t, std::string> texts;
  std::map<std::uint64_t, std::uint64_t> numbers;
  std::map<std::uint64_t, double> doubles;
  std::map<std::uint64_t, float> floats;

  explicit Message(const std::string& bytes) {
    const auto varint = [&](std::size_t& at) {
      std::uint64_t value = 0;
      for (int shift = 0;; shift += 7) {
        REQUIRE(at < bytes.size());
        const auto byte = static_cast<unsigned char>(bytes[at++]);
        value |= std::uint64_t{byte & 0x7fU} << shift;
        if (byte < 0x80) return value;
      }
    };
    for (std::size_t at = 0; at < bytes.size();) {
      const auto key = varint(at), field = key >> 3;
      switch (key & 7) {
        case 0: numbers[field] = varint(at); break;
        case 1: doubles[field] = take<double>(bytes, at); break;
        case 2: {
          const auto length = varint(at);
          REQUIRE(at + length <= bytes.size());
          texts.emplace(field, bytes.substr(at, length));
          at += length;
          break;
        }
        case 5: floats[field] = take<float>(bytes, at); break;
        default: FAIL("a wire type that events do not have");
      }
    }
  }
};

struct Events {
  std::map<std::string, std::map<std::int64_t, float>> scalars;  ///< by tag and step
  std::int64_t first_step = -1;                                  ///< of the session
};

Events read_events(const fs::path& path) {
  const auto content = bytes_of(path);
  Events events;
  std::size_t records = 0;
  for (std::size_t at = 0; at < content.size(); ++records) {
    const auto begin = at;
    const auto length = take<std::uint64_t>(content, at);
    CHECK(take<std::uint32_t>(content, at) == slow_masked_crc(content.substr(begin, 8)));
    REQUIRE(at + length <= content.size());
    const auto data = content.substr(at, length);
    at += length;
    CHECK(take<std::uint32_t>(content, at) == slow_masked_crc(data));
    const Message event(data);
    CHECK(event.doubles.at(1) > 1e9);
    const auto step = static_cast<std::int64_t>(event.numbers.at(2));
    if (records == 0) {
      CHECK(event.texts.find(3)->second == "brain.Event:2");
      continue;
    }
    if (event.texts.contains(7)) {
      CHECK(Message(event.texts.find(7)->second).numbers.at(1) == 1);
      events.first_step = step;
      continue;
    }
    const Message summary(event.texts.find(5)->second);
    for (auto [value, end] = summary.texts.equal_range(1); value != end; ++value) {
      const Message scalar(value->second);
      events.scalars[scalar.texts.find(1)->second][step] = scalar.floats.at(2);
    }
  }
  return events;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::vector<std::string>> rows_of(const fs::path& path) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(bytes_of(path));
  for (std::string line; std::getline(lines, line);) {
    auto& row = rows.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
  }
  return rows;
}

struct Logged {
  train::FitResult result;
  std::vector<double> losses;
};

}  // namespace

TEST_CASE("event files: check sums are CRC-32C") {
  // RFC 3720, B.4: 32 bytes of zeros; and the usual "123456789".
  const auto unmasked = [](std::uint32_t masked) {
    const auto rotated = masked - 0xa282ead8U;
    return (rotated >> 17) | (rotated << 15);
  };
  CHECK(unmasked(train::masked_crc32c(std::string(32, '\0'))) == 0x8a9136aaU);
  CHECK(unmasked(train::masked_crc32c("123456789")) == 0xe3069283U);
}

TEST_CASE("fit: event files and tables hold the records, also of a run that goes on") {
  const auto points = make_points(53), validation = make_points(20, 1);
  const clnet::test::Folder folder;
  struct Stop {};
  const auto run = [&](std::int64_t end) {
    auto model = make_model();
    Logged logged;
    train::FitOptions options{.epochs = 3, .batch_size = 8, .optimizer = optim::Adam(model, 1e-2)};
    options.validation = validation;
    options.metrics = {metrics::F1(3)};
    options.hooks = {train::tensorboard(folder / "events"), train::csv(folder / "run.csv")};
    options.checkpoint = folder / "checkpoint";
    options.resume = true;
    options.progress = false;
    options.on_step = [&](std::int64_t step, double loss) {
      logged.losses.push_back(loss);
      if (step >= end) throw Stop{};
    };
    try {
      logged.result = train::fit(model, points, options);
    } catch (const Stop&) {
    }
    return logged;
  };
  // Killed in the second epoch; what the checkpoint does not cover is made again.
  const auto first = run(10), rest = run(1000);
  REQUIRE(rest.losses.size() == 14);

  const auto files = files_in(folder / "events");
  REQUIRE(files.size() == 2);
  for (const auto& file : files) CHECK(file.filename().string().starts_with("events.out.tfevents."));
  const auto before = read_events(files[0]), after = read_events(files[1]);
  CHECK(before.first_step == 1);
  CHECK(after.first_step == 8);
  const auto& steps = after.scalars.at("loss/step");
  REQUIRE(steps.size() == 14);
  for (std::size_t i = 0; i < 14; ++i) CHECK(steps.at(static_cast<std::int64_t>(i) + 8) == static_cast<float>(rest.losses[i]));
  CHECK(before.scalars.at("loss/step").at(7) == static_cast<float>(first.losses[6]));
  CHECK(before.scalars.at("loss/train").contains(7));
  for (const auto& record : rest.result.epochs) {
    const auto at = [&](const char* tag) { return after.scalars.at(tag).at(record.steps); };
    CHECK(at("loss/train") == static_cast<float>(record.train_loss));
    CHECK(at("loss/validation") == static_cast<float>(record.validation->loss));
    CHECK(at("accuracy/validation") == static_cast<float>(record.validation->accuracy));
    CHECK(at("f1/train") == static_cast<float>(record.metrics[0].value));
    CHECK(at("f1/validation") == static_cast<float>(record.validation->metrics[0].value));
    CHECK(at("learning_rate") == 1e-2F);
  }

  auto rows = rows_of(folder / "run.csv");
  REQUIRE(rows.size() == 4);
  CHECK(rows[0] == std::vector<std::string>{"epoch", "steps", "train_loss", "validation_loss", "validation_accuracy", "train_f1",
                                            "validation_f1", "learning_rate", "images_per_second", "seconds"});
  for (std::size_t epoch = 1; epoch <= 3; ++epoch) {
    CHECK(rows[epoch][0] == std::to_string(epoch));
    CHECK(rows[epoch][1] == std::to_string(7 * epoch));
  }
  for (const auto& record : rest.result.epochs) {
    const auto& row = rows[static_cast<std::size_t>(record.epoch)];
    const std::vector<double> want{record.train_loss,
                                   record.validation->loss,
                                   record.validation->accuracy,
                                   record.metrics[0].value,
                                   record.validation->metrics[0].value,
                                   1e-2};
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(std::stod(row[i + 2]) == want[i]);
  }
}

TEST_CASE("fit: tables without validation have empty cells, and others are refused") {
  const auto points = make_points(16);
  const clnet::test::Folder folder;
  auto model = make_model();
  train::FitOptions options{.epochs = 1, .batch_size = 8, .optimizer = optim::Adam(model, 1e-2)};
  options.metrics = {metrics::Accuracy().named("a,\"b\"")};
  options.hooks = {train::csv(folder / "run.csv")};
  options.checkpoint = folder / "checkpoint";
  options.resume = true;
  options.progress = false;
  train::fit(model, points, options);
  const auto content = bytes_of(folder / "run.csv");
  CHECK(content.find("\"train_a,\"\"b\"\"\"") != std::string::npos);
  CHECK(rows_of(folder / "run.csv")[1][3].empty());
  options.epochs = 2;
  // Logs are no part of the run: it may go on without them, or with others.
  options.hooks = {};
  CHECK(train::fit(model, points, options).steps == 4);
  options.epochs = 3;
  options.hooks = {train::csv(folder / "run.csv")};
  std::ofstream(folder / "run.csv") << "epoch,mine\n1,2\n";
  CHECK_THROWS_WITH(train::fit(model, points, options), Catch::Contains("run.csv: has other columns than this run"));
  options.hooks = {train::tensorboard("/dev/null/events")};
  options.checkpoint.clear();
  options.resume = false;
  CHECK_THROWS_AS(train::fit(model, points, options), FileError);
}
