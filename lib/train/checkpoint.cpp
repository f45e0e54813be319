#include "lib/train/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/io.h"
#include "clnet/ops.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"
#include "lib/base/log.h"
#include "lib/exec/plan/cache.h"
#include "lib/io/checkpoint.h"
#include "lib/train/scatter.h"

namespace clnet::train {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view format = "clnet checkpoint 2", model_prefix = "model.", optimizer_prefix = "optimizer.";

using Metadata = std::map<std::string, std::string>;

/// Hexadecimal: the number that is read is the one that was written.
std::string exact(double value) { return fmt::format("{:a}", value); }

constexpr std::string_view without_schedule = "the optimizer's own";

/// What a schedule gave for the steps made: the first, the middle and the last. No other step may be asked for, as a caller's
/// own schedule may know no more.
std::string so_far(const std::function<double(std::int64_t step)>& schedule, std::int64_t steps) {
  if (!schedule) return std::string(without_schedule);
  if (steps == 0) return "not asked yet";
  return fmt::format("{}, {}, {}", exact(schedule(0)), exact(schedule((steps - 1) / 2)), exact(schedule(steps - 1)));
}

std::string clipping_text(const optim::Clipping& clipping) {
  return fmt::format("norm {}, value {}, p {}", exact(clipping.norm), exact(clipping.value), exact(clipping.p));
}

/// The largest of what it gave for steps made.
double largest_so_far(const std::function<double(std::int64_t step)>& schedule, std::int64_t steps) {
  constexpr std::int64_t most_asked = 64;
  double largest = 0;
  const auto asked = std::min(steps, most_asked);
  for (std::int64_t k = 0; schedule && k < asked; ++k)
    largest = std::max(largest, std::abs(schedule(asked == 1 ? 0 : k * (steps - 1) / (asked - 1))));
  return largest;
}

std::optional<std::array<double, 3>> numbers_of(const std::string& text) {
  std::array<double, 3> numbers{};
  const char* at = text.c_str();
  for (auto& number : numbers) {
    char* end = nullptr;
    number = std::strtod(at, &end);
    if (end == at) return std::nullopt;
    at = *end == ',' ? end + 1 : end;
  }
  return numbers;
}

/// Whether `schedule`, for more steps than before, may be what so_far() says of another that was for fewer: about at the same
/// parts of the way, as a warm-up may keep its length. Where it does, it begins at another rate, as what follows it does.
/// `largest`: see largest_so_far(); 0 where it is not known.
bool is_stretched(const std::string& before, double largest, std::int64_t steps, std::int64_t planned,
                  const std::function<double(std::int64_t step)>& schedule, std::int64_t now_planned) {
  const auto numbers = numbers_of(before);
  if (!schedule || !numbers || steps < 1 || planned < 1) return false;
  constexpr int most_asked = 64;
  constexpr double about = 0.15, slack = 0.1, begin = 2, top = 1.5;
  const std::array<std::int64_t, 3> asked{0, (steps - 1) / 2, steps - 1};
  double largest_now = 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto part = static_cast<double>(asked[i]) / static_cast<double>(planned);
    const double around = std::max(about, 1 / static_cast<double>(planned));
    const auto place = [&](double of) {
      return std::clamp(std::llround(of * static_cast<double>(now_planned)), 0LL, static_cast<long long>(now_planned) - 1);
    };
    const auto first = place(part - around), last = place(part + around);
    double least = INFINITY, most = -INFINITY;
    for (int k = 0; k <= most_asked; ++k) {
      const auto value = schedule(first + std::llround(static_cast<double>(last - first) * k / most_asked));
      least = std::min(least, value);
      most = std::max(most, value);
    }
    largest_now = std::max({largest_now, std::abs(least), std::abs(most)});
    const double number = (*numbers)[i], allowed = slack * std::max(std::abs(least), std::abs(most)), here = schedule(asked[i]);
    const bool is_between = number >= least - allowed && number <= most + allowed;
    const bool is_begin = i == 0 && number * here > 0 && number / here <= begin && here / number <= begin;
    if (!is_between && !is_begin) return false;
  }
  // Of few steps each may be near the next; when half of the way is made, the largest has been there.
  return largest == 0 || steps < planned / 2 || largest_now <= top * largest;
}

