#include "tools/clnet_train_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/base/json_format.h"

namespace clnet::tools {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 31;
constexpr std::string_view log_format = "clnet train log 1";

std::string first_line() { return fmt::format("{{\"{}\": \"{}\"}}\n", format_field, log_format); }

[[noreturn]] void fail(const fs::path& path, std::string_view what, int code) {
  throw FileError(fmt::format("{}: {}: {}", path.string(), what, std::strerror(code)));
}

/// JSON knows no infinity.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }
/// In as few digits as give the same float.
std::string number(float value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

double number(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : NAN;
}

/// The part of a log that a checkpoint covers.
std::string covered(const fs::path& path, std::int64_t steps, std::int64_t epochs, Curves& curves) {
  const auto content = file::read(path, most_bytes);
  std::string kept;
  std::size_t start = 0, line_number = 0;
  while (start < content.size()) {
    const auto end = content.find('\n', start);
    if (end == std::string::npos) break;  // the writer was killed within this line
    const std::string_view line(content.data() + start, end + 1 - start);
    start = end + 1;
    ++line_number;
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (line_number == 1 && object.is_object() && object.contains(format_field)) {
      require_format(path.string(), object, log_format);
      kept += line;
      continue;
    }
    const auto at = [&](const char* key) {
      const auto found = object.is_object() ? object.find(key) : object.end();
      return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
    };
    const auto step = at("step"), epoch = at("epoch");
    if ((step < 0) == (epoch < 0))
      throw FileError(
          fmt::format("{}: line {} is not of a log of clnet-train, which --resume would continue", path.string(), line_number));
    if (step > steps || epoch > epochs) continue;
    kept += line;
    if (step >= 0) curves.steps.push_back({step, number(object, "loss")});
    if (epoch >= 0)
      curves.epochs.push_back({epoch, number(object, "train_loss"), number(object, "test_loss"), number(object, "test_accuracy"),
                               number(object, "seconds")});
  }
  return kept;
}

}  // namespace

void TrainLog::start(std::int64_t steps, std::int64_t epochs, Curves& curves) {
  // A pipe or /dev/stdout cannot be cut.
  std::error_code code;
  const auto type = fs::status(path_, code).type();
  const bool is_file = type == fs::file_type::regular || type == fs::file_type::not_found;
  // Of a run that ends before its first step an older log stays.
  if (is_file && steps == 0) return;
  if (is_file) file::replace(path_, type == fs::file_type::regular ? covered(path_, steps, epochs, curves) : first_line());
  open();
  if (!is_file && steps == 0) write(first_line());
}

void TrainLog::open() {
  file_ = os::open(path_, os::Opening::append);
  if (!file_.is_open()) fail(path_, "cannot be opened", errno);
}

void TrainLog::write(const std::string& line) {
  if (!file_.is_open()) {
    file::replace(path_, first_line());
    open();
  }
  if (!file_.write_all(line)) fail(path_, "cannot be written", errno);
}

void TrainLog::step(const Curves::Step& step) {
  write(fmt::format("{{\"step\": {}, \"loss\": {}}}\n", step.step, number(static_cast<float>(step.loss))));
}

void TrainLog::epoch(const train::EpochMetrics& m) {
  const auto validation = m.validation.value_or(train::Evaluation{NAN, NAN});
  std::string metrics;
  const auto add = [&](std::string_view part, const std::vector<metrics::Result>& results) {
    for (const auto& result : results)
      metrics += fmt::format("{}: {}, ", nlohmann::json(fmt::format("{}_{}", part, result.name)).dump(), number(result.value));
  };
  add("train", m.metrics);
  // The accuracy is there already.
  auto tested = validation.metrics;
  std::erase_if(tested, [](const auto& result) { return result.name == "accuracy"; });
  add("test", tested);
  write(
      fmt::format("{{\"epoch\": {}, \"train_loss\": {}, \"test_loss\": {}, \"test_accuracy\": {}, {}\"{}_per_second\": {:.1f}, "
                  "\"seconds\": {:.3f}}}\n",
                  m.epoch, number(m.train_loss), number(validation.loss), number(validation.accuracy), metrics, unit_,
                  m.images_per_second * static_cast<double>(per_sample_), m.seconds));
}

void TrainLog::sync() {
  if (!file_.is_open()) return;
  if (!file_.sync() && errno != EINVAL && errno != EROFS) fail(path_, "cannot be synced", errno);
}

}  // namespace clnet::tools
