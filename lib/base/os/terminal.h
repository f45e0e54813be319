// The streams that a program begins with, and the terminal behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace clnet::os {

enum class Stream : std::uint8_t { output, error };
bool is_terminal(Stream stream);

/// How many characters a line of the terminal behind standard error has; 80 where there is none.
std::size_t terminal_columns();

/// To standard error, past all buffers. The rest is dropped where it fails.
void write_error(std::string_view text);

}  // namespace clnet::os
