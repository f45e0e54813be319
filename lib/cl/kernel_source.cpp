#include "lib/cl/kernel_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/file.h"

namespace clnet::ocl {

namespace {

constexpr std::uint64_t largest_source = 16 << 20;

/// A line's directive ("ifdef") and its argument, without the spaces between. Empty for other lines.
struct Directive {
  std::string_view name, rest;
};

Directive directive_of(std::string_view line) {
  const auto skip = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  skip();
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip();
  const std::string_view name = line.substr(0, line.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
  line.remove_prefix(name.size());
  skip();
  return {name, line};
}

/// The name in `#include "name"`, or empty.
std::string_view included(const Directive& directive) {
  if (directive.name != "include" || !directive.rest.starts_with('"')) return {};
  const auto end = directive.rest.find('"', 1);
  return end == std::string_view::npos ? std::string_view() : directive.rest.substr(1, end - 1);
}

/// Whether a file begins with #undef: it redefines names at each inclusion.
bool undefines(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const Directive directive = directive_of(text.substr(0, end));
    if (!directive.name.empty()) return directive.name == "undef";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

/// The conditional branches around a line, outermost first, each with a number of its own.
using Branches = std::vector<int>;

class Resolver {
 public:
  std::string resolve(std::string_view title, std::string_view source) {
    places_.emplace(title, Branches{});
    append(title, source);
    return std::move(out_);
  }

 private:
  void append(std::string_view title, std::string_view source) {
    const std::size_t outside = branches_.size();
    bool begun = false;
    while (!source.empty()) {
      const std::size_t end = std::min(source.find('\n'), source.size());
      const std::string_view line = source.substr(0, end);
      source.remove_prefix(std::min(end + 1, source.size()));
      const Directive directive = directive_of(line);
      if (const std::string_view name = included(directive); !name.empty()) {
        include(title, name);
        begun = true;
        continue;
      }
      out_.append(line).push_back('\n');
      if (directive.name.empty()) continue;
      // A guard around the whole file does not count as a condition.
      const bool guard = !begun && directive.name == "ifndef" && directive.rest.ends_with("_CLH");
      if (!guard) follow(directive.name, outside);
      begun = true;
    }
    branches_.resize(outside);
  }

  /// `outside`: the number of branches around the file itself. The end of its guard belongs to none of its own.
  void follow(std::string_view directive, std::size_t outside) {
    if (directive == "if" || directive == "ifdef" || directive == "ifndef")
      branches_.push_back(next_++);
    else if (directive == "endif" && branches_.size() > outside)
      branches_.pop_back();
    else if ((directive == "else" || directive == "elif") && branches_.size() > outside)
      branches_.back() = next_++;
  }

  void include(std::string_view title, std::string_view name) {
    const auto place = places_.find(name);
    if (place == places_.end()) {
      const auto text = kernel_file(name);
      if (!text) throw Unsupported(fmt::format("kernel {} includes \"{}\", and there is no such file", title, name));
      places_.emplace(name, branches_);
      append(name, *text);
      if (undefines(*text)) places_.erase(std::string(name));
      return;
    }
    const auto& first = place->second;
    if (first.size() > branches_.size() || !std::equal(first.begin(), first.end(), branches_.begin()))
      throw Unsupported(
          fmt::format("kernel {} includes \"{}\", whose text stands under an earlier #if that need not hold here: "
                      "include it before that #if",
                      title, name));
  }

  std::string out_;
  std::map<std::string, Branches, std::less<>> places_;  // the branches of each file's text
  Branches branches_;
  int next_ = 0;
};

}  // namespace

std::optional<std::string> kernel_file(std::string_view name) {
  if (const auto folder = env::text("CLNET_KERNEL_DIR")) {
    // In the folder itself or in a family's folder, as clnet's own kernels.
    std::error_code none;
    if (const auto path = std::filesystem::path(*folder) / name; std::filesystem::exists(path, none))
      return file::read(path, largest_source);
    for (const auto& family : std::filesystem::directory_iterator(*folder, none))
      if (const auto path = family.path() / name; std::filesystem::exists(path, none)) return file::read(path, largest_source);
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

std::string resolve_includes(std::string_view title, std::string_view source) { return Resolver().resolve(title, source); }

}  // namespace clnet::ocl
