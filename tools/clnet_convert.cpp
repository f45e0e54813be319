// clnet-convert: weights of PyTorch, safetensors, NumPy and ONNX files into each other. It needs no device.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "clnet/error.h"
#include "clnet/version.h"
#include "lib/base/input_file.h"
#include "lib/io/state_files.h"
#include "lib/onnx/initializers.h"
#include "tools/help.h"
#include "tools/options_fault.h"
#include "tools/output.h"

namespace {

using clnet::Dtype;
using clnet::Error;
using clnet::in_quotes;
using clnet::data::Array;
using Format = clnet::io::StateFormat;
namespace fs = std::filesystem;

struct Options {
  std::string in, out, into, key, dtype;
  std::vector<std::string> renames;
  bool list = false, compressed = false;
};

/// By the file's ending; nothing for ONNX.
std::optional<Format> format_of(const fs::path& path) {
  const auto format = clnet::io::state_format(path);
  if (!format && path.extension() != ".onnx")
    throw Error(fmt::format("{}: its ending is none of .safetensors, .npz, .onnx, and .pt, .pth, .ckpt and .bin of PyTorch",
                            path.string()));
  return format;
}

/// What a file holds.
struct Weights {
  std::vector<Array> arrays;
  std::map<std::string, std::string> metadata;
  std::size_t others = 0;  ///< values that are no tensors
};

/// Leaves the tensors below the key, with the rest of their names.
void take_below(const std::string& key, Weights& weights, const std::string& file) {
  const auto start = key + ".";
  std::erase_if(weights.arrays, [&](const auto& array) { return !array.name.starts_with(start); });
  if (weights.arrays.empty()) throw Error(fmt::format("{}: has no tensor below {}", file, in_quotes(key)));
  for (auto& array : weights.arrays) array.name.erase(0, start.size());
}

Weights read(const Options& options) {
  Weights weights;
  const auto sink = [&](std::size_t place, Array array) {
    if (weights.arrays.size() <= place) weights.arrays.resize(place + 1);
    weights.arrays[place] = std::move(array);
  };
  constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();
  const auto format = format_of(options.in);
  if (!format) {
    weights.arrays = clnet::onnx::read_initializers(options.in);
  } else {
    switch (*format) {
      case Format::safetensors: weights.metadata = clnet::io::read_safetensors(options.in, sink); break;
      case Format::torch: weights.others = clnet::io::read_torch(options.in, options.key, sink); break;
      case Format::npz: clnet::io::read_npz(options.in, no_limit, clnet::Dtype::f64, sink); break;
    }
  }
  if (!options.key.empty() && format != Format::torch) take_below(options.key, weights, options.in);
  return weights;
}

/// FROM=TO: names that are FROM or begin with FROM and a dot, or with a FROM that ends in a dot, or all names for an empty one.
void rename(const std::vector<std::string>& renames, std::vector<Array>& arrays) {
  for (const auto& text : renames) {
    const auto equals = text.find('=');
    if (equals == std::string::npos) throw Error(fmt::format("--rename {}: expected FROM=TO", text));
    const auto from = text.substr(0, equals), to = text.substr(equals + 1);
    bool is_used = false;
    for (auto& array : arrays) {
      if (!array.name.starts_with(from)) continue;
      if (!from.empty() && from.back() != '.' && array.name.size() > from.size() && array.name[from.size()] != '.') continue;
      array.name.replace(0, from.size(), to);
      is_used = true;
    }
    if (!is_used) throw Error(fmt::format("--rename {}: no tensor's name begins with {}", text, in_quotes(from)));
  }
}

template <class T>
T element(const Array& array, std::size_t index) {
  T value;
  std::memcpy(&value, array.bytes.data() + index * sizeof value, sizeof value);
  return value;
}
double number(const Array& array, std::size_t index) {
  switch (array.dtype) {
    case Dtype::f16: return clnet::half_to_float(element<std::uint16_t>(array, index));
    case Dtype::bf16: return clnet::bfloat16_to_float(element<std::uint16_t>(array, index));
    case Dtype::f64: return element<double>(array, index);
    default: return element<float>(array, index);
  }
}
/// Floats as another floating dtype, rounded to nearest by way of f32, as PyTorch does.
Array cast(const Array& array, Dtype dtype) {
  if (array.dtype == dtype || !clnet::is_floating(array.dtype)) return array;
  Array out(array.shape, dtype, array.name);
  const auto count = static_cast<std::size_t>(array.shape.numel());
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(number(array, i));
    const auto bits = dtype == Dtype::f16 ? clnet::float_to_half(value) : clnet::float_to_bfloat16(value);
    if (dtype == Dtype::f32)
      std::memcpy(out.bytes.data() + i * sizeof value, &value, sizeof value);
    else
      std::memcpy(out.bytes.data() + i * sizeof bits, &bits, sizeof bits);
  }
  return out;
}

