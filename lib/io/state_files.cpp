#include "lib/io/state_files.h"

#include <fmt/format.h>

#include <cstring>
#include <set>

#include "clnet/error.h"
#include "lib/base/input_file.h"

namespace clnet::io {
namespace {

StateFormat format_of(const std::filesystem::path& path) {
  if (const auto format = state_format(path)) return *format;
  throw Error(
      fmt::format("{}: the ending {} names no format; expected .safetensors, .npz, or .pt, .pth, .ckpt or .bin of PyTorch",
                  path.string(), in_quotes(path.extension().string())));
}

void require_written_once(std::string_view call, const WrittenState& state) {
  std::set<std::string_view> names;
  for (const auto& [name, spec] : state.tensors)
    if (!names.insert(name).second) throw Error(fmt::format("{}: tensor {} is given twice", call, in_quotes(name)));
}

}  // namespace

std::optional<StateFormat> state_format(const std::filesystem::path& path) {
  const auto ending = path.extension().string();
  if (ending == ".safetensors") return StateFormat::safetensors;
  if (ending == ".pt" || ending == ".pth" || ending == ".ckpt" || ending == ".bin") return StateFormat::torch;
  if (ending == ".npz") return StateFormat::npz;
  return std::nullopt;
}

WrittenState written_state(std::string_view call, const StateDict& tensors) {
  WrittenState state;
  std::vector<Tensor> values;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) throw Error(fmt::format("{}: tensor {} is not defined", call, in_quotes(name)));
    state.tensors.emplace_back(name, tensor.spec());
    values.push_back(tensor);
  }
  require_written_once(call, state);
  eval(values);
  state.read = [values = std::move(values)](std::size_t place, void* target) {
    values[place].to_bytes(target, static_cast<std::size_t>(values[place].spec().bytes()));
  };
  return state;
}

WrittenState written_state(std::string_view call, const std::vector<data::Array>& arrays) {
  WrittenState state;
  for (const auto& array : arrays) state.tensors.emplace_back(array.name, array.spec());
  require_written_once(call, state);
  state.read = [&arrays](std::size_t place, void* target) {
    if (!arrays[place].bytes.empty()) std::memcpy(target, arrays[place].bytes.data(), arrays[place].bytes.size());
  };
  return state;
}

StateDict load_state(const std::filesystem::path& path) {
  switch (format_of(path)) {
    case StateFormat::safetensors: return load_safetensors(path).tensors;
    case StateFormat::torch: return load_torch(path);
    case StateFormat::npz: return load_npz(path);
  }
  return {};
}

void save_state(const std::filesystem::path& path, const StateDict& tensors) {
  switch (format_of(path)) {
    case StateFormat::safetensors: return save_safetensors(path, tensors, {{"format", "pt"}});
    case StateFormat::torch: return save_torch(path, tensors);
    case StateFormat::npz: return save_npz(path, tensors);
  }
}

}  // namespace clnet::io
