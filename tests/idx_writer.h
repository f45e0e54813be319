// Makes IDX and gzip data for the loaders' tests, sound or damaged.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace clnet::test {

inline std::string idx(std::uint32_t magic, const std::vector<std::uint32_t>& dimensions, std::string_view data) {
  std::string out;
  const auto put = [&](std::uint32_t word) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(word >> shift & 0xff);
  };
  put(magic);
  for (auto dimension : dimensions) put(dimension);
  return out.append(data);
}

inline std::string gzip(std::string_view data) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string out(deflateBound(&stream, static_cast<uLong>(data.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) throw std::runtime_error("deflate");
  return out;
}

/// `count` bytes, no two neighbours alike.
inline std::string pattern(std::size_t count) {
  std::string out(count, '\0');
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<char>((i * 7 + i / 251) & 0xff);
  return out;
}

}  // namespace clnet::test
