#include "lib/cl/kernel_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/file.h"

namespace clnet::ocl {

namespace {

constexpr std::uint64_t largest_file = 16 << 20;

/// The name in a line `#include "name"`, or empty.
std::string_view included(std::string_view line) {
  const auto skip = [&](std::string_view characters) {
    line.remove_prefix(std::min(line.find_first_not_of(characters), line.size()));
  };
  skip(" \t");
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip(" \t");
  if (!line.starts_with("include")) return {};
  line.remove_prefix(7);
  skip(" \t");
  if (!line.starts_with('"')) return {};
  line.remove_prefix(1);
  const auto end = line.find('"');
  return end == std::string_view::npos ? std::string_view() : line.substr(0, end);
}

void append(std::string& out, std::string_view title, std::string_view source, std::set<std::string, std::less<>>& seen) {
  while (!source.empty()) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    const std::string_view line = source.substr(0, end);
    source.remove_prefix(std::min(end + 1, source.size()));
    const std::string_view name = included(line);
    if (name.empty()) {
      out.append(line).push_back('\n');
    } else if (seen.emplace(name).second) {
      const auto text = kernel_file(name);
      if (!text) throw Unsupported(fmt::format("kernel {} includes \"{}\", and there is no such file", title, name));
      append(out, name, *text, seen);
    }
  }
}

}  // namespace

std::optional<std::string> kernel_file(std::string_view name) {
  if (const auto folder = env::text("CLNET_KERNEL_DIR")) {
    const auto path = std::filesystem::path(*folder) / name;
    if (std::filesystem::exists(path)) return file::read(path, largest_file);
  }
  for (const EmbeddedFile& embedded : embedded_files()) {
    if (embedded.name == name) return std::string(embedded.text);
  }
  return std::nullopt;
}

std::string kernel_source(std::string_view name) {
  const std::string file = std::string(name) + ".cl";
  const auto text = kernel_file(file);
  if (!text) throw Unsupported(fmt::format("there is no kernel file {}", file));
  return resolve_includes(file, *text);
}

std::string resolve_includes(std::string_view title, std::string_view source) {
  std::string out;
  std::set<std::string, std::less<>> seen{std::string(title)};
  append(out, title, source, seen);
  return out;
}

}  // namespace clnet::ocl
