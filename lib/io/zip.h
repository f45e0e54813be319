// Zip archives (PKWARE's APPNOTE.TXT), as NumPy writes them: stored or deflated members, zip64.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/input_file.h"
#include "lib/io/npy_format.h"

namespace clnet::io {

struct ZipMember {
  std::string name;
  bool deflated = false;
  std::uint32_t checksum = 0;  ///< CRC-32 of the content
  std::uint64_t stored = 0;    ///< bytes in the file
  std::uint64_t content = 0;   ///< bytes of the content
  std::uint64_t offset = 0;    ///< of the local header, and behind zip_members() of the stored bytes
};

/// The members in the order of the archive's directory. Each name is there once, and no two share bytes of the file. Throws
/// FileError for an archive that is damaged, encrypted, of several files, or compressed in another way.
std::vector<ZipMember> zip_members(const InputFile& file);

/// The content of a member. Its end is checked against size and check sum.
class ZipReader final : public ByteReader {
 public:
  ZipReader(const InputFile& file, ZipMember member);
  ~ZipReader() override;
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  std::size_t read(void* target, std::size_t bytes) override;
  std::uint64_t most_left() const override { return member_.content - done_; }

 private:
  std::size_t inflated(unsigned char* target, std::size_t bytes);
  void check_end();

  const InputFile& file_;
  const ZipMember member_;
  std::uint64_t taken_ = 0;  ///< stored bytes that were read
  std::uint64_t done_ = 0;   ///< bytes of the content that were given
  uLong sum_ = ::crc32_z(0, nullptr, 0);
  z_stream stream_{};
  std::vector<unsigned char> input_;
  bool ended_ = false;
};

/// Writes an archive, member by member. All sizes are those of zip64, so that there is no limit.
class ZipWriter {
 public:
  ZipWriter(std::ostream& out, bool deflated) : out_(out), deflated_(deflated) {}
  /// The content begins at a multiple of `alignment`, at most 1024.
  void add(const std::string& name, std::string_view content, std::uint64_t alignment = 1);
  /// The directory, behind the last member.
  void finish();

 private:
  void write(std::string_view bytes);

  std::ostream& out_;
  const bool deflated_;
  std::uint64_t at_ = 0;
  std::vector<ZipMember> members_;
};

}  // namespace clnet::io
