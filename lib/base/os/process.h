// This process, and those that it starts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/os/descriptor.h"

namespace clnet::os {

/// Its number.
std::int64_t own_process();

/// Whether clnet starts processes on this system at all; elsewhere what follows does nothing.
bool starts_processes();

/// What is written to the second is read from the first. Neither is among the low numbers that start() gives away.
std::pair<Descriptor, Descriptor> pipe();
/// A file without a place on a disk, which goes with its last descriptor. It is no low number either.
Descriptor memory_file(const char* name);

/// Runs the program that the first word names. It finds these descriptors at 3 and on, and none besides; signals of the terminal
/// do not reach it. Its number; negative where it cannot be started.
std::int64_t start(std::vector<std::string> words, std::span<const int> descriptors);
/// Has it run when nothing else does.
void run_when_idle(std::int64_t process);

enum class Child : std::uint8_t { runs, ended, crashed, unknown };
/// Of one that was started, without waiting. Where the host waits for its children itself, nobody tells how it ended. One that
/// does not run any more is not to be asked for again: others get its number.
Child state(std::int64_t process);
/// Ends it, and waits until it has.
void kill(std::int64_t process);

}  // namespace clnet::os