void print_list(const Weights& weights) {
  std::size_t width = 0;
  for (const auto& array : weights.arrays) width = std::max(width, std::min<std::size_t>(array.name.size(), 60));
  for (const auto& array : weights.arrays)
    fmt::print("{:<{}}  {:<4}  {}\n", array.name, width, to_string(array.dtype), to_string(array.shape));
  std::int64_t elements = 0;
  for (const auto& array : weights.arrays) elements += array.shape.numel();
  fmt::print("{} tensors, {} elements", weights.arrays.size(), elements);
  if (weights.others > 0) fmt::print("; {} values that are no tensors", weights.others);
  fmt::print("\n");
}

void write(const Options& options, const Weights& weights) {
  const auto format = format_of(options.out);
  if (format.has_value() != options.into.empty())
    throw Error(options.into.empty()
                    ? fmt::format("{}: weights alone are no network; --into names the ONNX file that takes them", options.out)
                    : fmt::format("{}: --into writes an ONNX file, whose name ends in .onnx", options.out));
  if (!format) {
    const auto result = clnet::onnx::replace_initializers(options.into, weights.arrays, options.out);
    fmt::print("{}: replaced {} initializers, kept {}{}\n", options.out, result.replaced, result.kept,
               result.beside.empty() ? "" : fmt::format("; the data are in {} beside it", result.beside));
    if (!result.unknown.empty())
      fmt::print("left out {} tensors that the model has no initializer for: {}{}\n", result.unknown.size(),
                 fmt::join(result.unknown.begin(),
                           result.unknown.begin() + std::min<std::ptrdiff_t>(std::ssize(result.unknown), 5), ", "),
                 result.unknown.size() > 5 ? ", ..." : "");
    return;
  }
  const auto state = clnet::io::written_state(options.out, weights.arrays);
  if (format == Format::torch) {
    clnet::io::write_torch(options.out, state);
  } else if (format == Format::npz) {
    clnet::io::write_npz(options.out, state, options.compressed);
  } else {
    // What a checkpoint of clnet says of itself does not hold for its parts.
    auto metadata = weights.metadata;
    const auto its_format = metadata.find("format");
    if (metadata.contains("clnet.format") || (its_format != metadata.end() && its_format->second != "pt")) metadata.clear();
    metadata["format"] = "pt";
    clnet::io::write_safetensors(options.out, state, metadata);
  }
  fmt::print("{}: {} tensors, {} bytes\n", options.out, weights.arrays.size(), fs::file_size(options.out));
}

void run(const Options& options) {
  if (options.out.empty() && !options.list) throw Error("OUT or --list is needed; --help lists the options");
  if (!options.out.empty()) format_of(options.out);
  auto weights = read(options);
  if (weights.arrays.empty() && !format_of(options.in))
    throw Error(fmt::format("{}: has no initializers; weights in Constant nodes are not read", options.in));
  rename(options.renames, weights.arrays);
  if (!options.dtype.empty())
    for (auto& array : weights.arrays)
      array = cast(array, options.dtype == "f16" ? Dtype::f16 : options.dtype == "bf16" ? Dtype::bf16 : Dtype::f32);
  if (options.list) print_list(weights);
  if (!options.out.empty()) write(options, weights);
  clnet::tools::require_written();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Converts weights between PyTorch, safetensors, NumPy and ONNX files.", "clnet-convert");
  app.formatter(std::make_shared<clnet::tools::HelpLayout>());
  app.set_version_flag("--version", fmt::format("clnet-convert {}", clnet::version()));
  app.add_option("in", options.in, "weights: .pt, .pth, .ckpt or .bin of PyTorch, .safetensors, .npz, or .onnx (initializers)")
      ->type_name("IN")
      ->required();
  app.add_option("out", options.out, "the file to write; its ending names the format")->type_name("OUT");
  app.add_flag("--list", options.list, "prints names, dtypes and shapes");
  app.add_option("--key", options.key, "takes only tensors below a key of a nested checkpoint: state_dict, or ema.model")
      ->type_name("PATH");
  app.add_option("--rename", options.renames,
                 "changes the start of names: fc=head, module.= (removes a prefix), =backbone. (adds one); in this order")
      ->type_name("FROM=TO")
      ->expected(1)
      ->take_all();
  app.add_option("--dtype", options.dtype, "rounds floats to f16, bf16 or f32; integers stay")
      ->check(CLI::IsMember({"f16", "bf16", "f32"}));
  app.add_option("--into", options.into, "an ONNX network; OUT is a copy with IN's tensors as initializers of their names")
      ->type_name("MODEL.onnx");
  app.add_flag("--compressed", options.compressed, "deflates a .npz");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "clnet-convert: {}; --help lists the options\n", clnet::tools::fault_of(app, error));
    return 2;
  }
  try {
    run(options);
    return 0;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "clnet-convert: {}: there is not enough memory\n", options.in);
  } catch (const std::exception& error) {
    fmt::print(stderr, "clnet-convert: {}\n", error.what());
  }
  return 1;
}
