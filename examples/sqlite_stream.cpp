// Training from a database: sqlite_stream [DATABASE [STEPS]]. The rows of an SQLite table come in blocks, which are shuffled, so
// that the table may be larger than memory. A run that was stopped goes on at the same row. The table is called `readings`: its
// first column is `id`, an integer key above 0, the last one a class from 0, and those in between are numbers. Rows whose id ends
// in 0 are the test set. Without a database it makes one, stops in the middle, goes on, and compares that with a run in one
// piece.
#include <clnet/clnet.h>
#include <sqlite3.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "arguments.h"

using namespace clnet;

/// A connection. Errors have the file's name.
class Database {
 public:
  using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

  explicit Database(std::string path, int flags = SQLITE_OPEN_READONLY) : path_(std::move(path)) {
    sqlite3* handle = nullptr;
    const bool opened = sqlite3_open_v2(path_.c_str(), &handle, flags, nullptr) == SQLITE_OK;
    handle_.reset(handle);
    if (!opened) fail(sqlite3_errmsg(handle));
  }
  Statement prepare(const std::string& sql) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) fail(sqlite3_errmsg(handle_.get()));
    return {statement, sqlite3_finalize};
  }
  /// Whether there is one more row.
  bool step(const Statement& statement) const {
    const int result = sqlite3_step(statement.get());
    if (result != SQLITE_ROW && result != SQLITE_DONE) fail(sqlite3_errmsg(handle_.get()));
    return result == SQLITE_ROW;
  }
  void execute(const std::string& sql) const { step(prepare(sql)); }
  [[noreturn]] void fail(const std::string& reason) const { throw FileError(path_ + ": " + reason); }

 private:
  std::string path_;
  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> handle_{nullptr, sqlite3_close};
};

/// The rows that meet a condition.
class Readings : public data::Dataset {
 public:
  Readings(std::string path, std::string condition) : path_(std::move(path)), condition_(std::move(condition)) {
    const Database database(path_);
    const auto columns = database.prepare("SELECT * FROM readings");
    features = sqlite3_column_count(columns.get()) - 2;
    if (features < 1) database.fail("readings: expected an id, numbers and a class in each row");
    const std::string last = sqlite3_column_name(columns.get(), static_cast<int>(features) + 1);
    const auto largest = database.prepare("SELECT max(\"" + last + "\"), count(*), max(id) FROM readings WHERE " + condition_);
    database.step(largest);
    classes = sqlite3_column_int64(largest.get(), 0) + 1;
    rows = sqlite3_column_int64(largest.get(), 1);
    last_id = sqlite3_column_int64(largest.get(), 2);
    if (rows == 0) database.fail("readings: no rows where " + condition_);
  }
  std::int64_t size() const override { return unknown; }
  std::unique_ptr<data::Stream> iterate(std::uint64_t seed) const override {
    return std::make_unique<Pass>(Database(path_), condition_, seed);
  }
  /// A checkpoint of other rows is refused.
  std::string fingerprint() const override { return std::to_string(rows) + " readings up to " + std::to_string(last_id); }

  std::int64_t features = 0, classes = 0, rows = 0, last_id = 0;

 private:
  /// A pass over the rows by their ids. A place in it is the id before the present block, and a position in the block.
  class Pass : public data::Stream {
   public:
    Pass(Database database, const std::string& condition, std::uint64_t seed)
        : database_(std::move(database)),
          statement_(database_.prepare("SELECT * FROM readings WHERE id > ? AND " + condition + " ORDER BY id LIMIT 1000")),
          seed_(seed) {}
    std::optional<data::Example> next() override {
      if (at_ == block_.size()) read(last_);
      if (block_.empty()) return std::nullopt;
      return block_[at_++];
    }
    std::optional<std::string> state() const override { return std::to_string(before_) + ' ' + std::to_string(at_); }
    void restore(const std::string& state) override {
      std::istringstream in(state);
      std::int64_t before = 0;
      std::size_t at = 0;
      in >> before >> at;
      read(before);
      if (!in || at > block_.size()) database_.fail("readings: no place \"" + state + '"');
      at_ = at;
    }

