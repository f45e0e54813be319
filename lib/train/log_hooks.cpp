// Hooks that write numbers of a run into files.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "clnet/error.h"
#include "clnet/hooks.h"
#include "lib/base/file.h"
#include "lib/base/os/descriptor.h"
#include "lib/train/event_file.h"

namespace clnet::train {

namespace {

namespace fs = std::filesystem;

class TensorBoardHook : public Hook {
 public:
  explicit TensorBoardHook(fs::path folder) : folder_(std::move(folder)) {}
  std::string name() const override { return "tensorboard"; }
  bool only_observes() const override { return true; }

  void before_training(Run& run) override { file_.emplace(folder_, run.step + 1); }
  void on_loss(Run&, std::int64_t step, double loss) override {
    const Scalar scalar{"loss/step", loss};
    file_->write(step, {&scalar, 1});
  }
  void after_epoch(Run& run) override {
    const auto& record = *run.record;
    std::vector<Scalar> scalars{{"loss/train", record.train_loss}, {"learning_rate", run.optimizer.learning_rate()}};
    for (const auto& result : record.metrics) scalars.push_back({result.name + "/train", result.value});
    if (const auto& validation = record.validation) {
      scalars.push_back({"loss/validation", validation->loss});
      const auto& all = validation->metrics;
      const bool measured = std::any_of(all.begin(), all.end(), [](const auto& r) { return r.name == "accuracy"; });
      if (!measured && !std::isnan(validation->accuracy)) scalars.push_back({"accuracy/validation", validation->accuracy});
      for (const auto& result : all) scalars.push_back({result.name + "/validation", result.value});
    }
    file_->write(run.step, scalars);
  }
  void before_checkpoint(Run&) override { file_->sync(); }
  void after_training(Run&) override { file_.reset(); }

 private:
  fs::path folder_;
  std::optional<EventFile> file_;
};

class CsvHook : public Hook {
 public:
  explicit CsvHook(fs::path path) : path_(std::move(path)) {}
  std::string name() const override { return "csv"; }
  bool only_observes() const override { return true; }

  void before_training(Run& run) override {
    header_ = "epoch,steps,train_loss,validation_loss,validation_accuracy";
    for (const char* part : {"train_", "validation_"})
      for (const auto& metric : run.metrics) header_ += ',' + quoted(part + metric);
    header_ += ",learning_rate,images_per_second,seconds\n";
    content_ = header_;
    file_ = {};
    std::error_code code;
    if (run.step > 0 && fs::exists(path_, code)) content_ += covered(run.epoch - 1);
  }

  void after_epoch(Run& run) override {
    const auto& record = *run.record;
    const auto validation = record.validation.value_or(Evaluation{NAN, NAN});
    std::string row = fmt::format("{},{},{},{},{}", record.epoch, record.steps, cell(record.train_loss), cell(validation.loss),
                                  cell(validation.accuracy));
    for (const auto& result : record.metrics) row += ',' + cell(result.value);
    for (std::size_t i = 0; i < run.metrics.size(); ++i) row += ',' + cell(record.validation ? validation.metrics[i].value : NAN);
    row += fmt::format(",{},{},{}\n", cell(run.optimizer.learning_rate()), cell(record.images_per_second), cell(record.seconds));
    if (!file_.is_open()) {
      file::replace(path_, content_);
      file_ = os::open(path_, os::Opening::append);
    }
    if (!file_.is_open() || !file_.write_all(row)) fail("cannot be written", errno);
  }

  void before_checkpoint(Run&) override {
    if (file_.is_open() && !file_.sync() && errno != EINVAL && errno != EROFS) fail("cannot be synced", errno);
  }
  void after_training(Run&) override { file_ = {}; }

 private:
  [[noreturn]] void fail(std::string_view what, int code) const {
    throw FileError(fmt::format("{}: {}: {}", path_.string(), what, std::strerror(code)));
  }

  static std::string cell(double value) { return std::isnan(value) ? "" : fmt::format("{}", value); }
  static std::string quoted(const std::string& name) {
    if (name.find_first_of(",\"\n") == std::string::npos) return name;
    std::string result = "\"";
    for (const char c : name) result += c == '"' ? std::string("\"\"") : std::string(1, c);
    return result + '"';
  }

  /// The rows of the epochs that a checkpoint covers.
  std::string covered(std::int64_t epochs) const {
    constexpr std::uint64_t most_bytes = std::uint64_t{1} << 28;
    const auto content = file::read(path_, most_bytes);
    if (!content.starts_with(header_))
      throw FileError(fmt::format("{}: has other columns than this run; it goes on only with the same", path_.string()));
    std::string rows;
    for (std::size_t at = header_.size(); at < content.size();) {
      const auto end = content.find('\n', at);
      if (end == std::string::npos) break;  // the writer was killed within this row
      const std::string_view row(content.data() + at, end + 1 - at);
      at = end + 1;
      std::int64_t epoch = 0;
      if (std::from_chars(row.data(), row.data() + row.size(), epoch).ec != std::errc() || epoch < 1)
        throw FileError(fmt::format("{}: has a row that begins with no epoch", path_.string()));
      if (epoch <= epochs) rows += row;
    }
    return rows;
  }

  fs::path path_;
  std::string header_, content_;
  os::Descriptor file_;
};

}  // namespace

std::shared_ptr<Hook> tensorboard(const fs::path& folder) {
  if (folder.empty()) throw Error("train::tensorboard: the name of the folder is empty");
  return std::make_shared<TensorBoardHook>(folder);
}
std::shared_ptr<Hook> csv(const fs::path& path) {
  if (path.empty()) throw Error("train::csv: the name of the file is empty");
  return std::make_shared<CsvHook>(path);
}

}  // namespace clnet::train
