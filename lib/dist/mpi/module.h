// The functions of MPI that clnet calls, as a table. A module is a shared library that was compiled against one implementation of
// MPI and has this table. The library opens it at run time, so that it needs no MPI itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace clnet::dist {

/// Changes with the table.
constexpr int mpi_module_version = 1;
/// The function that a module exports: `const MpiModule* clnet_mpi_module()`.
constexpr const char* mpi_module_function = "clnet_mpi_module";
/// Bytes of the texts of errors, with their end.
constexpr std::size_t mpi_error_size = 1024;

/// What MPI says of this process.
struct MpiWorld {
  int rank = 0, size = 1;
  int largest_tag = 0;
};

/// Two communicators: messages of one never match receives of the other.
enum MpiChannel : int { data_channel = 0, beat_channel = 1 };

/// An MPI_Request of any implementation.
using MpiRequest = std::uint64_t;

/// Functions return 0, or 1 after they have written why into `error`, which has mpi_error_size bytes. One thread calls all of
/// them.
struct MpiModule {
  int version;
  const char* implementation;
  /// Initialises MPI, unless somebody did that already.
  int (*start)(MpiWorld* world, char* error);
  /// None of these waits.
  int (*send)(int channel, const void* data, int bytes, int rank, int tag, MpiRequest* request, char* error);
  int (*receive)(int channel, void* data, int bytes, int rank, int tag, MpiRequest* request, char* error);
  /// Sets `done`, and for a receive that is done the bytes that came.
  int (*test)(MpiRequest* request, int* done, int* bytes, char* error);
  /// Ends MPI, unless somebody else initialised it.
  int (*finish)(char* error);
};

}  // namespace clnet::dist