   private:
    /// The block behind an id, shuffled as the seed says.
    void read(std::int64_t before) {
      before_ = last_ = before;
      at_ = 0;
      block_.clear();
      sqlite3_reset(statement_.get());
      sqlite3_bind_int64(statement_.get(), 1, before);
      while (database_.step(statement_)) {
        last_ = sqlite3_column_int64(statement_.get(), 0);
        block_.push_back(row());
      }
      std::mt19937_64 random(seed_ + static_cast<std::uint64_t>(before));
      std::shuffle(block_.begin(), block_.end(), random);
    }
    data::Example row() const {
      const int count = sqlite3_column_count(statement_.get()) - 1;
      for (int i = 1; i <= count; ++i) {
        const auto type = sqlite3_column_type(statement_.get(), i);
        if (type != SQLITE_INTEGER && (type != SQLITE_FLOAT || i == count))
          database_.fail("readings: " + std::string(sqlite3_column_name(statement_.get(), i)) + " of id " +
                         std::to_string(last_) + (i == count ? " is no integer" : " is no number"));
      }
      data::Array numbers({count - 1}, Dtype::f32);
      for (int i = 1; i < count; ++i)
        numbers.values<float>()[static_cast<std::size_t>(i - 1)] = static_cast<float>(sqlite3_column_double(statement_.get(), i));
      return {numbers, data::Array(sqlite3_column_int(statement_.get(), count))};
    }

    Database database_;
    Database::Statement statement_;
    std::uint64_t seed_;
    std::int64_t before_ = 0, last_ = 0;
    std::size_t at_ = 0;
    std::vector<data::Example> block_;
  };

  std::string path_, condition_;
};

/// A table of points in four dimensions, of three kinds.
std::string made_up() {
  const std::string path = "sqlite_stream.db";
  const Database database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  database.execute("DROP TABLE IF EXISTS readings");
  database.execute("CREATE TABLE readings(id INTEGER PRIMARY KEY, a REAL, b REAL, c REAL, d REAL, kind INTEGER)");
  database.execute("BEGIN");
  const auto row = database.prepare("INSERT INTO readings(a, b, c, d, kind) VALUES(?, ?, ?, ?, ?)");
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<double> x;
    for (int column = 1; column <= 4; ++column) {
      x.push_back(static_cast<double>(random() % 2001) / 1000 - 1);
      sqlite3_bind_double(row.get(), column, x.back());
    }
    sqlite3_bind_int(row.get(), 5, (x[0] * x[1] > 0 ? 1 : 0) + (x[2] * x[2] + x[3] * x[3] > 0.6 ? 1 : 0));
    database.step(row);
    sqlite3_reset(row.get());
  }
  database.execute("COMMIT");
  return path;
}

int main(int argc, char** argv) try {
  const bool own = argc > 1;
  const auto steps = number_argument(argc, argv, 2, "STEPS", own ? 10000 : 1000);
  const auto path = own ? std::string(argv[1]) : made_up();
  const Readings training(path, "id % 10 <> 0"), test(path, "id % 10 = 0");
  std::cout << training.rows << " rows for training, " << test.rows << " for tests\n";

  // Trains up to each of these steps, as a process of its own would, and returns the accuracy of the last.
  const auto run = [&](const std::vector<std::int64_t>& stops, const std::string& folder) {
    double accuracy = 0;
    for (auto stop : stops) {
      manual_seed(1);
      nn::Sequential model{nn::Linear(training.features, 64), relu, nn::Linear(64, 64), relu, nn::Linear(64, training.classes)};
      const auto result = train::fit(model, training,
                                     {.steps = stop,
                                      .batch_size = 64,
                                      .optimizer = optim::Adam(model, 3e-3),
                                      .workers = 2,
                                      .checkpoint = folder,
                                      .checkpoint_steps = 200,
                                      .resume = own || stop != stops.front()});
      accuracy = train::accuracy(model, test);
      std::cout << "step " << result.steps << ": accuracy " << accuracy << std::endl;
    }
    return accuracy;
  };
  if (own) {
    run({steps}, path + ".checkpoint");
    return 0;
  }
  const auto stopped = run({steps / 2, steps}, "sqlite_stream.stopped"), in_one_piece = run({steps}, "sqlite_stream.whole");
  return stopped > 0.9 && stopped == in_one_piece ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "sqlite_stream: " << error.what() << '\n';
  return 1;
}
