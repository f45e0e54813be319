// Open files of the system's. What fails says so by what it returns, and errno says why.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

namespace clnet::os {

/// What the system knows of a file.
struct FileStatus {
  enum class Kind : std::uint8_t { regular, folder, other };
  Kind kind = Kind::other;
  std::uint64_t size = 0;   ///< in bytes
  std::uint64_t names = 0;  ///< how many lead to it
  /// No other file's while it is there.
  std::pair<std::uint64_t, std::uint64_t> identity;
};
/// Links are followed.
std::optional<FileStatus> status(const std::filesystem::path& path);

/// Owns an open file, which no new program inherits.
class Descriptor {
 public:
  Descriptor() = default;
  /// Takes over `number`; a negative one is no file.
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  void close();

  /// One call of the system's: how many bytes, fewer also where there could be more; negative where it fails, also with EINTR.
  std::ptrdiff_t read(void* target, std::size_t bytes) const;
  std::ptrdiff_t read_at(std::uint64_t offset, void* target, std::size_t bytes) const;
  std::ptrdiff_t write(const void* data, std::size_t bytes) const;
  /// All of it, in one call where the system takes it so.
  bool write_all(std::string_view text) const;
  /// Waits until there is something to read, or no more: positive then, zero where nothing comes, negative as above.
  int wait_to_read(std::chrono::milliseconds longest) const;
  /// From now on nothing that is read or written is waited for.
  bool never_wait() const;
  /// Empties the file, and what is written next begins it.
  bool clear() const;
  /// Until what was written is on the disk.
  bool sync() const;
  /// For this process alone. Waits for who has locked it, or fails then.
  bool lock(bool waits) const;
  std::optional<FileStatus> status() const;

 private:
  int number_ = -1;
};

enum class Opening : std::uint8_t {
  read,
  read_at_once,     ///< does not wait for the writer of a FIFO
  folder,           ///< to sync it
  create,           ///< to read and to write what was not there
  append,           ///< to what is there
  append_or_create  ///< and does not wait for the reader of a FIFO
};
Descriptor open(const std::filesystem::path& path, Opening how);

}  // namespace clnet::os
