// Where a network's time goes: a table by kernel and by node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace clnet::tools {

/// Traces the default device from begin() to end().
class RunProfile {
 public:
  /// `trace` is the file of the trace, which stays; empty: there is none. `table` prints the time by kernel and by node.
  RunProfile(std::string trace, bool table);
  ~RunProfile();
  RunProfile(const RunProfile&) = delete;
  RunProfile& operator=(const RunProfile&) = delete;

  bool is_wanted() const { return table_ || !trace_.empty(); }
  /// Throws FileError where the file cannot be written.
  void begin();
  /// Prints the tables, per run. Throws FileError where the file is incomplete.
  void end(std::int64_t runs);

 private:
  std::string trace_, folder_;
  bool table_;
};

}  // namespace clnet::tools
