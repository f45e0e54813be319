#include "lib/io/zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <limits>
#include <ostream>
#include <set>
#include <utility>

#include "clnet/error.h"

namespace clnet::io {
namespace {

constexpr std::uint32_t local_magic = 0x04034b50, entry_magic = 0x02014b50, end_magic = 0x06054b50, end64_magic = 0x06064b50,
                        locator_magic = 0x07064b50;
constexpr std::uint64_t local_bytes = 30, entry_bytes = 46, end_bytes = 22, end64_bytes = 56, locator_bytes = 20;
constexpr std::uint16_t stored_method = 0, deflated_method = 8, zip64_extra = 1, zip64_version = 45,
                        padding_extra = 0x4246;  // "FB", as PyTorch pads
constexpr std::uint16_t is_encrypted = 1, is_utf8 = 1 << 11;
constexpr std::uint16_t in_zip64_16 = 0xffff;
constexpr std::uint32_t in_zip64_32 = 0xffffffff;
constexpr std::uint64_t most_directory = std::uint64_t{64} << 20;
/// Deflate's limit: 258 bytes from two bits.
constexpr std::uint64_t most_expansion = 1032;

/// Little-endian numbers of a part of the file.
class ZipFields {
 public:
  ZipFields(const InputFile& file, std::uint64_t offset, std::uint64_t bytes) : file_(file), bytes_(bytes) {
    if (offset > file.size() || bytes > file.size() - offset) fail();
    file.read_at(offset, bytes_.data(), bytes_.size());
  }
  template <std::unsigned_integral T>
  T take() {
    T value;
    std::memcpy(&value, text(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text(std::uint64_t bytes) {
    if (bytes > bytes_.size() - at_) fail();
    const std::string_view result(bytes_.data() + at_, static_cast<std::size_t>(bytes));
    at_ += static_cast<std::size_t>(bytes);
    return result;
  }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  [[noreturn]] void fail() const { file_.fail("is a damaged zip archive: parts of it lie outside of the file"); }

  const InputFile& file_;
  std::vector<char> bytes_;
  std::size_t at_ = 0;
};

/// Where the directory lies.
struct ZipDirectory {
  std::uint64_t members = 0, bytes = 0, offset = 0;
};

/// The record at the end, behind which there may be a comment.
std::uint64_t find_end(const InputFile& file) {
  if (file.size() < end_bytes) file.fail("is too short for a zip archive");
  const auto length = std::min<std::uint64_t>(file.size(), end_bytes + std::numeric_limits<std::uint16_t>::max());
  std::vector<char> tail(static_cast<std::size_t>(length));
  file.read_at(file.size() - length, tail.data(), tail.size());
  for (auto at = tail.size() - end_bytes + 1; at-- > 0;) {
    std::uint16_t comment = 0;
    std::memcpy(&comment, tail.data() + at + end_bytes - sizeof comment, sizeof comment);
    if (std::memcmp(tail.data() + at, &end_magic, sizeof end_magic) == 0 && at + end_bytes + comment == tail.size())
      return file.size() - length + at;
  }
  file.fail("is no zip archive: it has no directory at its end");
}

ZipDirectory find_directory(const InputFile& file) {
  const auto end = find_end(file);
  ZipFields fields(file, end + sizeof end_magic, end_bytes - sizeof end_magic);
  const auto disk = fields.take<std::uint16_t>(), first_disk = fields.take<std::uint16_t>(), here = fields.take<std::uint16_t>();
  ZipDirectory directory;
  directory.members = fields.take<std::uint16_t>();
  directory.bytes = fields.take<std::uint32_t>();
  directory.offset = fields.take<std::uint32_t>();
  const bool is_zip64 = directory.members == in_zip64_16 || directory.bytes == in_zip64_32 || directory.offset == in_zip64_32;
  if (!is_zip64 && (disk != 0 || first_disk != 0 || here != directory.members)) file.fail("is a zip archive of several files");
  if (!is_zip64) return directory;
  if (end < locator_bytes) file.fail("is a damaged zip archive: it has no directory of zip64");
  ZipFields locator(file, end - locator_bytes, locator_bytes);
  if (locator.take<std::uint32_t>() != locator_magic) file.fail("is a damaged zip archive: it has no directory of zip64");
  locator.take<std::uint32_t>();
  const auto place = locator.take<std::uint64_t>();
  if (place > file.size()) file.fail("is a damaged zip archive: its directory lies outside of the file");
  ZipFields wide(file, place, end64_bytes);
  if (wide.take<std::uint32_t>() != end64_magic) file.fail("is a damaged zip archive: it has no directory of zip64");
  wide.text(8 + 2 + 2 + 4 + 4 + 8);  // its size, versions, disks, members on this disk
  directory.members = wide.take<std::uint64_t>();
  directory.bytes = wide.take<std::uint64_t>();
  directory.offset = wide.take<std::uint64_t>();
  return directory;
}

/// Replaces the numbers that did not fit by those of the extra field, in its order.
void take_zip64(const InputFile& file, ZipFields& fields, std::uint64_t bytes, ZipMember& member) {
  while (bytes >= 4) {
    const auto kind = fields.take<std::uint16_t>();
    const std::uint64_t length = fields.take<std::uint16_t>();
    bytes -= 4;
    if (length > bytes) file.fail(fmt::format("{}: its extra field is damaged", in_quotes(member.name)));
    bytes -= length;
    auto left = length;
    if (kind == zip64_extra)
      for (auto* number : {&member.content, &member.stored, &member.offset})
        if (*number == in_zip64_32 && left >= sizeof *number) {
          *number = fields.take<std::uint64_t>();
          left -= sizeof *number;
        }
    fields.text(left);
  }
  fields.text(bytes);
}

ZipMember read_entry(const InputFile& file, ZipFields& fields) {
  if (fields.left() < entry_bytes || fields.take<std::uint32_t>() != entry_magic)
    file.fail("is a damaged zip archive: its directory has no entry where one should be");
  fields.take<std::uint32_t>();  // versions
  const auto flags = fields.take<std::uint16_t>(), method = fields.take<std::uint16_t>();
  fields.take<std::uint32_t>();  // time
  ZipMember member;
  member.checksum = fields.take<std::uint32_t>();
  member.stored = fields.take<std::uint32_t>();
  member.content = fields.take<std::uint32_t>();
  const std::uint64_t name = fields.take<std::uint16_t>(), extra = fields.take<std::uint16_t>(),
                      comment = fields.take<std::uint16_t>();
  fields.text(2 + 2 + 4);  // disk, attributes
  member.offset = fields.take<std::uint32_t>();
  member.name = fields.text(name);
  take_zip64(file, fields, extra, member);
  fields.text(comment);
  if ((flags & is_encrypted) != 0) file.fail(fmt::format("{}: is encrypted", in_quotes(member.name)));
  if (method != stored_method && method != deflated_method)
    file.fail(fmt::format("{}: is compressed by method {}, expected 0 (stored) or 8 (deflated)", in_quotes(member.name), method));
  member.deflated = method == deflated_method;
  const bool can_be = member.deflated ? member.content / most_expansion <= member.stored : member.content == member.stored;
  if (!can_be || member.stored > file.size())
    file.fail(fmt::format("{}: {} bytes cannot be the content of {}", in_quotes(member.name), member.content, member.stored));
  return member;
}

/// Finds the stored bytes behind the local header.
void find_content(const InputFile& file, ZipMember& member) {
  ZipFields local(file, member.offset, local_bytes);
  if (local.take<std::uint32_t>() != local_magic)
    file.fail(fmt::format("{}: is not where the directory says", in_quotes(member.name)));
  local.text(local_bytes - 4 - 4);
  const std::uint64_t name = local.take<std::uint16_t>(), extra = local.take<std::uint16_t>();
  member.offset += local_bytes + name + extra;
  if (member.offset > file.size() || member.stored > file.size() - member.offset)
    file.fail(fmt::format("{}: goes on behind the end of the file", in_quotes(member.name)));
}

/// Of which a bomb could make much from little.
void require_apart(const InputFile& file, const std::vector<ZipMember>& members) {
  std::vector<const ZipMember*> order;
  for (const auto& member : members) order.push_back(&member);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i]->offset - order[i - 1]->offset < order[i - 1]->stored)
      file.fail(fmt::format("{} and {} share bytes", in_quotes(order[i - 1]->name), in_quotes(order[i]->name)));
}

template <class... Numbers>
std::string zip_record(Numbers... numbers) {
  std::string record;
  (record.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
  return record;
}

std::string deflated_content(std::string_view content) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error("zlib: cannot start deflating");
  std::string result;
  std::array<unsigned char, std::size_t{1} << 16> buffer{};
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    const auto part = static_cast<uInt>(std::min<std::size_t>(content.size(), std::size_t{1} << 30));
    stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(content.data()));
    stream.avail_in = part;
    stream.next_out = buffer.data();
    stream.avail_out = buffer.size();
    code = deflate(&stream, part == content.size() ? Z_FINISH : Z_NO_FLUSH);
    content.remove_prefix(part - stream.avail_in);
    result.append(reinterpret_cast<const char*>(buffer.data()), buffer.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return result;
}

}  // namespace

std::vector<ZipMember> zip_members(const InputFile& file) {
  const auto directory = find_directory(file);
  if (directory.bytes > most_directory || directory.members > directory.bytes / entry_bytes)
    file.fail(fmt::format("is a damaged zip archive: {} members in a directory of {} bytes", directory.members, directory.bytes));
  ZipFields fields(file, directory.offset, directory.bytes);
  std::vector<ZipMember> members;
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < directory.members; ++i) {
    members.push_back(read_entry(file, fields));
    if (!names.insert(members.back().name).second) file.fail(fmt::format("{}: is there twice", in_quotes(members.back().name)));
    find_content(file, members.back());
  }
  require_apart(file, members);
  return members;
}

ZipReader::ZipReader(const InputFile& file, ZipMember member)
    : ByteReader(fmt::format("{}: {}", file.path().string(), in_quotes(member.name))), file_(file), member_(std::move(member)) {
  if (!member_.deflated) return;
  input_.resize(std::size_t{1} << 16);
  if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw Error("zlib: cannot start inflating");
}

ZipReader::~ZipReader() {
  if (member_.deflated) inflateEnd(&stream_);
}

std::size_t ZipReader::inflated(unsigned char* target, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes && !ended_) {
    if (stream_.avail_in == 0 && taken_ < member_.stored) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(input_.size(), member_.stored - taken_));
      file_.read_at(member_.offset + taken_, input_.data(), part);
      taken_ += part;
      stream_.next_in = input_.data();
      stream_.avail_in = static_cast<uInt>(part);
    }
    const auto room = static_cast<uInt>(std::min<std::size_t>(bytes - done, std::numeric_limits<uInt>::max()));
    stream_.next_out = target + done;
    stream_.avail_out = room;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    done += room - stream_.avail_out;
    ended_ = code == Z_STREAM_END;
    if (code == Z_BUF_ERROR && stream_.avail_in == 0) fail("its deflated data end too early");
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
      fail(fmt::format("damaged deflated data: {}", stream_.msg ? stream_.msg : "no more is known"));
  }
  return done;
}

