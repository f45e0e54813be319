// Whole files: read with a bound, written to a temporary file beside the target and renamed over it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace clnet::file {

/// The whole content of a regular file. Throws FileError, with path and reason, also when it is larger than `limit` bytes.
std::string read(const std::filesystem::path& path, std::uint64_t limit);

/// What `write` puts into the stream becomes the file's content, or nothing changes: the data go to a temporary file in the
/// same folder, are synced, and are renamed over `path`. Links are followed, also to where nothing is yet. Throws FileError and
/// removes the temporary file on any failure; what a killed process left behind goes with the next write.
void replace(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);
void replace(const std::filesystem::path& path, std::string_view content);
/// Writes it in the same way where there is no such file; says whether it did. Of several processes that try, one does.
bool create(const std::filesystem::path& path, std::string_view content);

/// Throws FileError where a folder takes no new file, by making one there of a name that nobody has.
void require_writable(const std::filesystem::path& folder);

}  // namespace clnet::file
