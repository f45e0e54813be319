// What lies in a folder of samples.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clnet::data {

/// Files and folders that are not hidden, in the order of their names. Throws FileError.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

/// Which files are samples.
struct FileKind {
  std::string_view what;                  ///< "images", for errors
  std::string_view files;                 ///< "png or bmp files", for errors
  std::vector<std::string_view> endings;  ///< in lower case: ".png"
};
/// All such files below the folder, in the order of their names. Links to folders are not followed, as they may lead round.
/// Throws FileError, also for more than 100 million files and 16 levels.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder, const FileKind& kind);

/// The files of a folder with a folder for each class.
struct ClassFiles {
  std::vector<std::pair<std::filesystem::path, std::int32_t>> files;  ///< with the number of the class
  std::vector<std::string> names;                                     ///< of the classes, in order
};
/// Throws FileError, also for a class without files: the numbers of all later classes would differ from those of another folder.
ClassFiles files_by_class(const std::filesystem::path& folder, const FileKind& kind);

}  // namespace clnet::data