/// Any bytes as text, two characters each.
std::string to_hexadecimal(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::optional<std::string> from_hexadecimal(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    unsigned char byte = 0;
    const char* end = text.data() + std::min(i + 2, text.size());
    const auto [rest, code] = std::from_chars(text.data() + i, end, byte, 16);
    if (code != std::errc() || rest != end || text.size() % 2 != 0) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

/// Reads a checkpoint's metadata; every fault names the file.
class Reader {
 public:
  Reader(const fs::path& path, const Metadata& metadata) : path_(path), metadata_(metadata) {}

  [[noreturn]] void fail(std::string_view what) const { throw FileError(fmt::format("{}: {}", path_.string(), what)); }

  const std::string& text(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) fail(fmt::format("is no checkpoint of clnet: it has no '{}'", key));
    return found->second;
  }
  template <class Integer>
  Integer integer(const std::string& key) const {
    Integer value{};
    const auto& content = text(key);
    const auto [end, code] = std::from_chars(content.data(), content.data() + content.size(), value);
    if (code != std::errc() || end != content.data() + content.size() || std::cmp_less(value, 0))
      fail(fmt::format("'{}' is '{}', expected a number from 0", key, content));
    return value;
  }
  double real(const std::string& key) const {
    const auto& content = text(key);
    std::size_t used = 0;
    double value = NAN;
    try {
      value = std::stod(content, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used == 0 || used != content.size() || !std::isfinite(value))
      fail(fmt::format("'{}' is '{}', expected a finite number", key, content));
    return value;
  }
  std::vector<double> shares(const std::string& key) const {
    std::vector<double> all;
    const auto& content = text(key);
    for (std::size_t start = 0; start <= content.size();) {
      const auto end = std::min(content.find(',', start), content.size());
      double share = -1;
      const auto [rest, code] = std::from_chars(content.data() + start, content.data() + end, share);
      if (code != std::errc() || rest != content.data() + end || !(share >= 1 && share <= 100))
        fail(fmt::format("'{}' is '{}', expected numbers from 1 to 100", key, content));
      all.push_back(share);
      start = end + 1;
    }
    return all;
  }
  template <class Value>
  void require_same(const std::string& key, Value now) const {
    const auto then = integer<std::conditional_t<std::is_same_v<Value, bool>, int, Value>>(key);
    if (std::cmp_not_equal(then, static_cast<decltype(then)>(now)))
      fail(fmt::format("was made with {} {}, not {}; it goes on only with the same", key, static_cast<Value>(then), now));
  }

  void require_same_text(const std::string& key, const std::string& now, std::string_view what) const {
    if (text(key) != now) fail(fmt::format("was made with {}; it goes on only with the same", what));
  }

 private:
  const fs::path& path_;
  const Metadata& metadata_;
};

void append(io::StateDict& all, std::string_view prefix, const io::StateDict& state) {
  for (const auto& [name, tensor] : state) all.emplace_back(std::string(prefix) + name, tensor);
}

/// Makes sure that the folder is there and takes files, by writing one.
void prepare(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code && !fs::is_directory(folder)) throw FileError(fmt::format("{}: cannot be made: {}", folder.string(), code.message()));
  if (!fs::is_directory(folder)) throw FileError(fmt::format("{}: is not a folder", folder.string()));
  file::require_writable(folder);
}

}  // namespace

std::string normalization_text(const data::Dataset& dataset) {
  if (const auto* scattered = dynamic_cast<const Scattered*>(&dataset)) return scattered->facts().normalization;
  const auto* arrays = dynamic_cast<const data::ArrayDataset*>(&dataset);
  return arrays ? fmt::format("{:a} and {:a}", fmt::join(arrays->mean, ", "), fmt::join(arrays->std, ", ")) : "";
}

std::string augmentation_text(const data::Augmentation& augmentation) {
  return fmt::format("flip {}, shift {}{}", augmentation.flip ? 1 : 0, augmentation.shift,
                     augmentation.change ? ", changed by the caller" : "");
}

Checkpoint::Checkpoint(const fs::path& folder, const RunSettings& settings, std::vector<io::LoadedPart> parts, bool writes)
    : path_(folder / "checkpoint.safetensors"), settings_(settings), parts_(std::move(parts)) {
  if (writes) prepare(folder);
  std::error_code code;
  const auto type = fs::status(path_, code).type();
  if (type != fs::file_type::not_found && type != fs::file_type::regular)
    throw FileError(fmt::format("{}: is not a regular file", path_.string()));
}

bool Checkpoint::exists() const {
  std::error_code code;
  return fs::exists(path_, code);
}

