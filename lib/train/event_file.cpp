#include "lib/train/event_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "clnet/error.h"

namespace clnet::train {

namespace {

namespace fs = std::filesystem;

/// Fields of event.proto and summary.proto, by their numbers.
enum class Field : std::uint8_t {
  event_wall_time = 1,
  event_step = 2,
  event_file_version = 3,
  event_summary = 5,
  event_session_log = 7,
  summary_value = 1,
  value_tag = 1,
  value_simple = 2,
  session_status = 1,
};

std::array<std::uint32_t, 256> crc_table() {
  constexpr std::uint32_t polynomial = 0x82f63b78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = (table[i] >> 1) ^ ((table[i] & 1) != 0 ? polynomial : 0);
  }
  return table;
}

/// Little-endian, on any machine.
template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xff);
  return bytes;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(Field field, unsigned wire_type) { return varint((static_cast<std::uint64_t>(field) << 3) | wire_type); }
std::string number(Field field, std::int64_t value) { return key(field, 0) + varint(static_cast<std::uint64_t>(value)); }
std::string number(Field field, double value) { return key(field, 1) + little_endian(std::bit_cast<std::uint64_t>(value)); }
std::string number(Field field, float value) { return key(field, 5) + little_endian(std::bit_cast<std::uint32_t>(value)); }
std::string text(Field field, std::string_view bytes) { return (key(field, 2) + varint(bytes.size())).append(bytes); }

std::chrono::microseconds now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
}

std::string event_at(std::int64_t step) {
  return number(Field::event_wall_time, static_cast<double>(now().count()) * 1e-6) + number(Field::event_step, step);
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  static const auto table = crc_table();
  std::uint32_t sum = 0xffffffff;
  for (const char byte : bytes) sum = (sum >> 8) ^ table[(sum ^ static_cast<unsigned char>(byte)) & 0xff];
  sum = ~sum;
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8;
}

EventFile::EventFile(const fs::path& folder, std::int64_t first_step) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (!fs::is_directory(folder)) throw FileError(fmt::format("{}: cannot be made: {}", folder.string(), code.message()));
  // Readers take the files in the order of their names.
  const auto time = now().count();
  path_ = folder / fmt::format("events.out.tfevents.{:010}.{:06}.clnet", time / 1'000'000, time % 1'000'000);
  file_ = os::open(path_, os::Opening::append_or_create);
  if (!file_.is_open()) throw FileError(fmt::format("{}: cannot be made: {}", path_.string(), std::strerror(errno)));
  append(event_at(0) + text(Field::event_file_version, "brain.Event:2"));
  constexpr std::int64_t start = 1;
  append(event_at(first_step) + text(Field::event_session_log, number(Field::session_status, start)));
}

void EventFile::write(std::int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars)
    summary += text(Field::summary_value, text(Field::value_tag, tag) + number(Field::value_simple, static_cast<float>(value)));
  append(event_at(step) + text(Field::event_summary, summary));
}

void EventFile::append(std::string_view event) {
  const auto length = little_endian(std::uint64_t{event.size()});
  const auto record = (length + little_endian(masked_crc32c(length))).append(event) + little_endian(masked_crc32c(event));
  if (!file_.write_all(record)) throw FileError(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)));
}

void EventFile::sync() {
  if (!file_.sync() && errno != EINVAL && errno != EROFS)
    throw FileError(fmt::format("{}: cannot be synced: {}", path_.string(), std::strerror(errno)));
}

}  // namespace clnet::train
