// Checkpoints of loops of one's own: one file of all that a run needs to go on.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "clnet/export.h"
#include "clnet/io.h"

namespace clnet::io {

/// A module, an optimizer, an EMA, a Scheduler, a Plateau, a metric, or a class of the caller's own with these functions. As
/// those of the library, load_state_dict() changes nothing where it throws.
template <class T>
concept HasState = requires(const T& object, T& changed, const StateDict& state) {
  { object.state_dict() } -> std::same_as<StateDict>;
  changed.load_state_dict(state);
};

/// An object to be saved, or a number, under a name. The name has no dots and no commas.
class CLNET_API SavedPart {
 public:
  template <HasState T>
  SavedPart(std::string name, const T& object) : SavedPart(std::move(name), [&object] { return object.state_dict(); }) {}
  SavedPart(std::string name, const std::int64_t& number);
  SavedPart(std::string name, const double& number);

  const std::string& name() const { return name_; }
  StateDict state() const { return state_(); }

 private:
  SavedPart(std::string name, std::function<StateDict()> state) : name_(std::move(name)), state_(std::move(state)) {}

  std::string name_;
  std::function<StateDict()> state_;
};
/// An object to be restored, or a number.
class CLNET_API LoadedPart {
 public:
  template <HasState T>
  LoadedPart(std::string name, T& object)
      : LoadedPart(SavedPart(std::move(name), object), [&object](const StateDict& state) { object.load_state_dict(state); }) {}
  LoadedPart(std::string name, std::int64_t& number);
  LoadedPart(std::string name, double& number);

  const std::string& name() const { return before_.name(); }
  StateDict state() const { return before_.state(); }
  void load(const StateDict& state) const { load_(state); }

 private:
  LoadedPart(SavedPart before, std::function<void(const StateDict&)> load) : before_(std::move(before)), load_(std::move(load)) {}

  SavedPart before_;
  std::function<void(const StateDict&)> load_;
};

/// Writes all that a loop of one's own needs to go on, as one safetensors file, as save_safetensors() does: the parts, the random
/// state and the kernels in use. A part's tensors are called "<part>.<name>".
///   io::save_checkpoint("run.safetensors", {{"model", model}, {"optimizer", adam}, {"ema", average}, {"step", step}});
/// Throws FileError where the file cannot be written. Throws Error for a name that is empty, appears twice, or has a dot or
/// comma, and for metadata whose name begins with "clnet.".
CLNET_API void save_checkpoint(const std::filesystem::path& path, std::initializer_list<SavedPart> parts,
                               const std::map<std::string, std::string>& metadata = {});
CLNET_API void save_checkpoint(const std::filesystem::path& path, std::span<const SavedPart> parts,
                               const std::map<std::string, std::string>& metadata = {});

struct LoadCheckpointOptions {
  bool some_parts = false;   ///< parts of the file that are not asked for are left alone; otherwise they throw FileError
  bool random_state = true;  ///< restore the random state, too
};
/// Restores parts from a save_checkpoint(), and the random state, and returns the caller's metadata. What follows then has the
/// numbers of a run that was not stopped, to the bit. Throws FileError, which names file and part, for a damaged file, a part
/// that is missing or does not fit, and a part that nobody asked for. Nothing is changed then.
CLNET_API std::map<std::string, std::string> load_checkpoint(const std::filesystem::path& path,
                                                             std::initializer_list<LoadedPart> parts,
                                                             const LoadCheckpointOptions& options = {});
CLNET_API std::map<std::string, std::string> load_checkpoint(const std::filesystem::path& path, std::span<const LoadedPart> parts,
                                                             const LoadCheckpointOptions& options = {});

}  // namespace clnet::io
