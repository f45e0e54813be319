#include "lib/io/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "clnet/checkpoint.h"
#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/ops/random.h"
#include "lib/base/log.h"
#include "lib/exec/plan/cache.h"
#include "lib/io/checksum.h"
#include "lib/optim/state_reader.h"

namespace clnet::io {

namespace {

namespace fs = std::filesystem;
using Metadata = std::map<std::string, std::string>;

constexpr std::string_view own = "clnet.", format = "parts 1";
constexpr const char *format_key = "clnet.format", *parts_key = "clnet.parts", *seed_key = "clnet.random_seed",
                     *offset_key = "clnet.random_offset", *solvers_key = "clnet.solvers", *checksum_key = "clnet.checksum",
                     *value_name = "value";

StateDict state_of(std::int64_t number) { return {{value_name, Tensor::from(std::vector<std::int64_t>{number}, {})}}; }
StateDict state_of(double number) { return {{value_name, optim::state_number(number)}}; }

template <class Part>
void require_names(std::string_view call, std::span<const Part> parts) {
  std::set<std::string_view> seen;
  for (const auto& part : parts) {
    const auto& name = part.name();
    if (name.empty() || name.find_first_of(".,") != std::string::npos)
      throw Error(fmt::format("{}: '{}' is no name of a part: it is empty, or has a dot or comma", call, name));
    if (!seen.insert(name).second) throw Error(fmt::format("{}: two parts are called '{}'", call, name));
  }
}

/// A checkpoint that was read; every fault names the file.
class PartsFile {
 public:
  explicit PartsFile(const fs::path& path) : path_(path), content_(load_safetensors(path)) {
    const auto found = content_.metadata.find(format_key);
    if (found == content_.metadata.end()) fail("is no checkpoint of io::save_checkpoint()");
    if (found->second != format) fail(fmt::format("is a checkpoint of the format '{}', expected '{}'", found->second, format));
    if (text(checksum_key) != checkpoint_checksum(content_.tensors, content_.metadata, checksum_key))
      fail("is damaged: its content does not have its check sum");
    const std::string_view list = text(parts_key);
    for (std::size_t at = 0; at < list.size();) {
      const auto end = std::min(list.find(',', at), list.size());
      states_[std::string(list.substr(at, end - at))];
      at = end + 1;
    }
    for (const auto& [name, tensor] : content_.tensors) {
      const auto dot = std::min(name.find('.'), name.size());
      const auto part = states_.find(name.substr(0, dot));
      if (part == states_.end() || dot == name.size()) fail(fmt::format("has a tensor '{}' that belongs to no part", name));
      part->second.emplace_back(name.substr(dot + 1), tensor);
    }
  }

  [[noreturn]] void fail(std::string_view what) const { throw FileError(fmt::format("{}: {}", path_.string(), what)); }

  const StateDict& part(const std::string& name) const {
    const auto found = states_.find(name);
    if (found == states_.end()) fail(fmt::format("has no part '{}', only {}", name, fmt::join(names(), ", ")));
    return found->second;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, state] : states_) result.push_back(name);
    return result;
  }
  RandomState random() const { return {number(seed_key), number(offset_key)}; }
  exec::StoredChoices choices() const {
    try {
      return exec::StoredChoices::parse(text(solvers_key));
    } catch (const Error& error) {
      fail(error.what());
    }
  }
  Metadata others() const {
    Metadata result = content_.metadata;
    std::erase_if(result, [](const auto& entry) { return entry.first.starts_with(own); });
    return result;
  }

 private:
  const std::string& text(const char* key) const {
    const auto found = content_.metadata.find(key);
    if (found == content_.metadata.end()) fail(fmt::format("has no '{}' in its metadata", key));
    return found->second;
  }
  std::uint64_t number(const char* key) const {
    const auto& digits = text(key);
    std::uint64_t value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || end != digits.data() + digits.size())
      fail(fmt::format("'{}' is '{}', expected a number from 0", key, digits));
    return value;
  }

  const fs::path& path_;
  Safetensors content_;
  std::map<std::string, StateDict> states_;
};

}  // namespace

