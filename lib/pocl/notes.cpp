#include "lib/pocl/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/input_file.h"
#include "lib/base/log.h"
#include "lib/base/os/descriptor.h"
#include "lib/cl/quirk_file.h"

namespace clnet::pocl {

using ocl::KernelToBuild, ocl::Noted;

namespace {

constexpr std::uint64_t largest_notes = 16 << 20;
constexpr std::string_view notes_begin = "clnet kernels ", notes_version = "1";  ///< the first line

const char* suffix(Noted end) { return end == Noted::compiled ? "" : end == Noted::failed ? " failed" : " crashed"; }

}  // namespace

Notes::Notes(const std::string& path) : path_(path) {
  try {
    read();
  } catch (const FileError& error) {
    // What has grown too large, is no file, or of another version, begins anew.
    std::error_code ignored;
    if (std::filesystem::exists(path_, ignored))
      logging::print(logging::Level::plan, "notes of kernels begin anew: {}", error.what());
    known_.clear();
    std::error_code code;
    std::filesystem::remove(path_, code);
  }
}

void Notes::read() {
  const auto text = file::read(path_, largest_notes);
  size_ = text.size();
  // The last line may be half-written.
  std::istringstream file(text.substr(0, text.rfind('\n') + 1));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(notes_begin) && line.substr(notes_begin.size()) != notes_version)
      throw FileError(
          fmt::format("{}: is of the format {}, expected '{}{}'", path_, in_quotes(line), notes_begin, notes_version));
    known_.insert(std::move(line));
  }
}

void Notes::read_again() {
  const std::lock_guard lock(mutex_);
  std::error_code code;
  if (const auto size = std::filesystem::file_size(path_, code); code || size == size_) return;
  try {
    read();
  } catch (const FileError&) {
    // It is not there any more, or another version's. What is known holds.
  }
}

Noted Notes::of(const std::string& kernel) const {
  const std::lock_guard lock(mutex_);
  for (const auto end : {Noted::crashed, Noted::compiled, Noted::failed})
    if (known_.contains(kernel + suffix(end))) return end;
  return Noted::nothing;
}

void Notes::add(const std::string& kernel, Noted end) {
  const std::lock_guard lock(mutex_);
  const auto line = *known_.insert(kernel + suffix(end)).first + '\n';
  std::error_code code;
  const bool is_new = !std::filesystem::exists(path_, code);  // of several processes some may begin it: that does no harm
  if (const auto file = os::open(path_, os::Opening::append_or_create); file.is_open())
    file.write_all(is_new ? fmt::format("{}{}\n{}", notes_begin, notes_version, line) : line);
}

bool Notes::deserves_another_try(const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  return suspects_.insert(kernel).second;
}

bool Notes::is_suspect(const std::string& kernel) const {
  const std::lock_guard lock(mutex_);
  return suspects_.contains(kernel);
}

Notes& notes_of(const BuildProcesses& processes) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::string, Notes>;
  const auto path = notes_file(processes);
  const std::lock_guard lock(mutex);
  return all.try_emplace(path, path).first->second;
}

std::string state_of(const DeviceInfo& device) {
  auto state = ocl::identity(device);
  for (const char* variable : {"POCL_EXTRA_BUILD_FLAGS", "POCL_WORK_GROUP_METHOD"})
    if (const char* value = std::getenv(variable)) state += fmt::format(" | {}={}", variable, value);
  return state;
}

std::string note_of(const std::string& state, const KernelToBuild& kernel) {
  Hash note;
  note.add(state).add(kernel.program.name).add(kernel.program.source);
  for (const auto& [name, value] : kernel.program.defines) note.add(name).add(value);
  note.add(kernel.function).add(fmt::format("{}", fmt::join(kernel.local, " ")));
  // Which code drivers make may depend on whether a range is large, not on how large.
  if (!kernel.global.empty()) note.add("large");
  return note.hex();
}

std::vector<Noted> noted(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes) {
  const auto state = state_of(device);
  const auto& notes = notes_of(processes);
  std::vector<Noted> result;
  for (const auto& kernel : kernels) result.push_back(notes.of(note_of(state, kernel)));
  return result;
}

void note_run(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes) {
  const auto state = state_of(device);
  auto& notes = notes_of(processes);
  for (const auto& kernel : kernels)
    if (const auto note = note_of(state, kernel); notes.of(note) == Noted::nothing) notes.add(note, Noted::compiled);
}

}  // namespace clnet::pocl
