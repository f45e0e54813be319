#include "lib/cl/disk_cache.h"

#include <cstring>
#include <filesystem>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"

namespace clnet::ocl {

namespace {

// A file is: magic, key length, content length, key, content, checksum of all before; numbers as 8 bytes, lowest first.
constexpr std::string_view magic = "clnet-program-1\n";
constexpr std::uint64_t largest_entry = 256 << 20;

void put(std::string& out, std::uint64_t number) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(static_cast<unsigned char>(number >> (8 * i))));
}

std::uint64_t get(std::string_view text, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number |= std::uint64_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
  return number;
}

std::uint64_t checksum(std::string_view text) { return Hash().add(text).value(); }

}  // namespace

DiskCache::DiskCache(std::string folder) : folder_(std::move(folder)) {}

std::string DiskCache::path(std::string_view key) const {
  return (std::filesystem::path(folder_) / (Hash().add(key).hex() + ".clnet-program")).string();
}

bool DiskCache::has(std::string_view key) const {
  std::error_code code;
  return std::filesystem::exists(path(key), code);
}

std::optional<std::string> DiskCache::load(std::string_view key) const {
  const std::string file_name = path(key);
  std::error_code code;
  if (!std::filesystem::exists(file_name, code)) return std::nullopt;
  std::string text;
  try {
    text = file::read(file_name, largest_entry);
  } catch (const FileError& error) {
    logging::print(logging::Level::plan, "cached program ignored: {}", error.what());
    return std::nullopt;
  }
  const std::size_t header = magic.size() + 16;
  const auto damaged = [&] {
    logging::print(logging::Level::plan, "cached program ignored: {}: is damaged or of another version", file_name);
    return std::nullopt;
  };
  if (text.size() < header + 8 || !text.starts_with(magic)) return damaged();
  const std::uint64_t key_size = get(text, magic.size()), content_size = get(text, magic.size() + 8);
  const std::uint64_t body = text.size() - header - 8;
  if (key_size > body || content_size != body - key_size) return damaged();
  if (checksum(std::string_view(text).substr(0, text.size() - 8)) != get(text, text.size() - 8)) return damaged();
  if (std::string_view(text).substr(header, key_size) != key) return std::nullopt;
  return text.substr(header + key_size, content_size);
}

void DiskCache::store(std::string_view key, std::string_view content) const {
  std::string text(magic);
  put(text, key.size());
  put(text, content.size());
  text.append(key).append(content);
  put(text, checksum(text));
  if (text.size() > largest_entry) return;
  try {
    std::error_code code;
    std::filesystem::create_directories(folder_, code);
    file::replace(path(key), text);
  } catch (const FileError& error) {
    logging::print(logging::Level::plan, "program not kept on disk: {}", error.what());
  }
}

}  // namespace clnet::ocl
