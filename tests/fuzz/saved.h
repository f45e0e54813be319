// Random programs as ONNX files: what onnx::save() writes must mean the same when onnx::load() reads it, and when another program
// runs it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tests/fuzz/generator.h"
#include "tests/fuzz/program.h"

namespace clnet::fuzz {

/// How another program took a file.
struct Answer {
  enum class Kind : std::uint8_t {
    ran,      ///< its outputs are in the data sets, as other_0.pb, ...
    refused,  ///< it lacks something that the file has
    invalid,  ///< the file breaks a rule of ONNX
    ended     ///< the other program's process ended over it
  };
  Kind kind = Kind::ran;
  std::string text;  ///< why not
};
/// Runs a folder in the layout of ONNX's tests. `plain`: without optimizations of the graph.
using Runner = std::function<Answer(const std::filesystem::path& folder, bool plain)>;

struct SavedOptions {
  bool device = false;  ///< what is loaded is also computed on the device
  Runner runner = {};
  std::filesystem::path folder;  ///< for one program's files at a time
};

struct SavedOutcome {
  /// What differs; its beginning, up to a colon, is the kind.
  std::optional<std::string> fault;
  std::optional<std::string> refused;  ///< by the other program
  bool optimizer = false;              ///< the other program differs with its optimizations alone
  bool follows_batch = false;
  std::int64_t elements = 0, judged = 0;  ///< of the other program's, or else of the loaded graph's
};

/// The program with leaves in place of each step that save() refuses, and what it refuses, by its error. Its outputs are the
/// values of its evaluations that operations make; there may be none.
Program writable(const Program& program, const std::filesystem::path& folder, std::map<std::string, std::int64_t>& refused);

/// Writes the program, loads it, and compares.
SavedOutcome check_saved(const Program& program, const SavedOptions& options);

/// The operations of table() of which save() refused every try.
std::set<std::string, std::less<>> never_written(const Settings& settings, const std::filesystem::path& folder);

}  // namespace clnet::fuzz