void follow_choices(const fs::path& path, exec::StoredChoices choices) {
  if (!exec::PlanCache::of(*context_of(Device::current())).follow(std::move(choices)))
    logging::warn_once(
        fmt::format("{}: was made on another device or with another driver; the numbers that follow "
                    "may differ in their last digits from those of a training that had not stopped",
                    path.string()));
}

SavedPart::SavedPart(std::string name, const std::int64_t& number)
    : SavedPart(std::move(name), [&number] { return state_of(number); }) {}
SavedPart::SavedPart(std::string name, const double& number)
    : SavedPart(std::move(name), [&number] { return state_of(number); }) {}

LoadedPart::LoadedPart(std::string name, std::int64_t& number)
    : LoadedPart(SavedPart(std::move(name), number), [&number](const StateDict& state) {
        optim::StateReader reader(state);
        const auto value = reader.take(value_name, {Shape{}, Dtype::i64});
        reader.require_fit("whole number");
        number = value.item<std::int64_t>();
      }) {}
LoadedPart::LoadedPart(std::string name, double& number)
    : LoadedPart(SavedPart(std::move(name), number), [&number](const StateDict& state) {
        optim::StateReader reader(state);
        const auto value = reader.number(value_name);
        reader.require_fit("number");
        number = value;
      }) {}

void save_checkpoint(const fs::path& path, std::initializer_list<SavedPart> parts, const Metadata& metadata) {
  save_checkpoint(path, std::span(parts.begin(), parts.size()), metadata);
}

void save_checkpoint(const fs::path& path, std::span<const SavedPart> parts, const Metadata& metadata) {
  require_names("save_checkpoint", parts);
  for (const auto& [key, value] : metadata)
    if (key.starts_with(own)) throw Error(fmt::format("save_checkpoint: metadata '{}': names with '{}' are clnet's", key, own));
  StateDict all;
  std::vector<Tensor> values;
  std::vector<std::string> names;
  for (const auto& part : parts) {
    names.push_back(part.name());
    for (auto& [name, tensor] : part.state()) {
      all.emplace_back(part.name() + '.' + name, tensor);
      values.push_back(tensor);
    }
  }
  eval(values);  // all in one plan
  const auto random = random_state();
  Metadata complete = metadata;
  complete[format_key] = format;
  complete[parts_key] = fmt::format("{}", fmt::join(names, ","));
  complete[seed_key] = std::to_string(random.seed);
  complete[offset_key] = std::to_string(random.offset);
  complete[solvers_key] = exec::PlanCache::of(*context_of(Device::current())).choices();
  complete[checksum_key] = checkpoint_checksum(all, complete, checksum_key);
  save_safetensors(path, all, complete);
}

Metadata load_checkpoint(const fs::path& path, std::initializer_list<LoadedPart> parts, const LoadCheckpointOptions& options) {
  return load_checkpoint(path, std::span(parts.begin(), parts.size()), options);
}

Metadata load_checkpoint(const fs::path& path, std::span<const LoadedPart> parts, const LoadCheckpointOptions& options) {
  require_names("load_checkpoint", parts);
  const PartsFile file(path);
  for (const auto& part : parts) (void)file.part(part.name());
  if (!options.some_parts)
    for (const auto& name : file.names())
      if (std::none_of(parts.begin(), parts.end(), [&](const auto& part) { return part.name() == name; }))
        file.fail(fmt::format("has a part '{}', for which nothing was given", name));
  const auto random = file.random();
  auto choices = file.choices();
  std::vector<StateDict> before;
  for (const auto& part : parts) {
    try {
      before.push_back(part.state());
      part.load(file.part(part.name()));
    } catch (const std::exception& error) {
      // Those before it took theirs, so they take back what they had.
      for (std::size_t i = 0; i < before.size() && !(&parts[i] == &part); ++i) parts[i].load(before[i]);
      file.fail(fmt::format("part '{}': {}", part.name(), error.what()));
    }
  }
  follow_choices(path, std::move(choices));
  if (options.random_state) set_random_state(random);
  return file.others();
}

}  // namespace clnet::io