void Checkpoint::save(const Position& position, const nn::Module& model, const optim::Optimizer& optimizer) const {
  io::StateDict tensors;
  append(tensors, model_prefix, model.state_dict());
  append(tensors, optimizer_prefix, optimizer.state_dict());
  for (const auto& part : parts_) append(tensors, part.name() + '.', part.state());
  const auto random = random_state();
  Metadata metadata{{"format", std::string(format)},
                    {"steps", std::to_string(position.steps)},
                    {"epochs", std::to_string(position.epochs)},
                    {"epoch steps", std::to_string(position.epoch_steps)},
                    {"epoch loss", exact(position.epoch_loss)},
                    {"stale epochs", std::to_string(position.stale_epochs)},
                    {"random seed", std::to_string(random.seed)},
                    {"random offset", std::to_string(random.offset)},
                    {"batch size", std::to_string(settings_.batch_size)},
                    {"samples", std::to_string(settings_.samples)},
                    {"shuffle", settings_.shuffle ? "1" : "0"},
                    {"seed", std::to_string(settings_.seed)},
                    {"precision", settings_.precision},
                    {"dataset", settings_.dataset},
                    {"normalization", settings_.normalization},
                    {"augmentation", settings_.augmentation},
                    {"hooks", settings_.hooks},
                    {"metrics", settings_.metrics},
                    {"clipping", clipping_text(optimizer.clipping())},
                    {"planned steps", std::to_string(settings_.planned_steps)},
                    {"rates", so_far(settings_.rate, position.steps)},
                    {"momenta", so_far(settings_.momentum, position.steps)},
                    {"largest rates", exact(largest_so_far(settings_.rate, position.steps))},
                    {"largest momenta", exact(largest_so_far(settings_.momentum, position.steps))},
                    {"solvers", exec::PlanCache::of(*context_of(Device::current())).choices()}};
  if (position.best_loss) metadata["best loss"] = exact(*position.best_loss);
  if (position.stream_state) metadata["stream state"] = to_hexadecimal(*position.stream_state);
  if (!position.shares.empty()) metadata["device shares"] = fmt::format("{}", fmt::join(position.shares, ","));
  if (settings_.by_length) metadata["by length"] = "1";
  std::vector<Tensor> values;
  for (const auto& [name, tensor] : tensors) values.push_back(tensor);
  eval(values);  // all in one plan
  metadata["checksum"] = checkpoint_checksum(tensors, metadata);
  io::save_safetensors(path_, tensors, metadata);
}

