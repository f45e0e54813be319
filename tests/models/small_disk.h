// A file system of a few kilobytes for tests: it gets full, and can be made read-only.
#pragma once

#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "tests/support/skip.h"

namespace clnet::test {

class SmallDisk {
 public:
  /// Mounts it at a folder that is there, where this user may mount anything.
  SmallDisk(std::filesystem::path folder, const std::string& size) : folder_(std::move(folder)) {
    mounted_ = ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// Whether it is there; else the test is told to be skipped.
  bool mounted() const {
    if (!mounted_) skip("this user may not mount a small file system");
    return mounted_;
  }
  const std::filesystem::path& path() const { return folder_; }
  void make_read_only() const {
    if (::mount(nullptr, folder_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      throw std::runtime_error(std::string("remount: ") + std::strerror(errno));
  }
  /// Writes until nothing fits any more.
  void fill() const {
    std::ofstream out(folder_ / "filler", std::ios::binary);
    const std::string piece(512, 'x');
    while (out.write(piece.data(), static_cast<std::streamsize>(piece.size())) && out.flush()) {
    }
  }

 private:
  std::filesystem::path folder_;
  bool mounted_ = false;
};

}  // namespace clnet::test