void ZipReader::check_end() {
  unsigned char extra = 0;
  if (member_.deflated && (inflated(&extra, 1) != 0 || !ended_ || stream_.avail_in != 0 || taken_ != member_.stored))
    fail(fmt::format("its deflated data are not the {} bytes that the directory has", member_.content));
  if (sum_ != member_.checksum) fail(fmt::format("is damaged: its check sum is {:08x}, expected {:08x}", sum_, member_.checksum));
}

std::size_t ZipReader::read(void* target, std::size_t bytes) {
  bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, member_.content - done_));
  if (bytes == 0) {
    if (done_ == member_.content) check_end();
    return 0;
  }
  auto* out = static_cast<unsigned char*>(target);
  if (member_.deflated) {
    if (inflated(out, bytes) < bytes) fail("its deflated data end too early");
  } else {
    file_.read_at(member_.offset + taken_, out, bytes);
    taken_ += bytes;
  }
  done_ += bytes;
  sum_ = ::crc32_z(sum_, out, bytes);
  return bytes;
}

void ZipWriter::write(std::string_view bytes) {
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::string_view content, std::uint64_t alignment) {
  constexpr std::uint16_t no_time = 0, first_day = 1 << 5 | 1;  // 1980-01-01: the same tensors give the same file
  const auto deflated = deflated_ ? deflated_content(content) : std::string();
  const auto stored = deflated_ ? std::string_view(deflated) : content;
  ZipMember member{.name = name, .deflated = deflated_, .stored = stored.size(), .content = content.size(), .offset = at_};
  member.checksum = static_cast<std::uint32_t>(
      ::crc32_z(::crc32_z(0, nullptr, 0), reinterpret_cast<const unsigned char*>(content.data()), content.size()));
  constexpr std::uint64_t sizes_bytes = 20, field_bytes = 4;
  const auto end = at_ + local_bytes + name.size() + sizes_bytes + field_bytes;
  const auto padding = static_cast<std::uint16_t>(alignment > 1 ? field_bytes + (alignment - end % alignment) % alignment : 0);
  write(zip_record(local_magic, zip64_version, is_utf8, deflated_ ? deflated_method : stored_method, no_time, first_day,
                   member.checksum, in_zip64_32, in_zip64_32, static_cast<std::uint16_t>(name.size()),
                   static_cast<std::uint16_t>(sizes_bytes + padding)));
  write(name);
  write(zip_record(zip64_extra, std::uint16_t{16}, member.content, member.stored));
  if (padding > 0) {
    const auto zeros = static_cast<std::uint16_t>(padding - field_bytes);
    write(zip_record(padding_extra, zeros) + std::string(zeros, '\0'));
  }
  write(stored);
  members_.push_back(std::move(member));
}

