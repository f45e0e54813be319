// y = 0. A work-item clears `chunk` elements.
#include "vector.clh"

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_zero_cpu(OUT(y), const int total, const int chunk) {
  int i = (int)get_global_id(0) * chunk;
  const int end = min(total, i + chunk);
  for (; i + VW <= end; i += VW) VSTORE(y, i, (VFLOAT)(0.0f));
  for (; i < end; ++i) STORE(y, i, 0.0f);
}
