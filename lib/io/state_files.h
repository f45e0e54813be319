// Tensors in files, as arrays in host memory: what io.h does with tensors, and clnet-convert without a device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/data/dataset.h"
#include "clnet/io.h"

namespace clnet::io {

enum class StateFormat : std::uint8_t { safetensors, torch, npz };
/// The format that a file's ending names; nothing for another ending.
std::optional<StateFormat> state_format(const std::filesystem::path& path);

/// Takes an array that was read, and its place among the file's.
using ArraySink = std::function<void(std::size_t place, data::Array array)>;

/// Each tensor of a safetensors file, in order; returns the metadata. Throws FileError as load_safetensors().
std::map<std::string, std::string> read_safetensors(const std::filesystem::path& path, const ArraySink& sink);
/// Each tensor of a checkpoint of PyTorch, storage by storage; returns how many values are no tensors. `key` as LoadTorchOptions
/// has it. Throws FileError as load_torch().
std::size_t read_torch(const std::filesystem::path& path, std::string_view key, const ArraySink& sink);
/// Each array of a .npz file, with f8 as `doubles`: f64 or f32.
void read_npz(const std::filesystem::path& path, std::uint64_t most_bytes, Dtype doubles, const ArraySink& sink);

/// What is written: the bytes are asked for when it is their turn.
struct WrittenState {
  std::vector<std::pair<std::string, Spec>> tensors;
  std::function<void(std::size_t place, void* target)> read;
};
/// Tensors, all computed in one plan. Throws Error, which begins with `call`, for a name that is there twice and for a tensor
/// that is not defined.
WrittenState written_state(std::string_view call, const StateDict& tensors);
/// Arrays, which must outlive it.
WrittenState written_state(std::string_view call, const std::vector<data::Array>& arrays);

void write_safetensors(const std::filesystem::path& path, const WrittenState& state,
                       const std::map<std::string, std::string>& metadata);
void write_torch(const std::filesystem::path& path, const WrittenState& state);
void write_npz(const std::filesystem::path& path, const WrittenState& state, bool compressed);

}  // namespace clnet::io
