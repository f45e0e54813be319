#include "lib/data/byte_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "clnet/error.h"

namespace clnet::data {
namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 16;
constexpr int gzip_format = 16 + MAX_WBITS;
/// Deflate's limit: 258 bytes from two bits.
constexpr std::uint64_t most_inflation = 1032;

}  // namespace

ByteSource::ByteSource(const std::filesystem::path& path) : file_(path) {
  unsigned char magic[2] = {};
  if (file_.size() >= 2) file_.read_at(0, magic, 2);
  gzip_ = magic[0] == 0x1f && magic[1] == 0x8b;
  if (!gzip_) return;
  input_.resize(buffer_size);
  if (inflateInit2(&stream_, gzip_format) != Z_OK) throw Error("zlib: cannot start inflating");
}

ByteSource::~ByteSource() {
  if (gzip_) inflateEnd(&stream_);
}

void ByteSource::fill_input() {
  const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(buffer_size, file_.size() - offset_));
  file_.read_at(offset_, input_.data(), bytes);
  offset_ += bytes;
  stream_.next_in = input_.data();
  stream_.avail_in = static_cast<uInt>(bytes);
}

std::size_t ByteSource::read(void* target, std::size_t bytes) {
  if (!gzip_) {
    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, file_.size() - offset_));
    file_.read_at(offset_, target, bytes);
    offset_ += bytes;
    return bytes;
  }
  auto* out = static_cast<unsigned char*>(target);
  std::size_t done = 0;
  while (done < bytes) {
    if (stream_.avail_in == 0) fill_input();
    if (stream_.avail_in == 0) {
      if (member_done_) return done;
      fail("the gzip data end too early");
    }
    if (member_done_) {  // a gzip file may be several members, one after the other
      if (*stream_.next_in != 0x1f) fail("has something that is not gzip behind its gzip data");
      inflateReset(&stream_);
      member_done_ = false;
    }
    const auto room = static_cast<uInt>(std::min<std::size_t>(bytes - done, std::numeric_limits<uInt>::max()));
    stream_.next_out = out + done;
    stream_.avail_out = room;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    done += room - stream_.avail_out;
    if (code == Z_STREAM_END) {
      member_done_ = true;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      fail(fmt::format("damaged gzip data: {}", stream_.msg ? stream_.msg : "no more is known"));
    }
  }
  return done;
}

std::vector<std::uint8_t> ByteSource::read_exactly(std::uint64_t bytes, std::string_view what) {
  const auto left = file_.size() - offset_ + stream_.avail_in;
  const auto most = gzip_ ? (left + buffer_size) * most_inflation : left;
  if (bytes > most) fail(fmt::format("{} would take {} bytes, but the file can hold no more than {}", what, bytes, most));
  constexpr std::uint64_t first_guess = std::uint64_t{64} << 20, step = std::uint64_t{1} << 20;
  std::vector<std::uint8_t> out;
  out.reserve(static_cast<std::size_t>(std::min(bytes, first_guess)));
  while (out.size() < bytes) {
    const auto old = out.size();
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(step, bytes - old));
    out.resize(old + wanted);
    const auto got = read(out.data() + old, wanted);
    if (got < wanted) fail(fmt::format("{} end after {} bytes, expected {}", what, old + got, bytes));
  }
  return out;
}

void ByteSource::expect_end(std::string_view what) {
  unsigned char extra = 0;
  if (read(&extra, 1) != 0) fail(fmt::format("goes on behind {} that its header tells of", what));
}

}  // namespace clnet::data
