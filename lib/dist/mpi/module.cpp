// One module: compiled once for each implementation of MPI.
#include "lib/dist/mpi/module.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstring>

namespace clnet::dist {

namespace {

static_assert(sizeof(MPI_Request) <= sizeof(MpiRequest));

std::array<MPI_Comm, 2> communicators;
bool started_here = false;

int explain(int code, const char* call, char* error) {
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  std::snprintf(error, mpi_error_size, "%s: %s", call, text.data());
  return 1;
}

int start(MpiWorld* world, char* error) {
  int initialized = 0, level = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialized);
  if (initialized) {
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED) {
      std::snprintf(error, mpi_error_size,
                    "this program has initialised MPI without MPI_THREAD_SERIALIZED, which a thread of clnet's needs: call "
                    "MPI_Init_thread with it, or dist::init() first");
      return 1;
    }
  } else {
    if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level))
      return explain(code, "MPI_Init_thread", error);
    started_here = true;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  for (MPI_Comm& communicator : communicators) {
    if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, &communicator)) return explain(code, "MPI_Comm_dup", error);
    MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  }
  MPI_Comm_rank(communicators[0], &world->rank);
  MPI_Comm_size(communicators[0], &world->size);
  void* largest = nullptr;
  int found = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&largest), &found);
  // The least that the standard allows.
  constexpr int least_largest_tag = 32767;
  world->largest_tag = found && largest ? *static_cast<int*>(largest) : least_largest_tag;
  return 0;
}

int send(int channel, const void* data, int bytes, int rank, int tag, MpiRequest* request, char* error) {
  MPI_Request own;
  const int code = MPI_Isend(data, bytes, MPI_BYTE, rank, tag, communicators[static_cast<std::size_t>(channel)], &own);
  if (code) return explain(code, "MPI_Isend", error);
  std::memcpy(request, &own, sizeof own);
  return 0;
}

int receive(int channel, void* data, int bytes, int rank, int tag, MpiRequest* request, char* error) {
  MPI_Request own;
  const int code = MPI_Irecv(data, bytes, MPI_BYTE, rank, tag, communicators[static_cast<std::size_t>(channel)], &own);
  if (code) return explain(code, "MPI_Irecv", error);
  std::memcpy(request, &own, sizeof own);
  return 0;
}

int test(MpiRequest* request, int* done, int* bytes, char* error) {
  MPI_Request own;
  MPI_Status status{};
  std::memcpy(&own, request, sizeof own);
  if (const int code = MPI_Test(&own, done, &status)) return explain(code, "MPI_Test", error);
  std::memcpy(request, &own, sizeof own);
  if (*done) MPI_Get_count(&status, MPI_BYTE, bytes);
  return 0;
}

int finish(char* error) {
  for (MPI_Comm& communicator : communicators) MPI_Comm_free(&communicator);
  if (!started_here) return 0;
  const int code = MPI_Finalize();
  return code ? explain(code, "MPI_Finalize", error) : 0;
}

#ifdef OPEN_MPI
constexpr const char* implementation = "Open MPI";
#elif defined(MPICH_VERSION)
constexpr const char* implementation = "MPICH";
#else
constexpr const char* implementation = "MPI";
#endif

constexpr MpiModule module{mpi_module_version, implementation, start, send, receive, test, finish};

}  // namespace

}  // namespace clnet::dist

extern "C" __attribute__((visibility("default"))) const clnet::dist::MpiModule* clnet_mpi_module() {
  return &clnet::dist::module;
}