void ZipWriter::finish() {
  constexpr std::uint16_t no_time = 0, first_day = 1 << 5 | 1, none = 0;
  const auto begin = at_;
  for (const auto& member : members_) {
    write(zip_record(entry_magic, zip64_version, zip64_version, is_utf8, member.deflated ? deflated_method : stored_method,
                     no_time, first_day, member.checksum, in_zip64_32, in_zip64_32,
                     static_cast<std::uint16_t>(member.name.size()), std::uint16_t{28}, none, none, none, std::uint32_t{0},
                     in_zip64_32));
    write(member.name);
    write(zip_record(zip64_extra, std::uint16_t{24}, member.content, member.stored, member.offset));
  }
  const std::uint64_t bytes = at_ - begin, place = at_, count = members_.size();
  if (count == 0) {  // NumPy knows an empty archive by this record alone
    write(zip_record(end_magic, none, none, none, none, std::uint32_t{0}, std::uint32_t{0}, none));
    return;
  }
  write(zip_record(end64_magic, std::uint64_t{end64_bytes - 12}, zip64_version, zip64_version, std::uint32_t{0}, std::uint32_t{0},
                   count, count, bytes, begin));
  write(zip_record(locator_magic, std::uint32_t{0}, place, std::uint32_t{1}));
  write(zip_record(end_magic, none, none, in_zip64_16, in_zip64_16, in_zip64_32, in_zip64_32, none));
}

}  // namespace clnet::io