Position Checkpoint::load(nn::Module& model, optim::Optimizer& optimizer) const {
  auto content = io::load_safetensors(path_);
  const Reader reader(path_, content.metadata);
  if (const auto& found = reader.text("format"); found != format)
    reader.fail(fmt::format("is of the format '{}', expected '{}'", found, format));
  if (reader.text("checksum") != checkpoint_checksum(content.tensors, content.metadata))
    reader.fail("is damaged: its content does not have its check sum");
  reader.require_same("batch size", settings_.batch_size);
  reader.require_same("samples", settings_.samples);
  reader.require_same("shuffle", settings_.shuffle);
  reader.require_same("seed", settings_.seed);
  // Checkpoints from before there was a choice say nothing of it.
  const auto found = content.metadata.find("precision");
  const auto precision = found == content.metadata.end() ? "f32" : found->second;
  if (precision != settings_.precision)
    reader.fail(fmt::format("was made with precision {}, not {}; it goes on only with the same", precision, settings_.precision));
  if (reader.text("dataset") != settings_.dataset)
    reader.fail(fmt::format("was made with other samples or labels ({}, now {}); it goes on only with the same",
                            in_quotes(reader.text("dataset")), in_quotes(settings_.dataset)));
  if (content.metadata.contains("by length") != settings_.by_length)
    reader.fail(fmt::format("was made with samples {}sorted by length; it goes on only with the same",
                            settings_.by_length ? "not " : ""));
  reader.require_same_text("normalization", settings_.normalization, "images normalised otherwise");
  // Checkpoints from before there was any do not speak of it.
  content.metadata.try_emplace("augmentation", augmentation_text({}));
  reader.require_same_text("augmentation", settings_.augmentation, "samples changed otherwise");
  // Those from before there were hooks and metrics had none.
  for (const auto& [key, now] : {std::pair("hooks", settings_.hooks), std::pair("metrics", settings_.metrics)}) {
    content.metadata.try_emplace(key, "");
    const auto text = [](const std::string& names) { return names.empty() ? "none" : names; };
    if (reader.text(key) != now)
      reader.fail(
          fmt::format("was made with the {} {}, not {}; it goes on only with the same", key, text(reader.text(key)), text(now)));
  }
  content.metadata.try_emplace("clipping", clipping_text(optimizer.clipping()));
  reader.require_same_text("clipping", clipping_text(optimizer.clipping()), "gradients clipped otherwise");

  Position position{.steps = reader.integer<std::int64_t>("steps"),
                    .epochs = reader.integer<std::int64_t>("epochs"),
                    .epoch_steps = reader.integer<std::int64_t>("epoch steps"),
                    .epoch_loss = reader.real("epoch loss"),
                    .best_loss = std::nullopt,
                    .stale_epochs = reader.integer<std::int64_t>("stale epochs")};
  if (content.metadata.contains("best loss")) position.best_loss = reader.real("best loss");
  if (content.metadata.contains("stream state")) {
    position.stream_state = from_hexadecimal(reader.text("stream state"));
    if (!position.stream_state) reader.fail("'stream state' is no hexadecimal text");
  }
  if (content.metadata.contains("device shares")) position.shares = reader.shares("device shares");
  // Checkpoints from before momenta had schedules do not speak of them.
  content.metadata.try_emplace("momenta", without_schedule);
  // Those from before a plan could grow do not speak of it, and keep to their schedule.
  const auto planned =
      content.metadata.contains("planned steps") ? reader.integer<std::int64_t>("planned steps") : settings_.planned_steps;
  const auto follow = [&](const std::string& key, const auto& schedule, std::string_view name) {
    const auto now = so_far(schedule, position.steps);
    if (reader.text(key) == now) return;
    const bool longer = settings_.planned_steps > planned;
    const auto largest = "largest " + key;
    if (!longer || !is_stretched(reader.text(key), content.metadata.contains(largest) ? reader.real(largest) : 0, position.steps,
                                 planned, schedule, settings_.planned_steps))
      reader.fail(
          fmt::format("was made with another schedule of the {}; it goes on only with {}", name,
                      longer ? "one that is about the same at the same parts of the way" : "the same, or with more steps"));
    logging::warn_once(
        fmt::format("{}: {} steps were planned, and now {}: from step {} on the {} is that of a schedule for all of them",
                    path_.string(), planned, settings_.planned_steps, position.steps, name));
  };
  follow("rates", settings_.rate, "learning rate");
  follow("momenta", settings_.momentum, "momentum");
  const auto solvers = content.metadata.find("solvers");
  const RandomState random{reader.integer<std::uint64_t>("random seed"), reader.integer<std::uint64_t>("random offset")};
  const auto per_epoch = std::max<std::int64_t>(1, batches_per_epoch(settings_.samples, settings_.batch_size));
  const bool is_stream = settings_.samples == 0;
  if (!is_stream && (position.epoch_steps > per_epoch || position.epochs > position.steps / per_epoch ||
                     position.steps - position.epochs * per_epoch != position.epoch_steps))
    reader.fail(fmt::format("contradicts itself: {} steps are not {} epochs of {} and {} more", position.steps, position.epochs,
                            per_epoch, position.epoch_steps));

  auto parts = parts_;
  parts.insert(parts.begin(), {io::LoadedPart("model", model), io::LoadedPart("optimizer", optimizer)});
  std::vector<io::StateDict> states(parts.size());
  for (const auto& [name, tensor] : content.tensors) {
    const auto dot = std::min(name.find('.'), name.size());
    const auto owner = name.substr(0, dot);
    const auto part = std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p.name() == owner; });
    if (part == parts.end() || dot == name.size())
      reader.fail(
          fmt::format("holds a tensor '{}' that is neither the model's nor the optimizer's, nor of a hook or metric", name));
    states[static_cast<std::size_t>(part - parts.begin())].emplace_back(name.substr(dot + 1), tensor);
  }
  // Checkpoints from before they were noted do not speak of solvers.
  std::optional<exec::StoredChoices> choices;
  std::vector<io::StateDict> before;
  std::size_t loaded = 0;
  try {
    if (solvers != content.metadata.end()) choices = exec::StoredChoices::parse(solvers->second);
    for (const auto& part : parts) before.push_back(part.state());
    for (; loaded < parts.size(); ++loaded) parts[loaded].load(states[loaded]);
  } catch (const std::exception& error) {
    for (std::size_t i = 0; i < loaded; ++i) parts[i].load(before[i]);
    reader.fail(error.what());
  }
  if (choices) io::follow_choices(path_, std::move(*choices));
  set_random_state(random);
  return position;
}

}  // namespace clnet::train
